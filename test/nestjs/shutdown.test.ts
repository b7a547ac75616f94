import { setTimeout as sleep } from 'node:timers/promises'
import { Inject, Module, type OnModuleDestroy } from '@nestjs/common'
import type { Job, Queue } from 'sluice'
import { getQueueToken, Process, Processor, SluiceHealthIndicator, SluiceModule } from 'sluice/nestjs'
import { describe, expect, it } from 'vitest'
import { useApplications } from './application.ts'
import { Ledger } from './ledger.ts'

const applications = useApplications()

describe('closing an application', () => {
  it('lets running jobs end with the services they use, starts none, and takes submits until it has', async () => {
    const ledger = new Ledger()
    class Database implements OnModuleDestroy {
      isOpen = true
      onModuleDestroy() {
        this.isOpen = false
      }
    }
    class DatabaseModule {}
    Module({ providers: [Database], exports: [Database] })(DatabaseModule)
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    @Processor('mail', { concurrency: 1 })
    class Mail {
      readonly #database: Database
      constructor(@Inject(Database) database: Database) {
        this.#database = database
      }
      @Process('SEND')
      async send(job: Job<number>) {
        ledger.add(`start ${job.payload}`)
        await released
        ledger.add(`end ${job.payload}, database ${this.#database.isOpen ? 'open' : 'closed'}`)
      }
    }
    class MailModule {}
    Module({ imports: [DatabaseModule, SluiceModule.registerQueue({ name: 'mail' })], providers: [Mail] })(MailModule)
    const application = await applications.start({ imports: [MailModule] })
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    for (const payload of [1, 2]) await mail.submit({ type: 'SEND', payload })
    await ledger.reached(1)

    const closed = application.close()
    await mail.submit({ type: 'SEND', payload: 3 })
    const before = await mail.counts()
    release()
    await closed

    expect(ledger.entries).toEqual(['start 1', 'end 1, database open'])
    expect(before).toMatchObject({ waiting: 2, running: 1 })
    await expect(mail.submit({ type: 'SEND' })).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('gives back what takes longer than its grace', async () => {
    const ledger = new Ledger()
    @Processor('mail')
    class Mail {
      @Process('SEND')
      async send(_: Job, { signal }: { signal: AbortSignal }) {
        ledger.add('start')
        await sleep(60_000, undefined, { signal }).catch(() => ledger.add('aborted'))
      }
    }
    const imports = [SluiceModule.registerQueue({ name: 'mail', shutdownGraceMs: 50 })]
    const application = await applications.start({ imports, providers: [Mail] })
    await application.get<Queue>(getQueueToken('mail'), { strict: false }).submit({ type: 'SEND' })
    await ledger.reached(1)

    await application.close()
    const other = await applications.start({ imports: [SluiceModule.registerQueue({ name: 'mail' })] })

    expect(ledger.entries).toEqual(['start', 'aborted'])
    const counts = await other.get<Queue>(getQueueToken('mail'), { strict: false }).counts()
    expect(counts).toMatchObject({ waiting: 1, running: 0 })
  })
})

describe('the health indicator', () => {
  it('says whether Redis answers, under the key it is given', async () => {
    const application = await applications.start({})
    const health = application.get(SluiceHealthIndicator, { strict: false })

    const up = await health.isHealthy('redis')
    await applications.server.kill('SIGSTOP')
    const down = await health.isHealthy(undefined, { timeoutMs: 100 })
    await applications.server.kill('SIGCONT')

    expect(up).toEqual({ redis: { status: 'up', latencyMs: expect.any(Number) } })
    expect(down).toEqual({ sluice: { status: 'down', message: expect.stringContaining('no answer within 100 ms') } })
  })
})
