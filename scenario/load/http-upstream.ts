import { Child } from '../../test/failure/child.ts'
import type {
  FromHttpUpstream,
  HttpCall,
  HttpUpstreamSettings,
  ToHttpUpstream,
} from '../processes/http-upstream-process.ts'
import type { ScenarioContext } from '../scenario.ts'

/** The HTTP API that pushes back, as a scenario sees it. */
export class HttpUpstream {
  readonly #child: Child<FromHttpUpstream>
  readonly #port: number

  private constructor(child: Child<FromHttpUpstream>, port: number) {
    this.#child = child
    this.#port = port
  }

  static async start({ onEnd }: ScenarioContext, settings: HttpUpstreamSettings): Promise<HttpUpstream> {
    const program = new URL('../processes/http-upstream-process.ts', import.meta.url)
    const child = new Child<FromHttpUpstream>(program.href, settings)
    onEnd(() => child.end())
    const [first] = await child.heard((messages) => messages.length > 0)
    if (first?.is !== 'ready') throw new Error('the upstream did not start')
    return new HttpUpstream(child, first.port)
  }

  urlOf(account: string): string {
    return `http://127.0.0.1:${this.#port}/${account}`
  }

  /** Every call so far, in the order of arrival. */
  async calls(): Promise<HttpCall[]> {
    const answer = await this.#ask({ ask: 'calls' }, 'calls')
    return answer.calls
  }

  /** Says nothing of it to anybody. */
  async setRate(account: string, perSecond: number): Promise<void> {
    await this.#ask({ set: account, perSecond }, 'set')
  }

  async #ask<Is extends FromHttpUpstream['is']>(
    question: ToHttpUpstream,
    is: Is,
  ): Promise<Extract<FromHttpUpstream, { is: Is }>> {
    const answers = (messages: readonly FromHttpUpstream[]) =>
      messages.filter((message): message is Extract<FromHttpUpstream, { is: Is }> => message.is === is)
    const before = answers(this.#child.messages).length
    this.#child.process.send(question)
    const heard = await this.#child.heard((messages) => answers(messages).length > before)
    return answers(heard).at(-1) as Extract<FromHttpUpstream, { is: Is }>
  }
}
