import { describe, expect, it } from 'vitest'
import { Output, type OutputStream } from './output.ts'
import { ProgressBars } from './progress-bar.ts'

function bars(stream: Partial<OutputStream>, environment: NodeJS.ProcessEnv = {}) {
  let written = ''
  const talkStream = { ...stream, write: (text: string) => (written += text) }
  const dataStream = { write: () => {} }
  const output = new Output({ isJson: false, dataStream, talkStream, environment })
  return { bars: new ProgressBars(output), written: () => written }
}

const half = { label: 'acme', done: 500, total: 1_000, perSecond: 99.7, etaMs: 5_000, failed: 2 }

describe('progress', () => {
  it('is a bar on a terminal, drawn over the one before', () => {
    const { bars: shown, written } = bars({ isTTY: true, columns: 120 }, { NO_COLOR: '1' })

    shown.update([half])
    shown.end([{ label: 'acme', done: 1_000, total: 1_000 }])

    expect(written()).toBe(
      `acme ${'█'.repeat(12)}${'░'.repeat(12)} 500/1,000  50 %  100/s  5 s left  2 failed\n` +
        `\x1b[1A\x1b[0Jacme ${'█'.repeat(24)} 1,000/1,000  100 %\n`,
    )
  })

  it('is plain lines elsewhere, none of what takes no time, and no line twice', () => {
    const { bars: shown, written } = bars({})

    shown.update([{ label: 'acme', done: 1, total: 1_000 }])
    shown.end([half])
    shown.end([half])

    expect(written()).toBe('acme: 500/1,000, 50 %, 100/s, 5 s left, 2 failed\n')
  })

  it.each([
    { where: 'a terminal that cannot draw', environment: { TERM: 'dumb' } },
    { where: 'a build server', environment: { CI: 'true' } },
  ])('is plain lines on $where', ({ environment }) => {
    const { bars: shown, written } = bars({ isTTY: true }, environment)

    shown.end([half])

    expect(written()).toMatch(/^acme: 500/)
  })

  it('is not drawn more often than can be seen', () => {
    const { bars: shown, written } = bars({ isTTY: true, columns: 120 })

    for (let done = 1; done <= 50; done++) shown.update([{ label: 'acme', done, total: 50 }])

    expect(written().match(/\n/g)).toHaveLength(1)
  })

  it('does not wrap: a line that is too long is cut', () => {
    const { bars: shown, written } = bars({ isTTY: true, columns: 40 }, { NO_COLOR: '1' })

    shown.end([half])

    expect(written()).toBe(`acme ${'█'.repeat(12)}${'░'.repeat(12)} 500/1,00…\x1b[0m\n`)
  })

  it('of something whose end is not known is a number', () => {
    const { bars: shown, written } = bars({})

    shown.end([{ label: 'acme', done: 1_234, total: undefined, note: 'RUNNING' }])

    expect(written()).toBe('acme: 1,234, RUNNING\n')
  })
})
