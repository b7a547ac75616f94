import { readFileSync } from 'node:fs'

const BY_DISTRIBUTION: readonly (readonly [names: RegExp, command: string])[] = [
  [/debian|ubuntu/, 'sudo apt-get install redis-server'],
  [/fedora|rhel|centos|amzn/, 'sudo dnf install redis'],
  [/alpine/, 'sudo apk add redis'],
  [/arch/, 'sudo pacman -S valkey'],
  [/suse/, 'sudo zypper install redis'],
]

/**
 * How redis-server is installed on a system.
 * @param osRelease - The text of /etc/os-release, which names a Linux distribution and what it is like.
 */
export function installCommand(platform: NodeJS.Platform = process.platform, osRelease = readOsRelease()): string {
  if (platform === 'darwin') return 'brew install redis'
  if (platform === 'win32') return 'wsl --install, then in it: sudo apt-get install redis-server'
  const names = [...osRelease.matchAll(/^ID(?:_LIKE)?=(.*)$/gm)].map((match) => match[1]).join(' ')
  const known = BY_DISTRIBUTION.find(([pattern]) => pattern.test(names))
  return known?.[1] ?? 'the package manager of this system (the package is called redis or valkey)'
}

function readOsRelease(): string {
  try {
    return readFileSync('/etc/os-release', 'utf8')
  } catch {
    return ''
  }
}
