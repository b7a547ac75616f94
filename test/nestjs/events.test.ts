import { discard, type Queue, type QueueEvent } from 'sluice'
import { getQueueToken, OnQueueEvent, Process, Processor, QueueEventsListener, SluiceModule } from 'sluice/nestjs'
import { expect, it } from 'vitest'
import { useApplications } from './application.ts'
import { Ledger } from './ledger.ts'

const applications = useApplications()

it('listeners are told in every process, from the first event on, and one that throws does not stop the others', async () => {
  const ledger = new Ledger()
  @Processor('mail')
  class Mail {
    @Process('SEND')
    send() {
      return discard('gone')
    }
    @OnQueueEvent(['job.dead', 'action.completed'])
    told({ type, tenant }: QueueEvent) {
      ledger.add(`processor: ${type} ${tenant}`)
      throw new Error('cannot listen')
    }
  }
  @QueueEventsListener('mail')
  class Audit {
    @OnQueueEvent('job.dead')
    dead({ reason }: QueueEvent) {
      ledger.add(`audit: ${reason}`)
    }
  }
  const imports = [SluiceModule.registerQueue({ name: 'mail' })]
  await applications.start({ imports, providers: [Audit] }, { autoStart: true })
  const application = await applications.start({ imports, providers: [Mail, Audit] })

  const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
  const action = await mail.submit({ tenant: 'acme', type: 'SEND', jobs: [{}] })
  await action.finished()

  expect(await ledger.reached(4)).toEqual([
    'audit: discarded',
    'audit: discarded',
    'processor: action.completed acme',
    'processor: job.dead acme',
  ])
  expect(applications.log.lines).toContainEqual(
    expect.stringMatching(/^Mail\.told threw when it was told of job\.dead/),
  )
})
