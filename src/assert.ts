/**
 * Options → defaults → checks of values and of relations → frozen settings. All problems are reported at once.
 *
 *   const settings = checkOptions(`queue "${name}"`, options, {
 *     leaseMs: integer({ min: 1_000, default: 15_000 }),
 *     level: oneOf(['high', 'normal', 'low'], { default: 'normal' }),
 *     retry: optional(group({ maxRetries: integer({ min: 0, default: 3 }) })),
 *   })
 */
import { InvalidOptionsError, type OptionProblem } from './errors.ts'

/** Says that the value at `path` cannot be used. `problem` continues the sentence: `must be …`. */
export type Report = (path: string, problem: string) => void

/**
 * Turns a given value (undefined when there is none) into the setting. A rule that reports a problem may return
 * anything: the settings are thrown away then.
 */
export type Rule<T> = (value: unknown, path: string, report: Report) => T

// biome-ignore lint/suspicious/noExplicitAny: a rule of any type; unknown would not let its type be inferred.
type Rules = Record<string, Rule<any>>

export type Settings<R extends Rules> = { readonly [Name in keyof R]: R[Name] extends Rule<infer T> ? T : never }

/**
 * @param subject - What the options are for, as the error names it: `queue "promotions"`.
 * @param relations - Checks of one setting against another; runs when each of them is right by itself.
 */
export function checkOptions<R extends Rules>(
  subject: string,
  input: unknown,
  rules: R,
  relations?: (settings: Settings<R>, report: Report) => void,
): Settings<R> {
  const problems: OptionProblem[] = []
  const report: Report = (path, problem) => problems.push({ path, problem })
  const settings = checkGroup(input ?? {}, '', rules, report)
  if (problems.length === 0) relations?.(settings, report)
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
  return settings
}

function checkGroup<R extends Rules>(input: unknown, path: string, rules: R, report: Report): Settings<R> {
  const settings: Record<string, unknown> = {}
  if (!isPlainObject(input)) {
    report(path || 'options', `must be an object, not ${show(input)}`)
    return settings as Settings<R>
  }
  const prefix = path === '' ? '' : `${path}.`
  for (const [name, rule] of Object.entries(rules)) {
    settings[name] = rule(Object.hasOwn(input, name) ? input[name] : undefined, prefix + name, report)
  }
  const known = Object.keys(rules)
  for (const name of Object.keys(input)) {
    if (!Object.hasOwn(rules, name)) report(prefix + name, `is not an option${didYouMean(name, known)}`)
  }
  return Object.freeze(settings) as Settings<R>
}

interface NumberRange {
  min?: number
  max?: number
  default?: number
}

/** A whole number. Required unless it has a default. */
export function integer(range: NumberRange = {}): Rule<number> {
  return withDefault(range, numberRule('a whole number', Number.isSafeInteger, range))
}

/** A finite number. Required unless it has a default. */
export function number(range: NumberRange = {}): Rule<number> {
  return withDefault(range, numberRule('a number', Number.isFinite, range))
}

/** A finite number above 0. Required unless it has a default. */
export function positive(range: Omit<NumberRange, 'min'> = {}): Rule<number> {
  const isPositive = (value: number) => Number.isFinite(value) && value > 0
  return withDefault(range, numberRule('a number above 0', isPositive, range))
}

export function boolean(options: { default?: boolean } = {}): Rule<boolean> {
  return withDefault(options, (value, path, report) => {
    if (typeof value !== 'boolean') report(path, `must be true or false, not ${show(value)}`)
    return value as boolean
  })
}

export function oneOf<const T extends string | number | boolean>(
  choices: readonly T[],
  options: { default?: NoInfer<T> } = {},
): Rule<T> {
  return withDefault(options, (value, path, report) => {
    if (!choices.includes(value as T)) {
      const hint = typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''
      report(path, `must be ${anyOf(choices.map(show))}, not ${show(value)}${hint}`)
    }
    return value as T
  })
}

interface TextOptions {
  minLength?: number
  maxLength?: number
  /** What it must look like, and in words: `{ test: /^[a-z]+$/, words: 'lower-case letters' }`. */
  pattern?: { test: RegExp | ((value: string) => boolean); words: string }
  /** Keeps the value out of messages. */
  secret?: boolean
  default?: string
}

/** Text of at least one character, unless `minLength` says 0. */
export function text(options: TextOptions = {}): Rule<string> {
  const { minLength = 1, maxLength = Number.POSITIVE_INFINITY, pattern, secret = false } = options
  return withDefault(options, (value, path, report) => {
    const shown = secret ? '' : `, not ${show(value)}`
    if (typeof value !== 'string') report(path, `must be text${shown}`)
    else if (value.length < minLength && minLength === 1) report(path, 'must not be empty')
    else if (value.length < minLength) report(path, `must have at least ${minLength} characters${shown}`)
    else if (value.length > maxLength) report(path, `must have at most ${maxLength} characters, not ${value.length}`)
    else if (pattern && !fits(value, pattern.test)) report(path, `must be ${pattern.words}${shown}`)
    return value as string
  })
}

function fits(value: string, test: RegExp | ((value: string) => boolean)): boolean {
  return typeof test === 'function' ? test(value) : test.test(value)
}

/** A function, taken as it is. */
export function callback<T extends (...args: never[]) => unknown>(options: { default?: T } = {}): Rule<T> {
  return withDefault(options, (value, path, report) => {
    if (typeof value !== 'function') report(path, `must be a function, not ${show(value)}`)
    return value as T
  })
}

export const abortSignal: Rule<AbortSignal> = (value, path, report) => {
  if (!(value instanceof AbortSignal)) report(path, `must be an AbortSignal, not ${show(value)}`)
  return value as AbortSignal
}

/** Options inside an option. Missing, it is made of the defaults of its own rules. */
export function group<R extends Rules>(rules: R): Rule<Settings<R>> {
  return (value, path, report) => checkGroup(value ?? {}, path, rules, report)
}

/** An object with names of the caller's own choice, each value under one rule. Missing, it is empty. */
export function record<T>(rule: Rule<T>): Rule<Readonly<Record<string, T>>> {
  return (value, path, report) => {
    // Without a prototype, so that a name such as __proto__ is a name like any other.
    const settings: Record<string, T> = Object.create(null)
    if (value === undefined) return Object.freeze(settings)
    if (!isPlainObject(value)) report(path, `must be an object, not ${show(value)}`)
    else for (const [name, each] of Object.entries(value)) settings[name] = rule(each, `${path}.${name}`, report)
    return Object.freeze(settings)
  }
}

/** Undefined when it is not given, also when `rule` alone would require it or have a default. */
export function optional<T>(rule: Rule<T>): Rule<T | undefined> {
  return (value, path, report) => (value === undefined ? undefined : rule(value, path, report))
}

/** Whatever `parse` makes of it; what `parse` throws becomes the problem. */
export function parsed<T>(parse: (value: unknown) => T, options: { default?: T } = {}): Rule<T> {
  return withDefault(options, (value, path, report) => {
    try {
      return parse(value)
    } catch (error) {
      report(path, error instanceof Error ? error.message : String(error))
      return undefined as T
    }
  })
}

function withDefault<T>(options: { default?: T }, rule: Rule<T>): Rule<T> {
  return (value, path, report) => {
    if (value !== undefined) return rule(value, path, report)
    if (!('default' in options)) report(path, 'is required')
    return options.default as T
  }
}

function numberRule(noun: string, isValid: (value: number) => boolean, { min, max }: NumberRange): Rule<number> {
  const bounds =
    min !== undefined && max !== undefined
      ? ` from ${min} to ${max}`
      : min !== undefined
        ? ` of at least ${min}`
        : max !== undefined
          ? ` of at most ${max}`
          : ''
  return (value, path, report) => {
    const fits =
      typeof value === 'number' &&
      isValid(value) &&
      value >= (min ?? Number.NEGATIVE_INFINITY) &&
      value <= (max ?? Number.POSITIVE_INFINITY)
    if (!fits) report(path, `must be ${noun}${bounds}, not ${show(value)}`)
    return value as number
  }
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

const LONGEST_SHOWN = 60

/** A value as a message can hold it: short, on one line, and never failing. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value)
  }
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'an array'
  if (typeof value !== 'object' || value === null) return String(value)
  const name: unknown = isPlainObject(value) ? '' : value.constructor?.name
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'an object'
}

/** `a, b or c` */
export function anyOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

/** `; did you mean "leaseMs"?` when a known name is near enough to be meant, else nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  let best: string | undefined
  // Two letters in the wrong order are a distance of 2; more than that and a third of the word is another word.
  let bestDistance = (name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3))) + 1
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best === undefined ? '' : `; did you mean ${JSON.stringify(best)}?`
}

/** Letters to insert, delete or replace to get from one to the other; `atLeast` when it is that or more. */
function editDistance(from: string, to: string, atLeast: number): number {
  if (Math.abs(from.length - to.length) >= atLeast) return atLeast
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replace = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      current[column] = Math.min(replace, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1)
    }
    previous = current
  }
  return previous[to.length] ?? atLeast
}
