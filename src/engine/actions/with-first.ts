/** The same values, of which the first has been passed to `check`; nothing else of them is read when that throws. */
export async function withFirst<T>(
  values: Iterable<T> | AsyncIterable<T>,
  check: (first: T) => void,
): Promise<Iterable<T> | AsyncIterable<T>> {
  if (Array.isArray(values)) {
    if (values.length > 0) check(values[0] as T)
    return values
  }
  if (Symbol.iterator in values) {
    const iterator = values[Symbol.iterator]()
    const first = iterator.next()
    if (first.done) return []
    try {
      check(first.value)
    } catch (error) {
      iterator.return?.()
      throw error
    }
    return startingWith(first.value, iterator)
  }
  const iterator = values[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done) return []
  try {
    check(first.value)
  } catch (error) {
    await iterator.return?.()
    throw error
  }
  return asyncStartingWith(first.value, iterator)
}

function* startingWith<T>(first: T, rest: Iterator<T>): Generator<T> {
  let isOver = false
  try {
    yield first
    for (let next = rest.next(); ; next = rest.next()) {
      if (next.done) {
        isOver = true
        return
      }
      yield next.value
    }
  } finally {
    if (!isOver) rest.return?.()
  }
}

async function* asyncStartingWith<T>(first: T, rest: AsyncIterator<T>): AsyncGenerator<T> {
  let isOver = false
  try {
    yield first
    for (;;) {
      const next = await rest.next()
      if (next.done) {
        isOver = true
        return
      }
      yield next.value
    }
  } finally {
    if (!isOver) await rest.return?.()
  }
}
