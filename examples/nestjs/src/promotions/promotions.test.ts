import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Test } from '@nestjs/testing'
import { type Job, type JobContext, Sluice } from 'sluice'
import { getQueueToken } from 'sluice/nestjs'
import { AppModule } from '../app.module.js'
import { PartnerApi } from './partner-api.js'
import { PromotionsController } from './promotions.controller.js'
import { PromotionsProcessor } from './promotions.processor.js'

test('a promotion is sent when the limits allow it', async () => {
  const partner = Object.assign(new PartnerApi(), { send: async () => 200 })
  const processor = new PromotionsProcessor(partner)
  const job = { payload: { to: 'ann@example.org' } } as Job<{ to: string }>
  const context = { admit: async () => {}, signal: new AbortController().signal } as JobContext

  assert.deepEqual(await processor.send(job, context), { status: 200 })
})

test('recipients become jobs of one action', async () => {
  const submitted: unknown[] = []
  const submit = async (action: unknown) => {
    submitted.push(action)
    return { name: 'one', accepted: 1 }
  }
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(Sluice)
    .useValue({})
    .overrideProvider(getQueueToken('promotions'))
    .useValue({ submit, schedules: { set: async () => {} } })
    .compile()
  await module.init()

  await module.get(PromotionsController).send('acme', ['ann@example.org'])

  const jobs = [{ payload: { to: 'ann@example.org' } }]
  assert.deepEqual(submitted, [{ tenant: 'acme', type: 'SEND_PROMOTION', jobs }])
  await module.close()
})
