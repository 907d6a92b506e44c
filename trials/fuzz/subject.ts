import type fc from 'fast-check'

/** A parser, and genuine inputs to start mutations from, or another way to make inputs. */
export type Subject = { name: string; parse(bytes: Uint8Array<ArrayBuffer>): unknown } & (
  | { seeds: Uint8Array[] }
  | { inputs: fc.Arbitrary<Uint8Array<ArrayBuffer>> }
)
