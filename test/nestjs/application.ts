import 'reflect-metadata'
import type { INestApplicationContext, LoggerService, ModuleMetadata } from '@nestjs/common'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { SluiceModule, type SluiceModuleOptions } from 'sluice/nestjs'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'

/** What an application has told its log. */
class KeptLog implements LoggerService {
  readonly lines: string[] = []
  readonly log = () => {}
  readonly warn = (message: unknown) => void this.lines.push(String(message))
  readonly error = (message: unknown) => void this.lines.push(String(message))
}

/** Applications of one test file, on one Redis. They are closed after each test; each test has a prefix of its own. */
export class Applications {
  readonly log = new KeptLog()
  #server: TestRedis | undefined
  #open: INestApplicationContext[] = []
  #tests = 0

  get server(): TestRedis {
    if (!this.#server) throw new Error('the server has not been started')
    return this.#server
  }

  /** For `forRoot`. */
  options(more: Partial<SluiceModuleOptions> = {}): SluiceModuleOptions {
    return { redis: { path: this.server.path }, prefix: `test-${this.#tests}`, ...more }
  }

  /** An application whose root module imports `forRoot` and this; rejects when it does not start. */
  async start(
    { imports = [], ...metadata }: ModuleMetadata,
    options?: Partial<SluiceModuleOptions>,
  ): Promise<INestApplicationContext> {
    return this.startWithout({ imports: [SluiceModule.forRoot(this.options(options)), ...imports], ...metadata })
  }

  /** The same without `forRoot`. */
  async startWithout(metadata: ModuleMetadata): Promise<INestApplicationContext> {
    class Root {}
    Module(metadata)(Root)
    const application = await NestFactory.createApplicationContext(Root, { logger: this.log, abortOnError: false })
    this.#open.push(application)
    return application
  }

  async startServer(): Promise<void> {
    this.#server = await startRedis()
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((application) => application.close()))
    this.log.lines.length = 0
    this.#tests += 1
  }

  stopServer(): Promise<void> {
    return this.server.stop()
  }
}

export function useApplications(): Applications {
  const applications = new Applications()
  beforeAll(() => applications.startServer())
  afterEach(() => applications.endTest())
  afterAll(() => applications.stopServer())
  return applications
}
