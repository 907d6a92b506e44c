import { timingSafeEqual } from 'node:crypto'
import { hmacSha256 } from '@countersign/root-secret/sealing'
import type { Clock, Random } from '../ports.ts'

/** Enough for a quote, for remote collateral, and for a queue. */
const LIFETIME_MS = 120_000

const TIME_BYTES = 8
const RANDOM_BYTES = 8
const BODY_BYTES = TIME_BYTES + RANDOM_BYTES
const MAC_BYTES = 16

export type Challenges = {
  /** 32 bytes. */
  issue(): Uint8Array<ArrayBuffer>
  /** True for a challenge that we issued, that has not expired and was not used. */
  isOpen(challenge: Uint8Array): boolean
  use(challenge: Uint8Array): void
}

/**
 * Challenges that contain their expiry and our MAC (u64be time ‖ random[8] ‖ HMAC[16]). A flood of them costs no memory and evicts none. Only
 * used ones are stored, and using one takes an acceptable quote.
 */
export function createChallenges({ clock, random }: { clock: Clock; random: Random }): Challenges {
  const key = random(32)
  const used = new Map<string, number>()

  const computeMac = (body: Uint8Array) => hmacSha256(key, body).subarray(0, MAC_BYTES)
  const readExpiry = (challenge: Uint8Array) => Number(Buffer.from(challenge).readBigUInt64BE(0))

  return {
    issue() {
      const body = Buffer.alloc(BODY_BYTES)
      body.writeBigUInt64BE(BigInt(clock.now() + LIFETIME_MS))
      body.set(random(RANDOM_BYTES), TIME_BYTES)
      return new Uint8Array(Buffer.concat([body, computeMac(body)]))
    },
    isOpen(challenge) {
      if (challenge.length !== BODY_BYTES + MAC_BYTES) return false
      const isOurs = timingSafeEqual(computeMac(challenge.subarray(0, BODY_BYTES)), challenge.subarray(BODY_BYTES))
      if (!isOurs || readExpiry(challenge) <= clock.now()) return false
      return !used.has(Buffer.from(challenge).toString('hex'))
    },
    use(challenge) {
      for (const [name, end] of used) if (end <= clock.now()) used.delete(name)
      used.set(Buffer.from(challenge).toString('hex'), readExpiry(challenge))
    },
  }
}
