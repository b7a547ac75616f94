import type { DiscoveryService } from '@nestjs/core'
import { Sluice } from '../sluice.ts'

/**
 * For an application that does not start: NestJS calls no hooks of it, and a connection would keep its process alive, or that
 * of its tests.
 */
export async function closeAll(discovery: DiscoveryService): Promise<void> {
  const made = discovery.getProviders().map(({ instance }) => instance as unknown)
  await Promise.all(made.filter((each) => each instanceof Sluice).map((sluice) => sluice.close()))
}
