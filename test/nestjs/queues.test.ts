import { Injectable, Module } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import type { Queue } from 'sluice'
import {
  getQueueToken,
  getSluiceToken,
  type QueueOptionsFactory,
  SluiceModule,
  type SluiceOptionsFactory,
} from 'sluice/nestjs'
import { describe, expect, it } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { useApplications } from './application.ts'

const applications = useApplications()

/** A module of its own that imports these. */
function feature(...imports: NonNullable<Parameters<typeof Module>[0]['imports']>): new () => object {
  class Feature {}
  Module({ imports })(Feature)
  return Feature
}

describe('a queue', () => {
  it('has its options over the defaults of the application, section by section', async () => {
    const application = await applications.start(
      {
        imports: [
          SluiceModule.registerQueue({ name: 'mail', limits: { tenant: '3/s' }, maxPending: undefined as never }),
        ],
      },
      { defaults: { queue: { limits: { queue: '50/s' }, maxPending: 2, whenFull: 'error' } } },
    )
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })

    await mail.submit({ type: 'SEND' })
    await mail.submit({ type: 'SEND' })

    await expect(mail.submit({ type: 'SEND' })).rejects.toMatchObject({ code: 'SLUICE_QUEUE_FULL', maxPending: 2 })
    expect(await mail.limits.status('queue')).toMatchObject({ limit: 50 })
    expect(await mail.limits.status('tenant', 'default')).toMatchObject({ limit: 3 })
  })

  it('is one for all modules that register it, whichever of them gives its options', async () => {
    const application = await applications.start({
      imports: [
        feature(SluiceModule.registerQueue({ name: 'mail' })),
        feature(SluiceModule.registerQueue({ name: 'mail', maxPending: 1, whenFull: 'error' })),
        feature(SluiceModule.registerQueue({ name: 'mail' }, { name: 'texts' })),
      ],
    })
    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ type: 'SEND' })

    await expect(mail.submit({ type: 'SEND' })).rejects.toMatchObject({ maxPending: 1 })
    expect(application.get(Sluice).queue('mail')).toBe(mail)
  })

  it('keeps the options of the application that gives them when another one has its name alone', async () => {
    const limits = { tenant: '3/s' }
    const workers = await applications.start({
      imports: [SluiceModule.registerQueue({ name: 'mail', limits, maxPending: 1, whenFull: 'error' })],
    })
    await workers.get<Queue>(getQueueToken('mail'), { strict: false }).counts()

    const web = await applications.start({ imports: [SluiceModule.registerQueue({ name: 'mail' })] })
    const mail = web.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.submit({ type: 'SEND' })

    expect(await mail.limits.status('tenant', 'default')).toMatchObject({ limit: 3 })
    await expect(mail.submit({ type: 'SEND' }, { whenFull: 'error' })).rejects.toMatchObject({ maxPending: 1 })
  })

  it('declares the defaults of its application as its own options', async () => {
    const registered = [SluiceModule.registerQueue({ name: 'mail' })]
    const first = await applications.start(
      { imports: registered },
      { defaults: { queue: { limits: { queue: '5/s' } } } },
    )
    await first.get<Queue>(getQueueToken('mail'), { strict: false }).counts()

    const second = await applications.start(
      { imports: registered },
      { defaults: { queue: { limits: { queue: '9/s' } } } },
    )
    const mail = second.get<Queue>(getQueueToken('mail'), { strict: false })
    await mail.counts()

    expect(await mail.limits.status('queue')).toMatchObject({ limit: 9 })
  })

  it('may be wanted by name before a factory elsewhere has made its options', async () => {
    const application = await applications.start({
      imports: [
        feature(SluiceModule.registerQueue({ name: 'mail' })),
        feature(
          SluiceModule.registerQueueAsync({
            name: 'mail',
            inject: [getSluiceToken()],
            useFactory: async (sluice: Sluice) => ({ limits: { upstream: sluice.limit('partner', '7/s') } }),
          }),
        ),
      ],
    })

    const mail = application.get<Queue>(getQueueToken('mail'), { strict: false })
    const limits = await mail.limits.list()

    expect(limits).toMatchObject([{ name: 'upstream', limit: 7 }])
  })

  it('takes its options from a class, made for it or there already', async () => {
    @Injectable()
    class Options implements QueueOptionsFactory {
      createQueueOptions(name: string) {
        return { maxPending: name === 'mail' ? 1 : 2, whenFull: 'error' as const }
      }
    }
    class Configuration {}
    Module({ providers: [Options], exports: [Options] })(Configuration)

    const application = await applications.start({
      imports: [
        SluiceModule.registerQueueAsync(
          { name: 'mail', useClass: Options },
          { name: 'texts', imports: [Configuration], useExisting: Options },
        ),
      ],
    })
    const [mail, texts] = ['mail', 'texts'].map((name) =>
      application.get<Queue>(getQueueToken(name), { strict: false }),
    )
    for (const queue of [mail, texts, texts]) await queue?.submit({ type: 'SEND' })

    await expect(mail?.submit({ type: 'SEND' })).rejects.toMatchObject({ maxPending: 1 })
    await expect(texts?.submit({ type: 'SEND' })).rejects.toMatchObject({ maxPending: 2 })
  })
})

describe('forRootAsync', () => {
  it('takes its options from a factory with what it injects', async () => {
    class Configuration {
      readonly prefix = 'from-configuration'
    }
    class ConfigurationModule {}
    Module({ providers: [Configuration], exports: [Configuration] })(ConfigurationModule)

    const application = await applications.startWithout({
      imports: [
        SluiceModule.forRootAsync({
          imports: [ConfigurationModule],
          inject: [Configuration],
          useFactory: async ({ prefix }: Configuration) => ({ ...applications.options(), prefix }),
        }),
        SluiceModule.registerQueue({ name: 'mail' }),
      ],
    })
    await application.get<Queue>(getQueueToken('mail'), { strict: false }).submit({ type: 'SEND' })

    const keys = await applications.server.client().keys('from-configuration*')
    expect(keys.length).toBeGreaterThan(0)
  })

  it('takes them from a class', async () => {
    @Injectable()
    class Options implements SluiceOptionsFactory {
      createSluiceOptions() {
        return applications.options()
      }
    }

    const application = await applications.startWithout({ imports: [SluiceModule.forRootAsync({ useClass: Options })] })

    await expect(application.get(Sluice).ready()).resolves.toBeUndefined()
  })

  it('says at once when it is told in no way, or in two', () => {
    expect(() => SluiceModule.forRootAsync({})).toThrow(/one of useFactory, useClass and useExisting must be given/)
  })
})

describe('two configurations', () => {
  it('are told apart by their key', async () => {
    const application = await applications.startWithout({
      imports: [
        SluiceModule.forRoot(applications.options()),
        SluiceModule.forRoot('eu', applications.options({ prefix: 'eu' })),
        feature(SluiceModule.registerQueue({ name: 'mail' }, { name: 'mail-eu', configKey: 'eu' })),
      ],
    })

    const there = application.get<Sluice>(getSluiceToken('eu') as string, { strict: false })

    expect(there).not.toBe(application.get(Sluice))
    expect(there.queue('mail-eu')).toBe(application.get(getQueueToken('mail-eu'), { strict: false }))
  })
})

it('says which queue was not replaced where a test replaces the Sluice', async () => {
  const imports = [SluiceModule.forRoot({ redis: 'redis://127.0.0.1:1' }), SluiceModule.registerQueue({ name: 'mail' })]

  const made = Test.createTestingModule({ imports }).overrideProvider(Sluice).useValue({}).compile()

  await expect(made).rejects.toThrow('overrideProvider(getQueueToken("mail"))')
})
