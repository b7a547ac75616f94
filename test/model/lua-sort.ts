/**
 * Sorts as Lua 5.1 does. Its quicksort is not stable, so where the engine leaves the order of equals open, what comes
 * first depends on the algorithm itself.
 */
export function luaSort<T>(list: T[], isBefore: (a: T, b: T) => boolean): void {
  const at = (index: number): T => list[index - 1] as T
  const swap = (a: number, b: number): void => {
    const kept = at(a)
    list[a - 1] = at(b)
    list[b - 1] = kept
  }
  const sort = (from: number, to: number): void => {
    let low = from
    let high = to
    while (low < high) {
      if (isBefore(at(high), at(low))) swap(low, high)
      if (high - low === 1) return
      const middle = Math.floor((low + high) / 2)
      if (isBefore(at(middle), at(low))) swap(middle, low)
      else if (isBefore(at(high), at(middle))) swap(middle, high)
      if (high - low === 2) return
      const pivot = at(middle)
      swap(middle, high - 1)
      let i = low
      let j = high - 1
      for (;;) {
        while (isBefore(at(++i), pivot));
        while (isBefore(pivot, at(--j)));
        if (j < i) break
        swap(i, j)
      }
      swap(high - 1, i)
      if (i - low < high - i) {
        sort(low, i - 1)
        low = i + 1
      } else {
        sort(i + 1, high)
        high = i - 1
      }
    }
  }
  sort(1, list.length)
}
