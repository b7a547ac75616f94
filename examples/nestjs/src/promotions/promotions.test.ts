import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Test } from '@nestjs/testing'
import { Sluice } from 'sluice'
import { getQueueToken } from 'sluice/nestjs'
import { runHandler } from 'sluice/testing'
import { AppModule } from '../app.module.js'
import { PartnerApi } from './partner-api.js'
import { PromotionsController } from './promotions.controller.js'
import { PromotionsProcessor } from './promotions.processor.js'

test('a promotion is sent when the limits allow it, and comes again when the partner says so', async () => {
  const replies = [new Response(), new Response(null, { status: 429, headers: { 'retry-after': '7' } })]
  const partner = Object.assign(new PartnerApi(), { send: async () => replies.shift() })
  const processor = new PromotionsProcessor(partner)
  const job = { payload: { to: 'ann@example.org' } }

  const sent = await runHandler(processor.send.bind(processor), job)
  const refused = await runHandler(processor.send.bind(processor), job)

  assert.deepEqual([sent.outcome, sent.admitted, sent.result], ['succeeded', 1, { status: 200 }])
  assert.deepEqual([refused.outcome, refused.retryAfterMs], ['throttled', 7_000])
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
