import type fc from 'fast-check'

/** A parser with valid inputs to mutate, or with another source of inputs. */
export type Subject = { name: string; parse(bytes: Uint8Array<ArrayBuffer>): unknown } & (
  | { seeds: Uint8Array[] }
  | { inputs: fc.Arbitrary<Uint8Array<ArrayBuffer>> }
)
