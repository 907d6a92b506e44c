import { createRandom } from '@countersign/testing'
import type { Target } from './targets.ts'

export type SweepResult = {
  name: string
  tried: number
  /** Mutations that were accepted, described: there must be none. */
  accepted: string[]
  /** Mutations that ended in anything but a typed error, described: there must be none. */
  crashed: string[]
}

export type SweepOptions = {
  /** The part of all mutations to try, from 0 to 1. */
  share: number
  /** Chooses the bit of each flip, and which mutations belong to the share. */
  seed: number
  /** Bits to flip at each position, 1 to 8. */
  bitsPerByte?: number
}

type Mutation = { label: string; bytes: Uint8Array }

/** Tries to slip a changed byte string past the verifier: flips at every position, every truncation, appended bytes. */
export async function sweep(target: Target, { share, seed, bitsPerByte = 1 }: SweepOptions): Promise<SweepResult> {
  const result: SweepResult = { name: target.name, tried: 0, accepted: [], crashed: [] }
  const random = createRandom(seed)
  if (!(await target.accept(target.genuine))) throw new Error(`${target.name}: the genuine bytes are refused`)
  for (const mutate of mutations(target.genuine, random, bitsPerByte)) {
    if (share < 1 && random() >= share) continue
    const { label, bytes } = mutate()
    result.tried += 1
    try {
      if (await target.accept(bytes)) result.accepted.push(label)
    } catch (error) {
      result.crashed.push(`${label}: ${error}`)
    }
  }
  return result
}

function* mutations(genuine: Uint8Array, random: () => number, bitsPerByte: number): Generator<() => Mutation> {
  for (let position = 0; position < genuine.length; position++) {
    const first = Math.floor(random() * 8)
    for (let offset = 0; offset < bitsPerByte; offset++) {
      const bit = (first + offset) % 8
      yield () => {
        const bytes = new Uint8Array(genuine)
        bytes[position] = (bytes[position] ?? 0) ^ (1 << bit)
        return { label: `byte ${position} bit ${bit}`, bytes }
      }
    }
  }
  for (let length = 0; length < genuine.length; length++) {
    // A quote may lose padding; everything else must be whole.
    if (genuine.subarray(length).every((byte) => byte === 0)) continue
    yield () => ({ label: `cut to ${length}`, bytes: genuine.slice(0, length) })
  }
  for (let length = 1; length <= 64; length++) {
    const value = 1 + Math.floor(random() * 255)
    yield () => {
      const bytes = new Uint8Array(genuine.length + length)
      bytes.set(genuine)
      bytes.fill(value, genuine.length)
      return { label: `${length} bytes of ${value} appended`, bytes }
    }
  }
}
