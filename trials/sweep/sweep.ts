import { createRandom } from '@countersign/testing'

/** Bytes to try in the place of genuine ones, and what was done to them. */
export type Mutation = { label: string; bytes: Uint8Array }

/** One byte string of otherwise genuine evidence, and how to have the whole judged with another in its place. */
export type Target = {
  name: string
  genuine: Uint8Array
  /** Changes that no rule about bytes makes. All are tried, whatever the share. */
  byHand?: readonly Mutation[]
  /** Whether bytes say the same as the genuine ones in a spelling that the format leaves open. Those must be accepted. */
  isFree?(bytes: Uint8Array): boolean
  /** Whether the evidence is accepted under the default policy. Anything but a typed refusal is thrown on. */
  accept(bytes: Uint8Array): Promise<boolean>
}

export type SweepResult = {
  name: string
  tried: number
  /** Mutations that were accepted, described: there must be none. */
  accepted: string[]
  /** Mutations that ended in anything but a typed error or their due acceptance, described: there must be none. */
  crashed: string[]
}

export type SweepOptions = {
  /** The part of all mutations to try, from 0 to 1. */
  share: number
  /** Chooses the bit of each flip, and which mutations belong to the share. */
  seed: number
  /** Bits to flip at each position, 1 to 8. */
  bitsPerByte?: number
  /** Every so-manieth mutation, from this one on: several workers share them out. All of them unless it is given. */
  turn?: { first: number; of: number }
}

/**
 * Tries to slip a changed byte string past the verifier: the changes made by hand, flips at every position, every truncation, appended
 * bytes.
 */
export async function sweep(target: Target, options: SweepOptions): Promise<SweepResult> {
  const { share, seed, bitsPerByte = 1, turn = { first: 0, of: 1 } } = options
  const result: SweepResult = { name: target.name, tried: 0, accepted: [], crashed: [] }
  const random = createRandom(seed)
  if (!(await target.accept(target.genuine))) throw new Error(`${target.name}: the genuine bytes are refused`)
  let chosen = 0
  for (const { isByHand, mutate } of mutations(target, random, bitsPerByte)) {
    if (!isByHand && share < 1 && random() >= share) continue
    if (chosen++ % turn.of !== turn.first) continue
    const { label, bytes } = mutate()
    result.tried += 1
    try {
      const isAccepted = await target.accept(bytes)
      const isFree = target.isFree?.(bytes) ?? false
      if (isFree && !isAccepted) throw new Error('the format leaves it open, and it was refused')
      if (isAccepted && !isFree) result.accepted.push(label)
    } catch (error) {
      result.crashed.push(`${label}: ${error}`)
    }
  }
  return result
}

type Attempt = { isByHand: boolean; mutate(): Mutation }

function* mutations({ genuine, byHand = [] }: Target, random: () => number, bitsPerByte: number): Generator<Attempt> {
  for (const mutation of byHand) yield { isByHand: true, mutate: () => mutation }
  for (const mutate of changeBytes(genuine, random, bitsPerByte)) yield { isByHand: false, mutate }
}

function* changeBytes(genuine: Uint8Array, random: () => number, bitsPerByte: number): Generator<() => Mutation> {
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
    // Most flips of a hex digit make something that is none, and that is refused for its form alone.
    const neighbour = toNeighbour(genuine[position] ?? 0)
    if (neighbour !== undefined) {
      yield () => ({
        label: `byte ${position} the next digit`,
        bytes: new Uint8Array(genuine).fill(neighbour, position, position + 1),
      })
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

/** Another digit, where a byte is a hex digit in lower case. */
function toNeighbour(byte: number): number | undefined {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte))
  return digit < 0 ? undefined : (digit ^ 1).toString(16).charCodeAt(0)
}
