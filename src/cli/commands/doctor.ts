import { type Command, Option } from 'commander'
import type { SluiceConfig } from '../../config/define-config.ts'
import type { AuditProgress, Sluice } from '../../index.ts'
import { observeQueue } from '../../sluice.ts'
import { CliError, toCliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { type LoadedConfig, loadConfig } from '../config.ts'
import { type Finding, failure } from '../doctor/finding.ts'
import type { ExitName } from '../exit-codes.ts'
import { commaList } from '../option-values.ts'
import type { Output, Style } from '../output.ts'
import { ProgressBars } from '../progress-bar.ts'
import { withStore } from '../queue-source.ts'
import { type StoreOptions, withStoreOf } from '../store-config.ts'

interface DoctorOptions extends StoreOptions {
  readonly queue?: readonly string[]
  readonly audit?: true
  readonly repair?: true
}

export function doctorCommand(): Command {
  const command = newCommand('doctor', {
    summary: 'looks for what will hurt: Redis, its settings, the clock, the config file; and says what to do',
    details:
      'It asks the store itself, not a server, and changes nothing there. --audit looks whether every job is in exactly one place ' +
      'and every count right, while the queue runs; --repair also puts right what differs. Warnings do not change the exit code: ' +
      'it is 4 if something fails, 2 if the config file does, 8 if Redis does not answer or cannot be used.',
    examples: [
      'sluice doctor',
      'sluice doctor --redis redis://redis.internal:6379 --json',
      'sluice doctor --audit --config sluice.config.ts',
    ],
  })
    .addOption(
      new Option('-q, --queue <names>', 'these queues beside those of the config file')
        .env('SLUICE_QUEUE')
        .argParser(commaList),
    )
    .option('--audit', 'also look at every job and count of the queues')
    .option('--repair', 'with --audit: put right what differs')
  return onCall<DoctorOptions>(withStore(command, 'the store of'), doctor)
}

async function doctor({ output, options }: Invocation<DoctorOptions>): Promise<ExitName> {
  if (options.repair && !options.audit) throw new CliError('usage', '--repair needs --audit')
  const report = new Report(output)
  const { checkConfig, checkNode } = await import('../doctor/machine-checks.ts')
  report.add(checkNode(process.versions.node))
  const loaded = await readConfig(options, report)
  if (!loaded) return report.end('usage')
  const ofConfig = checkConfig(loaded)
  for (const finding of ofConfig) report.add(finding)
  if (ofConfig.some(({ verdict }) => verdict === 'failure')) return report.end('usage')
  const config = withStoreOf(loaded.config, options)
  const { openSluice } = await import('../serve/open-queues.ts')
  // A server that evicts is to be looked at as well, and told.
  const sluice = openSluice({ ...config, allowEviction: true, log: () => {} })
  try {
    const { checkReach } = await import('../doctor/reach-check.ts')
    const reached = await checkReach(sluice, config)
    report.add(reached)
    if (reached.verdict === 'failure') return report.end('unreachable')
    const { checkStore } = await import('../doctor/store-checks.ts')
    const facts = {
      isEmbedded: config.redis === 'embedded',
      allowsEviction: config.allowEviction ?? false,
      replicasWanted: config.durability === undefined ? 0 : (config.durability.replicas ?? 1),
    }
    for (const finding of await checkStore(sluice, facts)) report.add(finding)
    await checkQueues(sluice, config, { output, options, report })
  } finally {
    await sluice.close()
  }
  return report.end('conflict')
}

/** Undefined: it cannot be read, which the report says. */
async function readConfig(options: DoctorOptions, report: Report): Promise<LoadedConfig | undefined> {
  try {
    return await loadConfig(process.cwd(), options.config)
  } catch (error) {
    report.add(failure('config', toCliError(error).message, 'mend the config file, or name another with --config'))
    return undefined
  }
}

async function checkQueues(
  sluice: Sluice,
  config: SluiceConfig,
  { output, options, report }: { output: Output; options: DoctorOptions; report: Report },
): Promise<void> {
  const names = new Set([...Object.keys(config.queues ?? {}), ...(options.queue ?? [])])
  if (names.size === 0) names.add('default')
  const { auditFinding, checkQueue } = await import('../doctor/queue-checks.ts')
  const { queueOptionsOf } = await import('../serve/open-queues.ts')
  const bars = new ProgressBars(output)
  for (const name of names) {
    const served = config.queues?.[name]
    const queue = observeQueue(sluice, name, served && queueOptionsOf(sluice, name, served))
    const finding = await checkQueue(queue)
    report.add(finding)
    if (!options.audit || finding.found.startsWith('not there')) continue
    const isRepairing = options.repair === true
    const onProgress = ({ part, tenants, differences }: AuditProgress) =>
      bars.update([
        {
          label: `audit of ${name}, tenants`,
          done: tenants,
          total: undefined,
          note: `${differences} differences, ${part}`,
        },
      ])
    const found = await queue.audit({ repair: isRepairing, onProgress })
    bars.clear()
    report.add(auditFinding(name, found, { isRepairing }))
    report.differences.push(...found.differences.map((difference) => ({ queue: name, ...difference })))
  }
}

const marks: Readonly<Record<Finding['verdict'], { mark: string; style: Style }>> = {
  ok: { mark: 'ok  ', style: 'green' },
  warning: { mark: 'warn', style: 'yellow' },
  failure: { mark: 'FAIL', style: 'red' },
}

/** What was found, said as it is found. */
class Report {
  readonly differences: object[] = []
  readonly #output: Output
  readonly #findings: Finding[] = []

  constructor(output: Output) {
    this.#output = output
  }

  add(finding: Finding): void {
    this.#findings.push(finding)
    if (this.#output.isJson) return
    const { mark, style } = marks[finding.verdict]
    this.#output.text(`${this.#output.style(style, mark)}  ${finding.check}: ${finding.found}`)
    if (finding.fix !== undefined) this.#output.text(`      → ${finding.fix}`)
  }

  /** @param ifFailed - How the command ends when something has failed. */
  end(ifFailed: ExitName): ExitName {
    const [failures, warnings] = [this.#count('failure'), this.#count('warning')]
    if (this.#output.isJson) {
      this.#output.json({ checks: this.#findings, differences: this.differences, failures, warnings })
    } else {
      for (const difference of this.differences) this.#output.text(JSON.stringify(difference))
      this.#output.talk(failures + warnings === 0 ? 'All is well.' : `failures: ${failures}, warnings: ${warnings}`)
    }
    return failures > 0 ? ifFailed : 'ok'
  }

  #count(verdict: Finding['verdict']): number {
    return this.#findings.filter((finding) => finding.verdict === verdict).length
  }
}
