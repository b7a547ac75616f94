/** How far a queue or a tenant is behind, as several routes show it. */
import { z } from 'zod'
import { congestionLevels } from '../engine/congestion.ts'
import type { Backlog } from '../engine/congestion-control.ts'
import { instant } from './fields.ts'
import type { ShapeOf } from './view-shape.ts'

export const congestionLevel = z
  .enum(congestionLevels)
  .meta({ description: 'By how many times the shortest backoff it is.' })

export const backlogFields = {
  waiting: z.number(),
  speed: z.number().meta({ description: 'Starts a second over the last ten.' }),
  isMeasured: z.boolean().meta({ description: 'False: the speed is what limits let expect.' }),
  backoffMs: z.number().meta({ description: 'How long a job waits that an upstream pushes back now.' }),
  level: congestionLevel,
  etaMs: z.number().meta({ description: 'Until all that waits has started.' }),
  etaAt: instant,
} satisfies ShapeOf<Backlog>

export const exampleBacklog = {
  waiting: 500,
  speed: 100,
  isMeasured: true,
  backoffMs: 6000,
  level: 'MODERATE',
  etaMs: 5000,
  etaAt: 1768000005000,
}
