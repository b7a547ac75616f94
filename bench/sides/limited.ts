import { bullmqSide } from './bullmq.ts'
import type { Side } from './side.ts'
import { sluiceSide } from './sluice.ts'

export type Product = 'sluice' | 'bullmq'

/** A queue under one limit for the whole of it, as each product has it: a bucket here, a window there. */
export function limitedSide({
  product,
  redisPath,
  queue,
  limitPerSecond,
}: {
  product: Product
  redisPath: string
  queue: string
  limitPerSecond: number
}): Side {
  return product === 'sluice'
    ? sluiceSide(redisPath, { queue, limits: { queue: `${limitPerSecond}/s` } })
    : bullmqSide(redisPath, { queue, limiter: { max: limitPerSecond, duration: 1_000 } })
}
