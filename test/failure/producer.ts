import { Child } from './child.ts'
import type { ProducerResult, ProducerSettings } from './producer-process.ts'

/** A producer process of a trial; it says what it did when it ends. */
export class Producer extends Child<ProducerResult> {
  constructor(settings: ProducerSettings) {
    super('producer-process.ts', settings)
  }

  /** It has submitted enough: waits until what it has begun is stored. */
  async finish(): Promise<ProducerResult> {
    this.process.send('finish')
    return this.result()
  }

  async result(): Promise<ProducerResult> {
    const [result] = await this.heard((heard) => heard.length > 0, 90_000)
    return result as ProducerResult
  }
}
