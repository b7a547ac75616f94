import type { QueueEvent } from '../engine/events.ts'
import type { ProcessOptions } from '../engine/queue-options.ts'

/** What a class decorator says. */
export type ClassMark =
  | { readonly decorator: 'Processor'; readonly queue: string; readonly process: ProcessOptions }
  | { readonly decorator: 'QueueEventsListener'; readonly queue: string }

/** What a method decorator says. */
export type MethodMark =
  | {
      readonly decorator: 'Process'
      readonly key: string | symbol
      readonly type: string
      readonly process: ProcessOptions
    }
  | {
      readonly decorator: 'OnQueueEvent'
      readonly key: string | symbol
      readonly types: readonly QueueEvent['type'][]
    }

/*
 * Kept on the class and its prototype rather than on the method's function, where NestJS keeps such things: a decorator of
 * another package that wraps the method would hide them. Symbols of the realm, so that two copies of this package agree.
 */
const classMarks = Symbol.for('sluice.nestjs.class')
const methodMarks = Symbol.for('sluice.nestjs.methods')

interface Marked {
  [classMarks]?: ClassMark[]
  [methodMarks]?: MethodMark[]
}

export function markClass(target: object, mark: ClassMark): void {
  own(target, classMarks).push(mark)
}

export function markMethod(prototype: object, mark: MethodMark): void {
  own(prototype, methodMarks).push(mark)
}

/** The class's own alone: what is derived from a processor says itself which queue it is for. */
export function classMarksOf(target: object): readonly ClassMark[] {
  return Object.hasOwn(target, classMarks) ? ((target as Marked)[classMarks] ?? []) : []
}

/** Those of the classes it is derived from as well, unless it has a method of that name itself. */
export function methodMarksOf(target: { prototype?: object }): readonly MethodMark[] {
  const found: MethodMark[] = []
  const hidden = new Set<string | symbol>()
  for (let at = target.prototype; at && at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    const marks = Object.hasOwn(at, methodMarks) ? ((at as Marked)[methodMarks] ?? []) : []
    found.push(...marks.filter(({ key }) => !hidden.has(key)))
    for (const key of Reflect.ownKeys(at)) hidden.add(key)
  }
  return found
}

function own<Name extends keyof Marked>(target: object, name: Name): NonNullable<Marked[Name]> {
  if (!Object.hasOwn(target, name)) Object.defineProperty(target, name, { value: [] })
  return (target as Marked)[name] as NonNullable<Marked[Name]>
}
