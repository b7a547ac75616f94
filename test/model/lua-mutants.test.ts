import { describe, expect, it } from 'vitest'
import { withoutLine } from './broken-scripts.ts'
import { luaMutants } from './lua-mutants.ts'

describe('the mutants of the Lua', () => {
  it('change lines that are in the scripts', () => {
    expect(withoutLine(luaMutants)).toEqual([])
  })

  it('change them to something else', () => {
    expect(luaMutants.filter(({ line, becomes }) => line === becomes)).toEqual([])
  })

  it('are told apart by what they break', () => {
    expect(new Set(luaMutants.map(({ what }) => what)).size).toBe(luaMutants.length)
  })
})
