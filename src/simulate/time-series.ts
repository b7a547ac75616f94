/**
 * Values over time at even distances. When there are too many, two become one and the distance doubles: a simulation that
 * drains does not know how long it will take.
 */
export class TimeSeries {
  readonly #columns: readonly Column[]
  readonly #most: number
  #periodUs: number

  constructor(columns: readonly Column[], options: { periodUs: number; most: number }) {
    this.#columns = columns
    this.#periodUs = options.periodUs
    this.#most = options.most
  }

  get periodUs(): number {
    return this.#periodUs
  }

  /** The value of each column now: `periodUs` after the last time. */
  record(): void {
    for (const column of this.#columns) column.values.push(column.read())
    if ((this.#columns[0]?.values.length ?? 0) < this.#most) return
    for (const column of this.#columns) column.values = halved(column.values, column.kind)
    this.#periodUs *= 2
  }
}

/** `level`: how it is at that instant. `mean`: how it was since the last. */
export interface Column {
  readonly kind: 'level' | 'mean'
  values: number[]
  read(): number
}

export function column(kind: Column['kind'], read: () => number): Column {
  return { kind, values: [], read }
}

function halved(values: readonly number[], kind: Column['kind']): number[] {
  const half: number[] = []
  for (let at = 1; at < values.length; at += 2) {
    const [first = 0, second = 0] = [values[at - 1], values[at]]
    half.push(kind === 'level' ? second : (first + second) / 2)
  }
  return half
}
