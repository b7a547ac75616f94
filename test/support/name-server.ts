import { createSocket, type Socket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'

/**
 * A name server on loopback that answers each question for IPv4 addresses with the next of the given answers, and with
 * the last one from then on: what an attacker does who wants a name to be checked as one thing and used as another.
 */
export class NameServer {
  /** The names that were asked for, in order. */
  readonly questions: string[] = []
  readonly #socket: Socket
  readonly #answers: string[][]

  private constructor(socket: Socket, answers: string[][]) {
    this.#socket = socket
    this.#answers = answers
    socket.on('message', (question, { port, address }) => socket.send(this.#answer(question), port, address))
  }

  static async start(...answers: string[][]): Promise<NameServer> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new NameServer(socket, answers)
  }

  /** Asks this server, and nobody else, each time. */
  get resolve(): (hostname: string) => Promise<string[]> {
    const resolver = new Resolver()
    resolver.setServers([`127.0.0.1:${this.#socket.address().port}`])
    return (hostname) => resolver.resolve4(hostname)
  }

  async stop(): Promise<void> {
    const closed = once(this.#socket, 'close')
    this.#socket.close()
    await closed
  }

  #answer(question: Buffer): Buffer {
    const nameEnd = question.indexOf(0, 12) + 1
    this.questions.push(labels(question.subarray(12, nameEnd)).join('.'))
    const addresses = (this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0]) ?? []
    const head = Buffer.from(question.subarray(0, 12))
    head.writeUInt16BE(0x8180, 2) // An answer, recursion available, no error.
    head.writeUInt16BE(addresses.length, 6)
    head.writeUInt32BE(0, 8)
    return Buffer.concat([head, question.subarray(12, nameEnd + 4), ...addresses.map(addressRecord)])
  }
}

/** An A record for the name of the question, that must not be remembered. */
function addressRecord(address: string): Buffer {
  const nameOfQuestion = [0xc0, 12]
  const typeAndClass = [0, 1, 0, 1]
  const timeToLive = [0, 0, 0, 0]
  return Buffer.from([...nameOfQuestion, ...typeAndClass, ...timeToLive, 0, 4, ...address.split('.').map(Number)])
}

function labels(name: Buffer): string[] {
  const length = name[0] ?? 0
  return length === 0 ? [] : [name.toString('latin1', 1, length + 1), ...labels(name.subarray(length + 1))]
}
