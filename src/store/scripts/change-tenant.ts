import type { Requests } from '../requests.ts'
import { changeTenant as script } from '../scripts.generated.ts'
import type { LimitChange } from '../settings.ts'

export interface TenantPatch {
  readonly weight?: number
  readonly base?: number
  /** '' takes an override off. */
  readonly level?: string
  readonly paused?: boolean
  readonly unpark?: true
  readonly limits?: Readonly<Record<string, LimitChange & { readonly name: string }>>
}

/** @param tenant - Its token. */
export async function changeTenant(requests: Requests, tenant: string, patch: TenantPatch, nowUs = ''): Promise<void> {
  const args = { nowGiven: nowUs, name: tenant, patchJson: JSON.stringify(patch) }
  await requests.run(script, () => args)
}
