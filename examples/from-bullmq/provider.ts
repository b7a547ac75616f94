import { setTimeout as sleep } from 'node:timers/promises'

export interface Mail {
  readonly customer: string
  readonly kind: 'campaign' | 'confirmation' | 'reset' | 'reminder' | 'digest'
  readonly to: string
}

export class NoSuchAddressError extends Error {}

/**
 * The mail provider that both applications call, within their process. It knows nobody called "nobody", and is not ready when it
 * is first asked for "flaky".
 */
export class Provider {
  readonly #sent: Mail[] = []
  readonly #waiting = new Set<() => void>()
  #triesForFlaky = 0

  async send(mail: Mail): Promise<void> {
    await sleep(5)
    if (mail.to === 'nobody') throw new NoSuchAddressError('there is no such address')
    if (mail.to === 'flaky' && ++this.#triesForFlaky === 1) throw new Error('not ready')
    this.#sent.push(mail)
    for (const look of this.#waiting) look()
  }

  /** Resolves when so many mails of a kind were sent. */
  sent(kind: Mail['kind'], count: number): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.#sent.filter((mail) => mail.kind === kind).length < count) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** What came of it all, which must be the same for both; and when the small customer's campaign was done, which is not. */
  report(campaigns: Readonly<Record<string, { sent: number; failed: number }>>) {
    const sent: Record<string, number> = {}
    for (const { customer, kind } of this.#sent) sent[`${customer} ${kind}`] = (sent[`${customer} ${kind}`] ?? 0) + 1
    const isOfSmall = ({ customer, kind }: Mail) => customer === 'initech' && kind === 'campaign'
    return {
      results: { sent, triesForFlaky: this.#triesForFlaky, campaigns },
      mailsBeforeSmallWasDone: this.#sent.findLastIndex(isOfSmall) + 1,
      mails: this.#sent.length,
    }
  }
}

/** A customer with many recipients, and one with few who comes a moment later. */
export const recipients = {
  globex: ['nobody', 'flaky', ...Array.from({ length: 298 }, (_, at) => `user-${at}`)],
  initech: Array.from({ length: 10 }, (_, at) => `user-${at}`),
} as const
