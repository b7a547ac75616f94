/** Why a call is not made, or not made again: no retry can help. Becomes the reason of the dead letter. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
}
