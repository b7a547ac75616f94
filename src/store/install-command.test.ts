import { expect, it } from 'vitest'
import { installCommand } from './install-command.ts'

it.each([
  ['linux', 'ID=debian\n', 'sudo apt-get install redis-server'],
  ['linux', 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', 'sudo apt-get install redis-server'],
  ['linux', 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'sudo dnf install redis'],
  ['linux', 'ID=alpine\n', 'sudo apk add redis'],
  ['darwin', '', 'brew install redis'],
  ['linux', '', 'the package manager of this system (the package is called redis or valkey)'],
] as const)('names the command for %s %j', (platform, osRelease, command) => {
  expect(installCommand(platform, osRelease)).toBe(command)
})
