import type { z } from 'zod'

/** A schema for every field of a view: an answer is written by its schema, which leaves out without a word what it lacks. */
export type ShapeOf<View> = { readonly [Field in keyof View]-?: z.ZodType }
