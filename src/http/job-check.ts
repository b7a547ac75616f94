import { type JobInput, Packer } from '../engine/submission.ts'
import { checkBuiltIn } from './built-in-check.ts'

/**
 * The engine opens an action and then reads its jobs. So that a request which is refused leaves no empty action behind,
 * jobs that are there are looked at before: all of a list, the first of a stream. How large a payload may be only the
 * queue knows.
 */
export class JobCheck {
  readonly #packer: Packer
  readonly #type: string | undefined
  #index = 0

  constructor(tenant: string, type: string | undefined) {
    const place = { tenant, level: 'normal', laneToken: 'checked' } as const
    this.#type = type
    this.#packer = new Packer(type === undefined ? {} : { type }, Number.MAX_SAFE_INTEGER, place)
  }

  /** Throws what submitting it would throw. */
  check(job: object): void {
    const index = this.#index++
    this.#packer.pack(job as JobInput, index, Date.now())
    checkBuiltIn(job, this.#type, index)
  }
}
