/**
 * A worker in a process of its own that runs `http.request` at its defaults. Run by `startHttpWorkers`; its settings come
 * as JSON in the first argument.
 */
import { httpRequest, type QueueOptions, Sluice } from '../../src/index.ts'
import { goFirst } from '../../src/testing/go-first.ts'

export interface HttpWorkerSettings {
  readonly redis: string
  readonly queue: string
  readonly options: QueueOptions
  readonly concurrency: number
}

const { redis, queue, options, concurrency } = JSON.parse(process.argv[2] ?? '') as HttpWorkerSettings
goFirst()
const handler = httpRequest({ allowHosts: ['127.0.0.1:*'], allowPrivate: ['127.0.0.1'] })
new Sluice({ redis }).queue(queue, options).process('http.request', handler, { concurrency })
process.on('disconnect', () => process.exit())
process.send?.({ is: 'ready' })
