import { createRandom } from '@countersign/testing'

/** Changed bytes with a description of the change. */
export type Mutation = { label: string; bytes: Uint8Array }

/** A byte string within valid evidence, and a function that verifies the evidence with other bytes in its place. */
export type Target = {
  name: string
  genuine: Uint8Array
  /** Hand-written changes. All are tried, independent of the share. */
  byHand?: readonly Mutation[]
  /** Whether the bytes are another valid spelling of the same content. Those must be accepted. */
  isFree?(bytes: Uint8Array): boolean
  /** Whether the default policy accepts the evidence. Throws on anything but a typed rejection. */
  accept(bytes: Uint8Array): Promise<boolean>
}

export type SweepResult = {
  name: string
  tried: number
  /** Descriptions of accepted mutations. Must be empty. */
  accepted: string[]
  /** Descriptions of mutations that caused an untyped error or were wrongly rejected. Must be empty. */
  crashed: string[]
}

export type SweepOptions = {
  /** Fraction of mutations to try, from 0 to 1. */
  share: number
  /** Chooses the flipped bits and the mutations to try. */
  seed: number
  bitsPerByte?: number
  /** This worker's share: each mutation whose number modulo `of` is `first`. Default: all. */
  turn?: { first: number; of: number }
}

/** Tries to get changed bytes accepted: hand-written changes, flips at every position, every truncation, appended bytes. */
export async function sweep(target: Target, options: SweepOptions): Promise<SweepResult> {
  const { share, seed, bitsPerByte = 1, turn = { first: 0, of: 1 } } = options
  const result: SweepResult = { name: target.name, tried: 0, accepted: [], crashed: [] }
  const random = createRandom(seed)
  if (!(await target.accept(target.genuine))) throw new Error(`${target.name}: the original bytes are rejected`)
  let chosen = 0
  for (const { isByHand, mutate } of mutations(target, random, bitsPerByte)) {
    if (!isByHand && share < 1 && random() >= share) continue
    if (chosen++ % turn.of !== turn.first) continue
    const { label, bytes } = mutate()
    result.tried += 1
    try {
      const isAccepted = await target.accept(bytes)
      const isFree = target.isFree?.(bytes) ?? false
      if (isFree && !isAccepted) throw new Error('a valid spelling was rejected')
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
    // Most flips turn a hex digit into another character, which fails by its form. So this also tries another digit.
    const neighbour = toNeighbour(genuine[position] ?? 0)
    if (neighbour !== undefined) {
      yield () => ({
        label: `byte ${position} the next digit`,
        bytes: new Uint8Array(genuine).fill(neighbour, position, position + 1),
      })
    }
  }
  for (let length = 0; length < genuine.length; length++) {
    // Only quotes may lose padding.
    if (genuine.subarray(length).every((byte) => byte === 0)) continue
    yield () => ({ label: `truncated to ${length}`, bytes: genuine.slice(0, length) })
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

/** Another digit if the byte is a lowercase hex digit. */
function toNeighbour(byte: number): number | undefined {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte))
  return digit < 0 ? undefined : (digit ^ 1).toString(16).charCodeAt(0)
}
