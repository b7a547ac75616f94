import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { HttpUpstream } from '../../test/support/http-upstream.ts'
import type { ActionSummary } from '../engine/actions/action-view.ts'
import { httpRequest } from './http-request/http-request.ts'
import { WebhookTeller } from './webhooks.ts'

const loaded = vi.hoisted(() => ({ times: 0 }))
vi.mock('undici', (original) => {
  loaded.times += 1
  return original()
})

const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
let receiver: HttpUpstream
let teller: WebhookTeller

beforeEach(async () => {
  receiver = await HttpUpstream.start((_, response) => response.end())
  teller = new WebhookTeller({ allowPrivate: ['127.0.0.1'] })
})
afterEach(async () => {
  teller.close()
  await receiver.stop()
})

async function toldOf(aggregate: unknown): Promise<unknown> {
  const summary = { state: 'COMPLETED', aggregate } as ActionSummary
  await teller.tell({ url: receiver.url('/told'), secret }, 'msg_1', summary)
  return (JSON.parse(receiver.arrivals.at(-1)?.body ?? '') as { data: unknown }).data
}

it('loads what makes calls with a processor, or with its first webhook, and not when it is made', async () => {
  await vi.dynamicImportSettled()
  const before = loaded.times

  httpRequest({ allowHosts: [] })
  await vi.dynamicImportSettled()

  expect([before, loaded.times]).toEqual([0, 1])
})

it('says at once which address of its options is none', () => {
  expect(() => new WebhookTeller({ allowPrivate: ['10.0.0.0/99'] })).toThrow(/allowPrivate\[0\]/)
})

it('leaves out an aggregate by its bytes, whatever its letters', async () => {
  expect(await toldOf('x'.repeat(11_000))).toEqual({ state: 'COMPLETED', aggregate: 'x'.repeat(11_000) })
  expect(await toldOf('ü'.repeat(11_000))).toEqual({ state: 'COMPLETED', aggregateLeftOut: 22_002 })
})
