import { fromToken } from '../store/names.ts'
import { readTenantPage } from '../store/tenant-tokens.ts'
import { insideOf, type Queue } from './queue.ts'
import type { TenantView } from './tenant-control.ts'

/** Tenants that have work or are paused, in no order. Undefined `cursor`: there are no more. */
export interface TenantPage {
  readonly tenants: readonly TenantView[]
  readonly cursor: string | undefined
}

/**
 * `queue.tenants()` page by page, for callers between whose requests nothing is kept: a tenant that changes its state
 * meanwhile may be missed or come twice.
 */
export async function tenantPage(
  queue: Queue,
  page: { cursor?: string | undefined; limit: number },
): Promise<TenantPage> {
  const { redis, keys, registration } = insideOf(queue)
  await registration.readable()
  const { tokens, cursor } = await readTenantPage(redis, keys, page)
  return { tenants: await Promise.all(tokens.map((token) => queue.tenant(fromToken(token)).view())), cursor }
}
