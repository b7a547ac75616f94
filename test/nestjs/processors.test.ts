import { setImmediate as turn } from 'node:timers/promises'
import { Inject, Injectable, Module, Scope } from '@nestjs/common'
import { REQUEST } from '@nestjs/core'
import { discard, type Job, type JobContext, type Queue, throttled } from 'sluice'
import {
  getQueueToken,
  InjectQueue,
  InjectSluice,
  Process,
  Processor,
  SluiceModule,
  SluiceRegistrar,
} from 'sluice/nestjs'
import { describe, expect, it } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { useApplications } from './application.ts'
import { Ledger } from './ledger.ts'

const applications = useApplications()

interface Greeting {
  to: string
}

describe('a class with @Processor', () => {
  it('runs jobs of each type by the method for it, with what it injects', async () => {
    const ledger = new Ledger()
    @Processor('mail', { concurrency: 3 })
    class Mail {
      readonly #ledger: Ledger
      constructor(@Inject(Ledger) injected: Ledger) {
        this.#ledger = injected
      }
      @Process('HELLO')
      hello(job: Job<Greeting>, context: JobContext) {
        this.#ledger.add(`hello ${job.payload.to} ${typeof context.fence}`)
      }
      @Process<Greeting>('BYE', { maxRetries: 0 })
      async bye(job: Job<Greeting>) {
        this.#ledger.add(`bye ${job.payload.to}`)
      }
    }

    const application = await applications.start({
      imports: [SluiceModule.registerQueue({ name: 'mail' })],
      providers: [Mail, { provide: Ledger, useValue: ledger }],
    })
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ type: 'HELLO', payload: { to: 'ann' } })
    await mail.submit({ type: 'BYE', payload: { to: 'bob' } })

    expect(await ledger.reached(2)).toEqual(['bye bob', 'hello ann string'])
  })

  it('answers with outcomes and errors as a handler of queue.process does, through the middleware', async () => {
    const ledger = new Ledger()
    @Processor('mail')
    class Mail {
      @Process('GONE')
      gone() {
        return discard('no such user')
      }
      @Process('BUSY')
      busy(job: Job) {
        ledger.add(`busy ${job.attempt}`)
        return ledger.entries.filter((entry) => entry === 'busy 1').length < 2
          ? throttled({ retryAfterMs: 1 })
          : undefined
      }
    }
    const around = (name: string) => (job: Job, _: JobContext, next: () => Promise<unknown>) => {
      ledger.add(`${name} ${job.type}`)
      return next()
    }

    const application = await applications.start(
      { imports: [SluiceModule.registerQueue({ name: 'mail', middleware: [around('inner')] })], providers: [Mail] },
      { defaults: { middleware: [around('outer')] } },
    )
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ type: 'BUSY' })
    const busy = await ledger.reached(6)
    const { id } = await mail.submit({ type: 'GONE' })
    await mail.drain()

    expect(busy).toEqual(['busy 1', 'busy 1', 'inner BUSY', 'inner BUSY', 'outer BUSY', 'outer BUSY'])
    expect(ledger.entries.slice(-2)).toEqual(['outer GONE', 'inner GONE'])
    expect((await mail.deadLetters.list()).letters).toMatchObject([{ id, error: { message: 'no such user' } }])
  })

  it('may be derived from another, which gives each queue a class of its own', async () => {
    const ledger = new Ledger()
    class Sender {
      readonly from: string = 'nobody'
      @Process('SEND')
      send() {
        ledger.add(`sent by ${this.from}`)
      }
      @Process('CHECK')
      check() {
        ledger.add('checked by the base')
      }
    }
    @Processor('mail')
    class Mail extends Sender {
      override readonly from = 'mail'
    }
    @Processor('texts')
    class Texts extends Sender {
      override readonly from = 'texts'
      @Process('CHECK')
      override check() {
        ledger.add('checked by texts')
      }
    }

    const application = await applications.start({
      imports: [SluiceModule.registerQueue({ name: 'mail' }, { name: 'texts' })],
      providers: [Mail, Texts],
    })
    for (const name of ['mail', 'texts']) {
      const queue = application.get<Queue>(getQueueToken(name), { strict: false })
      await queue.submit({ type: 'SEND' })
      await queue.submit({ type: 'CHECK' })
    }

    expect(await ledger.reached(4)).toEqual([
      'checked by texts',
      'checked by the base',
      'sent by mail',
      'sent by texts',
    ])
  })

  it('is made anew for each job where it is request-scoped, and gets the job as the request', async () => {
    const ledger = new Ledger()
    let made = 0
    @Injectable({ scope: Scope.REQUEST })
    class Tenant {
      readonly name: string
      constructor(@Inject(REQUEST) job: Job) {
        this.name = job.tenant
      }
    }
    @Processor('mail')
    class Mail {
      readonly number = ++made
      readonly #tenant: Tenant
      constructor(@Inject(Tenant) tenant: Tenant) {
        this.#tenant = tenant
      }
      @Process('SEND')
      send(job: Job<Greeting>) {
        ledger.add(`${job.payload.to} for ${this.#tenant.name}`)
      }
    }

    const application = await applications.start({
      imports: [SluiceModule.registerQueue({ name: 'mail' })],
      providers: [Mail, Tenant],
    })
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ tenant: 'acme', type: 'SEND', payload: { to: 'ann' } })
    await mail.submit({ tenant: 'globex', type: 'SEND', payload: { to: 'bob' } })

    expect(await ledger.reached(2)).toEqual(['ann for acme', 'bob for globex'])
    expect(made).toBe(2)
  })

  it('is told apart by its module when two modules have request-scoped classes of their own', async () => {
    const ledger = new Ledger()
    @Processor('mail', { scope: Scope.REQUEST })
    class Mail {
      readonly #name: string
      constructor(@Inject('NAME') name: string) {
        this.#name = name
      }
      @Process('SEND')
      send() {
        ledger.add(this.#name)
      }
    }
    class Inner {}
    Module({
      imports: [SluiceModule.registerQueue({ name: 'mail' })],
      providers: [Mail, { provide: 'NAME', useValue: 'inner' }],
    })(Inner)

    const application = await applications.start({
      imports: [Inner],
      providers: [{ provide: 'NAME', useValue: 'outer' }],
    })
    await application.get<Queue>(getQueueToken('mail'), { strict: false }).submit({ type: 'SEND' })

    expect(await ledger.reached(1)).toEqual(['inner'])
  })

  it('takes its options over the defaults of the application, and those of a method over its own', async () => {
    const ledger = new Ledger()
    @Processor('mail', { maxRetries: 1 })
    class Mail {
      @Process('ONCE', { maxRetries: 0 })
      once() {
        ledger.add('once')
        throw new Error('not now')
      }
    }

    const application = await applications.start(
      { imports: [SluiceModule.registerQueue({ name: 'mail' })], providers: [Mail] },
      { defaults: { process: { maxRetries: 5, concurrency: 2 } } },
    )
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ type: 'ONCE' })
    await mail.drain()

    expect(ledger.entries).toEqual(['once'])
    expect((await mail.deadLetters.list()).letters).toHaveLength(1)
  })
})

describe('classes of one queue', () => {
  it('share the pool that one of them asks for, whatever the default of the application', async () => {
    const ledger = new Ledger()
    let running = 0
    let most = 0
    const run = async () => {
      running += 1
      most = Math.max(most, running)
      await turn()
      running -= 1
      ledger.add('ran')
    }
    @Processor('mail', { concurrency: 2 })
    class Letters {
      @Process('LETTER')
      send() {
        return run()
      }
    }
    @Processor('mail')
    class Cards {
      @Process('CARD')
      send() {
        return run()
      }
    }

    const application = await applications.start(
      { imports: [SluiceModule.registerQueue({ name: 'mail' })], providers: [Letters, Cards] },
      { defaults: { process: { concurrency: 50 } }, autoStart: false },
    )
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    for (const type of ['LETTER', 'CARD']) await mail.submit({ type, jobs: Array.from({ length: 6 }, () => ({})) })
    await application.get(SluiceRegistrar).register()
    await ledger.reached(12)

    expect(most).toBe(2)
  })
})

describe('an application with autoStart: false', () => {
  it('submits, and runs nothing until it registers its processors', async () => {
    const ledger = new Ledger()
    @Processor('mail')
    class Mail {
      @Process('SEND')
      send() {
        ledger.add('sent')
      }
    }
    const application = await applications.start(
      { imports: [SluiceModule.registerQueue({ name: 'mail' })], providers: [Mail] },
      { autoStart: false },
    )
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ type: 'SEND' })
    // A pool would have asked by now: it does so on the next turn of the event loop, before this reply can be here.
    const before = await mail.counts()

    await application.get(SluiceRegistrar).register()
    await application.get(SluiceRegistrar).register()

    expect(before).toMatchObject({ waiting: 1, running: 0 })
    expect(await ledger.reached(1)).toEqual(['sent'])
  })
})

describe('what is injected', () => {
  it('is the queue and the Sluice, by decorator and by class, in whatever module', async () => {
    @Injectable()
    class Service {
      readonly queue: Queue
      readonly keyed: Sluice
      readonly sluice: Sluice
      constructor(@InjectQueue('mail') queue: Queue, @InjectSluice() keyed: Sluice, @Inject(Sluice) sluice: Sluice) {
        this.queue = queue
        this.keyed = keyed
        this.sluice = sluice
      }
    }
    class Feature {}
    Module({
      imports: [SluiceModule.registerQueue({ name: 'mail' })],
      providers: [Service],
      exports: [Service],
    })(Feature)

    const service = (await applications.start({ imports: [Feature] })).get(Service, { strict: false })

    expect(service.queue.name).toBe('mail')
    expect(service.sluice.queue('mail')).toBe(service.queue)
    expect(service.keyed).toBe(service.sluice)
  })
})
