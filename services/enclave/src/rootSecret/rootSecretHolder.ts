import {
  equalBytes,
  hashShare,
  tags,
  toShareContext,
  toSubmissionContext,
  toTagBytes,
} from '@countersign/protocol/core'
import {
  createX25519Pair,
  expand,
  extract,
  open,
  type Sealed,
  seal,
  type X25519Pair,
} from '@countersign/root-secret/sealing'
import { combine, split } from 'shamir-secret-sharing'
import type { Random } from '../ports.ts'

export const SECRET_BYTES = 32

/** Rejects bytes that can't be a root secret. */
export function assertSecret(secret: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (secret.length !== SECRET_BYTES) throw new Error('the root secret does not have 32 bytes')
  if (secret.every((byte) => byte === secret[0])) throw new Error('the root secret is not random')
  return secret
}

/** Why the holder refused. It never says more, because any failure here happens next to the secret. */
export type RootSecretRefusal =
  | 'secret already here'
  | 'no secret here'
  | 'no key was created for it'
  | 'sealed for another purpose, by another, or changed'
  | 'not a root secret'
  | 'no such custodian'
  | 'this share is here already'
  | 'not the share of this backup'
  | 'not the secret of this backup'

export class RootSecretError extends Error {
  override name = 'RootSecretError'
  readonly refusal: RootSecretRefusal
  constructor(refusal: RootSecretRefusal) {
    super(refusal)
    this.refusal = refusal
  }
}

/** A share sealed to its custodian, and the hash that identifies it. */
export type SealedShare = Sealed & { hash: Uint8Array }

type SharingParameters = { policyHash: Uint8Array; custodians: readonly Uint8Array[]; threshold: number }

/** The parts of a backup that the holder needs to check shares. */
type ExpectedShares = {
  backupHash: Uint8Array
  commitment: Uint8Array
  needed: number
  custodians: readonly { key: Uint8Array; hash: Uint8Array }[]
}

/**
 * Holds the root secret: how it arrives, and how it leaves (sealed to an enclave, or as shares sealed to custodians). The caller decides who
 * may have it.
 */
export type RootSecretHolder = {
  /** Creates a fresh secret. */
  generate(): Promise<void>
  /** Creates the key that `accept` decrypts with. */
  createKey(): Promise<Uint8Array<ArrayBuffer>>
  /** Accepts the secret. With a commitment, only the secret that it commits to. */
  accept(parameters: { sealed: Sealed; aad: Uint8Array; commitment?: Uint8Array }): Promise<void>
  /** Seals the secret to another enclave's key. */
  seal(parameters: { recipient: Uint8Array; aad: Uint8Array }): Promise<Sealed>
  share(parameters: SharingParameters): Promise<{ commitment: Uint8Array; shares: SealedShare[] }>
  /** Creates the key that custodians seal their shares to. */
  expectShares(expected: ExpectedShares): Promise<Uint8Array<ArrayBuffer>>
  /** Adds one share. The last one needed restores the secret. */
  addShare(parameters: { index: number; sealed: Sealed }): Promise<{ held: number; needed: number }>
}

const NO_SALT = new Uint8Array()

export function createRootSecretHolder(deps: {
  configHash: Uint8Array
  random: Random
  onSecret(secret: Uint8Array): void
}): RootSecretHolder {
  const { configHash, random, onSecret } = deps
  let secret: Uint8Array<ArrayBuffer> | undefined
  let key: X25519Pair | undefined
  let expected: ExpectedShares | undefined
  const held = new Map<number, Uint8Array>()

  function keep(candidate: Uint8Array<ArrayBuffer>) {
    if (secret !== undefined) throw new RootSecretError('secret already here')
    try {
      assertSecret(candidate)
    } catch {
      throw new RootSecretError('not a root secret')
    }
    secret = candidate
    key = undefined
    for (const share of held.values()) share.fill(0)
    held.clear()
    onSecret(secret)
  }

  function use(): Uint8Array<ArrayBuffer> {
    if (secret === undefined) throw new RootSecretError('no secret here')
    return secret
  }

  async function createKey() {
    if (secret !== undefined) throw new RootSecretError('secret already here')
    key = createX25519Pair()
    return key.publicKey
  }

  return {
    createKey,
    async generate() {
      keep(random(SECRET_BYTES))
    },
    async accept({ sealed, aad, commitment }) {
      if (key === undefined) throw new RootSecretError('no key was created for it')
      const candidate = unseal(sealed, { recipient: key, info: toTagBytes(tags.keyTransfer), aad })
      if (commitment !== undefined) assertCommitted(candidate, commitment)
      keep(candidate)
    },
    async seal({ recipient, aad }) {
      return seal(use(), { recipient, info: toTagBytes(tags.keyTransfer), aad })
    },

    async share({ policyHash, custodians, threshold }) {
      const commitment = computeCommitment(use())
      const copy = new Uint8Array(use())
      const shares = await split(copy, custodians.length, threshold)
      copy.fill(0)
      const sealed = custodians.map((recipient, index) => {
        const share = shares[index] ?? new Uint8Array()
        const aad = toShareContext({ policyHash, configHash, commitment, threshold, index })
        const hash = hashShare({ index, share })
        const box = seal(share, { recipient, info: toTagBytes(tags.rootShare), aad })
        share.fill(0)
        return { ...box, hash }
      })
      return { commitment, shares: sealed }
    },

    async expectShares(shares) {
      const publicKey = await createKey()
      expected = shares
      return publicKey
    },
    async addShare({ index, sealed }) {
      if (key === undefined || expected === undefined) throw new RootSecretError('no key was created for it')
      const { backupHash, commitment, needed, custodians } = expected
      const custodian = custodians[index]
      if (custodian === undefined) throw new RootSecretError('no such custodian')
      const aad = toSubmissionContext({ backupHash, configHash, index })
      // Also authenticated with the custodian's key: anyone can forge a backup around their own secret, but only a custodian can seal this.
      const share = unseal(sealed, {
        recipient: key,
        sender: custodian.key,
        info: toTagBytes(tags.rootSubmission),
        aad,
      })
      if (held.has(index)) throw new RootSecretError('this share is here already')
      if (share.length !== SECRET_BYTES + 1 || !equalBytes(hashShare({ index, share }), custodian.hash)) {
        throw new RootSecretError('not the share of this backup')
      }
      held.set(index, share)
      const count = held.size
      if (count >= needed) {
        const recovered = await restore([...held.values()], commitment).catch((error) => {
          held.delete(index)
          throw error
        })
        keep(recovered)
      }
      return { held: count, needed }
    },
  }
}

async function restore(shares: Uint8Array[], commitment: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  // The library throws if two shares have the same index.
  const combined = await combine(shares).catch(() => new Uint8Array())
  const secret = new Uint8Array(combined)
  combined.fill(0)
  assertCommitted(secret, commitment)
  return secret
}

function assertCommitted(secret: Uint8Array, commitment: Uint8Array) {
  if (equalBytes(computeCommitment(secret), commitment)) return
  secret.fill(0)
  throw new RootSecretError('not the secret of this backup')
}

/** Identifies a secret without revealing it: HKDF-SHA-256(secret, salt "", info tag), 32 bytes. */
export function computeCommitment(secret: Uint8Array): Uint8Array<ArrayBuffer> {
  const extracted = extract(NO_SALT, secret)
  const commitment = expand(extracted, toTagBytes(tags.rootCommitment), 32)
  extracted.fill(0)
  return commitment
}

function unseal(...parameters: Parameters<typeof open>): Uint8Array<ArrayBuffer> {
  try {
    return open(...parameters)
  } catch {
    throw new RootSecretError('sealed for another purpose, by another, or changed')
  }
}
