export type RedisArgument = string | number

/** The little of a Redis client that the rest needs. */
export interface Redis {
  /** Sends one command. */
  callWith(command: string, args: readonly RedisArgument[]): Promise<unknown>
}
