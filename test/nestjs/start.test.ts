import { Scope } from '@nestjs/common'
import type { Queue, QueueEvent, Sluice } from 'sluice'
import {
  getQueueToken,
  getSluiceToken,
  OnQueueEvent,
  Process,
  Processor,
  QueueEventsListener,
  SluiceModule,
} from 'sluice/nestjs'
import { describe, expect, it } from 'vitest'
import { codeBlocks, read } from '../docs/markdown.ts'
import { until } from '../support/until.ts'
import { useApplications } from './application.ts'
import { Ledger } from './ledger.ts'

const applications = useApplications()
const mail = () => SluiceModule.registerQueue({ name: 'mail' })

@Processor('mail')
class Mail {
  @Process('SEND')
  send() {}
}

/** What the application says instead of starting. */
async function refusal(...args: Parameters<typeof applications.start>): Promise<string> {
  return applications.start(...args).then(
    () => 'it started',
    (error: Error) => error.message,
  )
}

describe('an application does not start, and says what to do,', () => {
  it('when processors are for queues that nobody registered, types are processed twice, or decorators are missing: all at once', async () => {
    @Processor('mial')
    class Misspelt {
      @Process('SEND')
      send() {}
    }
    @Processor('mail')
    class Twin {
      @Process('SEND')
      alsoSend() {}
    }
    class Undecorated {
      @Process('SEND')
      send() {}
    }
    @Processor('mail')
    class Idle {}
    @QueueEventsListener('mail')
    class Listener {
      @Process('OTHER')
      send() {}
    }
    @Processor('mail')
    @Processor('texts')
    class Double {
      @Process('THIRD')
      send() {}
    }
    @Processor('mail', { scope: Scope.TRANSIENT as never })
    class Transient {
      @Process('FOURTH')
      send() {}
    }
    @Processor('mail', { scope: Scope.REQUEST })
    class Told {
      @OnQueueEvent('job.dead')
      dead(_: QueueEvent) {}
    }
    @Processor('mail', { levels: ['low'] })
    class OtherLevels {
      @Process('LOW')
      send() {}
    }

    const said = await refusal({
      imports: [mail()],
      providers: [Mail, Misspelt, Twin, Undecorated, Idle, Listener, Double, Transient, Told, OtherLevels],
    })

    expect(said.split('\n')).toEqual([
      'Invalid options for the processors of this application:',
      `- Misspelt is for a queue that is not registered; did you mean "mail"?: @Processor("mial"). Import SluiceModule.registerQueue({ name: "mial" }), or correct the name`,
      `- Undecorated has @Process methods, but no @Processor('queue') above the class`,
      `- Idle has @Processor("mail"), but no method with @Process('TYPE') or @OnQueueEvent('job.dead')`,
      '- Listener has @QueueEventsListener("mail") and a method with @Process: jobs are run by a class with @Processor("mail")',
      '- Double has more than one @Processor or @QueueEventsListener: a class is for one queue. For a second queue derive a class from it, with a decorator of its own',
      '- Transient is transient: leave out its scope, or give it Scope.REQUEST to have one for each job',
      '- Told has @OnQueueEvent, but is made anew for each job (it, or something it injects, has Scope.REQUEST). An event is no job: move the method to a class of its own with @QueueEventsListener',
      '- Twin.alsoSend processes "SEND" of queue "mail", and so does Mail.send; leave one of them',
      '- OtherLevels.send serves other levels than Mail.send: the queue "mail" has one pool in a process, with one list of levels',
    ])
  })

  it('in the words that the guide shows', async () => {
    @Processor('promotion')
    class PromotionsProcessor {
      @Process('SEND_PROMOTION')
      send() {}
    }
    @Processor('mail')
    class MailProcessor {
      @Process('SEND')
      send() {}
      @Process('SEND')
      alsoSend() {}
    }
    const promotions = SluiceModule.registerQueue({ name: 'promotions' })

    const said = await refusal({ imports: [mail(), promotions], providers: [PromotionsProcessor, MailProcessor] })

    const [shown] = codeBlocks(read('docs/guides/nestjs.md')).filter(({ language }) => language === 'text')
    expect(shown?.text).toBe(`InvalidOptionsError: ${said}`)
  })

  it('when options, types or events of decorators are wrong, also where nothing starts by itself: all at once', async () => {
    @Processor('mail', { concurrency: 0, timeoutMS: 5 } as never)
    class Wrong {
      @Process('SEND', { timeoutMs: 0 })
      send() {}
      @Process('', { concurrency: 2 } as never)
      nameless() {}
      @OnQueueEvent('job.daed' as never)
      dead(_: QueueEvent) {}
    }
    @Processor('mail')
    class AlsoWrong {
      @Process('OTHER', { maxRetries: -1 })
      send() {}
    }

    const said = await refusal({ imports: [mail()], providers: [Wrong, AlsoWrong] }, { autoStart: false })

    expect(said.split('\n')).toEqual([
      'Invalid options for the processors of this application:',
      '- Wrong has a wrong option: concurrency must be a whole number from 1 to 100000, not 0',
      '- Wrong has a wrong option: timeoutMS is not an option; did you mean "timeoutMs"?',
      '- Wrong.send has a wrong option: timeoutMs must be a whole number from 1 to 86400000, not 0',
      '- Wrong.nameless has a type that must have 1 to 256 characters, not 0: @Process("")',
      '- Wrong.nameless has a wrong option: concurrency is a matter of the class: give it to @Processor',
      '- Wrong.dead waits for "job.daed", which is no event; did you mean "job.dead"?',
      '- AlsoWrong.send has a wrong option: maxRetries must be a whole number from 0 to 1000, not -1',
    ])
  })

  it('when classes want different numbers of jobs at once of one queue', async () => {
    @Processor('mail', { concurrency: 1 })
    class One {
      @Process('ONE')
      send() {}
    }
    @Processor('mail', { concurrency: 4 })
    class Four {
      @Process('TWO')
      send() {}
      @Process('THREE')
      alsoSend() {}
    }

    expect(await refusal({ imports: [mail()], providers: [Mail, One, Four] })).toBe(
      'Invalid options for the processors of this application: Four.send has a concurrency of 4, and One.send one of 1: the queue "mail" has one pool in a process, with one number. Give it to one class',
    )
  })

  it('when a processor is provided by two modules', async () => {
    class Inner {}

    const said = await refusal({
      imports: [{ module: Inner, imports: [mail()], providers: [Mail] }],
      providers: [Mail],
    })

    expect(said).toMatch(/Mail\.send processes "SEND" .* its class is provided by several modules: provide it in one$/)
  })

  it('when forRoot is missing', async () => {
    const said = await applications.startWithout({ imports: [mail()] }).catch((error: Error) => error.message)

    expect(said).toBe(
      'Invalid options for SluiceModule.registerQueue: queue "mail" has no Sluice: import SluiceModule.forRoot({ redis: … }) once, in the root module of the application',
    )
  })

  it('when forRoot is imported twice', async () => {
    const said = await refusal({ imports: [SluiceModule.forRoot(applications.options())] })

    expect(said).toMatch(/SluiceModule\.forRoot is imported 2 times.*: import it once, in the root module/)
  })

  it('when a queue is given options in two places', async () => {
    const twice = () => SluiceModule.registerQueue({ name: 'mail', maxRetries: 1 })

    expect(await refusal({ imports: [twice(), twice()] })).toMatch(
      /queue "mail" is given options in several places: give them in one, and elsewhere its name alone/,
    )
  })

  it('when a queue is registered with two keys', async () => {
    const said = await refusal({ imports: [mail(), SluiceModule.registerQueue({ name: 'mail', configKey: 'eu' })] })

    expect(said).toMatch(/queue "mail" (is registered with different values of configKey|has no Sluice)/)
  })

  it('when options are wrong', async () => {
    expect(await refusal({}, { perfix: 'x' } as never)).toMatch(/perfix is not an option; did you mean "prefix"\?/)
    expect(await refusal({}, { autostart: false } as never)).toMatch(
      /autostart is not an option; did you mean "autoStart"\?/,
    )
    expect(await refusal({}, { defaults: { process: { timeoutMs: 0 } } })).toMatch(
      /defaults\.process\.timeoutMs must be a whole number from 1/,
    )
    const queue = SluiceModule.registerQueue({ name: 'mail', leaseMS: 5 } as never)
    expect(await refusal({ imports: [queue] })).toMatch(/leaseMS is not an option; did you mean "leaseMs"\?/)
  })

  it('when Redis may not be used', async () => {
    const client = applications.server.client()
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru', 'maxmemory', '1gb')

    const said = await refusal({ imports: [mail()] })
    await client.config('SET', 'maxmemory-policy', 'noeviction')

    expect(said).toMatch(/maxmemory-policy/)
  })

  it('and leaves no connection behind that would keep its process alive', async () => {
    const doomed = { connectionName: 'doomed' }
    const client = applications.server.client()
    const connections = async () => String(await client.client('LIST')).match(/name=doomed/g)?.length ?? 0
    const twice = () => SluiceModule.registerQueue({ name: 'mail', maxRetries: 1 })
    const failing = SluiceModule.registerQueueAsync({
      name: 'mail',
      inject: [getSluiceToken()],
      useFactory: async (sluice: Sluice) => {
        await sluice.ready()
        throw new Error('no configuration')
      },
    })
    const otherKey = SluiceModule.registerQueue({ name: 'mail', configKey: 'eu' })

    await refusal({ imports: [mail()], providers: [class extends Mail {}] }, doomed)
    await refusal({ imports: [SluiceModule.forRoot(applications.options(doomed))] }, doomed)
    await refusal({ imports: [twice(), twice()] }, doomed)
    await refusal({ imports: [mail(), otherKey] }, doomed)
    expect(await refusal({ imports: [failing] }, doomed)).toBe('no configuration')

    await until(async () => (await connections()) === 0, { what: 'no connection is left' })
  })
})

it('an application starts while Redis is away, says so, and works when it is back', async () => {
  const ledger = new Ledger()
  @Processor('mail')
  class Sender {
    @Process('SEND')
    send() {
      ledger.add('sent')
    }
  }
  await applications.server.kill()

  const application = await applications.start({ imports: [mail()], providers: [Sender] }, { commandTimeoutMs: 200 })
  await applications.server.restart()
  const queue = application.get<Queue>(getQueueToken('mail'), { strict: false })
  await until(async () => (await queue.submit({ type: 'SEND', id: 'one' })) !== undefined, { what: 'Redis is back' })

  expect(await ledger.reached(1)).toEqual(['sent'])
  expect(applications.log.lines.join('\n')).toMatch(/Redis is not available.* The application starts all the same/)
})
