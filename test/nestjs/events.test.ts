import { discard, type Queue, type QueueEvent, Sluice } from 'sluice'
import { getQueueToken, OnQueueEvent, Process, Processor, QueueEventsListener, SluiceModule } from 'sluice/nestjs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { LastingError } from '../../src/engine/lasting-error.ts'
import { until } from '../support/until.ts'
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
  // It runs no jobs, and is told of those that others run.
  await applications.start({ imports, providers: [Audit] }, { autoStart: false })
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

it('a listener that does not come to an end is named and left behind when the application ends', async () => {
  const ledger = new Ledger()
  @Processor('mail')
  class Mail {
    @Process('SEND')
    send() {
      return discard('gone')
    }
    @OnQueueEvent('job.dead')
    told(_: QueueEvent) {
      ledger.add('told')
      return new Promise(() => {})
    }
  }
  const imports = [SluiceModule.registerQueue({ name: 'mail', shutdownGraceMs: 50 })]
  const application = await applications.start({ imports, providers: [Mail] })
  await application.get<Queue>(getQueueToken('mail'), { strict: false }).submit({ type: 'SEND' })
  await ledger.reached(1)

  await application.close()

  expect(applications.log.lines).toContainEqual(
    expect.stringMatching(/^Mail\.told, told of job\.dead \(event \S+ of "mail"\), has taken longer than 50 ms/),
  )
})

it('listeners are told what happens as soon as Redis is back that was away at the start', async () => {
  const ledger = new Ledger()
  @QueueEventsListener('mail')
  class Audit {
    @OnQueueEvent('job.dead')
    dead({ reason }: QueueEvent) {
      ledger.add(`dead: ${reason}`)
    }
  }
  const imports = [SluiceModule.registerQueue({ name: 'mail' })]
  await applications.server.kill()
  const failed = vi.spyOn(LastingError.prototype, 'failed')
  onTestFinished(() => failed.mockRestore())
  await applications.start({ imports, providers: [Audit] }, { commandTimeoutMs: 200 })
  await until(() => failed.mock.calls.length > 0, { what: 'the events were tried to be read' })
  expect(applications.log.lines.filter((line) => line.startsWith('events.unread'))).toEqual([])

  await applications.server.restart()
  const other = new Sluice({ ...applications.options(), log: () => {} })
  onTestFinished(() => other.close())
  const mail = other.queue('mail')
  mail.process('SEND', () => discard('gone'))
  await mail.submit({ type: 'SEND' })

  expect(await ledger.reached(1)).toEqual(['dead: discarded'])
})

it('events that Redis refuses to let read are said once, and again when that comes back after a time in which nothing happened', async () => {
  @QueueEventsListener('mail')
  class Audit {
    @OnQueueEvent('job.dead')
    dead(_: QueueEvent) {}
  }
  const admin = applications.server.client()
  const may = (...rights: string[]) => admin.acl('SETUSER', 'listener', ...rights)
  const said = () => applications.log.lines.filter((line) => line.startsWith('events.unread'))
  /** The connection that waits for events, when it does. */
  const waiting = async () => {
    let id = ''
    await until(async () => {
      const clients = String(await admin.client('LIST'))
      id = /^id=(\d+) .* flags=\w*b\w* .* cmd=xread user=listener /m.exec(clients)?.[1] ?? ''
      return id !== ''
    })
    return id
  }
  await may('on', '>secret', '~*', '&*', '+@all', '-xread')
  const { path } = applications.server

  await applications.start(
    { imports: [SluiceModule.registerQueue({ name: 'mail' })], providers: [Audit] },
    { redis: { path, username: 'listener', password: 'secret' } },
  )
  await until(() => said().length === 1)
  await may('+xread')
  // As if the time of the read were over.
  await admin.client('UNBLOCK', await waiting())
  const next = await waiting()
  await may('-xread')
  await admin.client('UNBLOCK', next)

  await until(() => said().length === 2)
  expect(said()[1]).toMatch(/^events\.unread: The events of queue "mail" cannot be read.*xread/)
})

it('the start waits for Redis once, however many queues have listeners, and the end for none of them', async () => {
  @QueueEventsListener('mail')
  class MailAudit {
    @OnQueueEvent('job.dead')
    dead(_: QueueEvent) {}
  }
  @QueueEventsListener('print')
  class PrintAudit {
    @OnQueueEvent('job.dead')
    dead(_: QueueEvent) {}
  }
  const shutdownGraceMs = 60_000
  const imports = ['mail', 'print'].map((name) => SluiceModule.registerQueue({ name, shutdownGraceMs }))
  await applications.server.kill()

  const begin = performance.now()
  const application = await applications.start(
    { imports, providers: [MailAudit, PrintAudit] },
    { commandTimeoutMs: 2_000, autoStart: false },
  )
  const startMs = performance.now() - begin
  await application.close()
  await applications.server.restart()

  expect(startMs).toBeLessThan(5_500)
  expect(performance.now() - begin).toBeLessThan(shutdownGraceMs / 2)
})
