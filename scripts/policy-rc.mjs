// Debian starts a service as soon as its package is installed. We want the program only: a Redis on the default port,
// under nobody's control, is not ours to leave on a machine. `policy-rc.d` is the hook Debian asks first.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'

const policy = '/usr/sbin/policy-rc.d'
const saved = `${policy}.before-sluice-setup`

/** 101 is "action forbidden by policy". */
const refusal = '#!/bin/sh\nexit 101\n'

function holdBack() {
  // A copy already saved is from a run that was killed: it, and not our own refusal, is what has to come back.
  if (existsSync(policy) && !existsSync(saved)) renameSync(policy, saved)
  writeFileSync(policy, refusal, { mode: 0o755 })
}

function restore() {
  if (existsSync(saved)) renameSync(saved, policy)
  else rmSync(policy, { force: true })
}

/**
 * Runs an installation during which no service is started, then puts the machine's own policy back.
 * @template T
 * @param {() => T} install
 * @returns {T}
 */
export function withServicesHeldBack(install) {
  holdBack()
  // The installation itself is synchronous: a signal to the group ends apt-get and is handled once that has returned.
  const ignore = () => {}
  process.on('SIGINT', ignore).on('SIGTERM', ignore)
  try {
    return install()
  } finally {
    restore()
    process.off('SIGINT', ignore).off('SIGTERM', ignore)
  }
}
