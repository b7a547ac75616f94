/**
 * Numbers that look like chance and are the same for the same seed, on every machine: the generator sfc32, seeded by a hash
 * of text. Each tenant has a stream of its own, so that what one draws does not depend on what the others do.
 */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: string) {
    const hash = hasher(seed)
    this.#a = hash()
    this.#b = hash()
    this.#c = hash()
    // The first numbers still show how the seed looked.
    for (let drawn = 0; drawn < 12; drawn++) this.next()
  }

  /** From 0 up to but not including 1. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }

  /** Of mean 1: the time between two events that know nothing of each other. */
  exponential(): number {
    return -Math.log(1 - this.next())
  }

  /** Of mean 0 and deviation 1 (Box and Muller's way, of which one of two numbers is used). */
  normal(): number {
    return Math.sqrt(2 * this.exponential()) * Math.cos(2 * Math.PI * this.next())
  }
}

/** Numbers of 32 bits from a text (xmur3). */
function hasher(text: string): () => number {
  let hash = 1779033703 ^ text.length
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 3432918353)
    hash = (hash << 13) | (hash >>> 19)
  }
  return () => {
    hash = Math.imul(hash ^ (hash >>> 16), 2246822507)
    hash = Math.imul(hash ^ (hash >>> 13), 3266489909)
    hash ^= hash >>> 16
    return hash
  }
}
