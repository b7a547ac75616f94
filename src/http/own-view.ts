import type { Gate } from '../engine/explain/explanation.ts'
import type { LimitStatus } from '../engine/limit-status.ts'
import type { Caller } from './api-keys.ts'
import type { ExplanationView } from './explanation-view.ts'

/** What the key of a tenant sees of what it shares with others: that it holds back or not, and nothing of the others. */

type GateView = ExplanationView['gates'][number]

/** Its own limits, without how many others there are. */
export function limitsSeenBy(
  caller: Caller,
  limits: readonly LimitStatus[],
): (Omit<LimitStatus, 'activeTenants'> & { activeTenants?: number })[] {
  if (caller.tenant === undefined) return [...limits]
  return limits.filter(({ scope }) => scope === 'tenant').map(({ activeTenants: _, ...own }) => own)
}

export function explanationSeenBy(caller: Caller, whole: ExplanationView): ExplanationView {
  if (caller.tenant === undefined) return whole
  const gates = whole.gates.map((gate) => (isShared(gate) ? cut(gate) : gate))
  const binds = gates.find(({ open }) => !open)
  const { text, since: _since, binds: _binds, ...rest } = whole
  return {
    ...rest,
    gates,
    text: binds?.text ?? text,
    ...(binds && { binds }),
    ...(binds?.since !== undefined && { since: binds.since }),
  }
}

function isShared(gate: GateView): boolean {
  return gate.gate === 'turn' || gate.gate === 'workers' || (gate.gate === 'limit' && gate.scope !== 'tenant')
}

const words: Partial<Record<Gate['gate'], { readonly open: string; readonly closed: string }>> = {
  limit: { open: 'a limit of the queue grants', closed: 'A limit of the queue grants nothing' },
  turn: { open: 'it may have its turn', closed: 'Others have their turn first.' },
  workers: { open: 'workers wait for work', closed: 'No worker has a free hand.' },
}

function cut({ gate, open, until }: GateView): GateView {
  const said = words[gate]
  const text = (open ? said?.open : said?.closed) ?? ''
  if (gate !== 'limit' || open) return { gate, open, text }
  if (until === undefined) return { gate, open, text: `${text} for now.` }
  return { gate, open, until, text: `${text} until ${new Date(until).toISOString()}.` }
}
