import { equalBytes, hashShare, tags, toShareContext, toSubmissionContext, toTagBytes } from '@countersign/protocol'
import { combine, split } from 'shamir-secret-sharing'
import type { Random } from '../ports.ts'
import { assertSecret, SECRET_BYTES } from './assertSecret.ts'
import { expand, extract } from './hkdf.ts'
import { open, type Sealed, seal } from './hpke.ts'
import { createX25519Pair, type X25519Pair } from './x25519.ts'

/** Why the vault did not do what it was asked. There is never more to tell: it happened near the secret. */
export type CustodyRefusal =
  | 'secret already here'
  | 'no secret here'
  | 'no key was made for it'
  | 'sealed for another purpose, by another, or changed'
  | 'not a root secret'
  | 'no such custodian'
  | 'this share is here already'
  | 'not the share of this backup'
  | 'not the secret of this backup'

export class CustodyError extends Error {
  override name = 'CustodyError'
  readonly refusal: CustodyRefusal
  constructor(refusal: CustodyRefusal) {
    super(refusal)
    this.refusal = refusal
  }
}

/** A share sealed to its custodian, and the hash by which it is known again. */
export type SealedShare = Sealed & { hash: Uint8Array }

type SharingParameters = { policyHash: Uint8Array; custodians: readonly Uint8Array[]; threshold: number }

/** What the vault must know of a backup to judge the shares that come. */
type ExpectedShares = {
  backupHash: Uint8Array
  commitment: Uint8Array
  needed: number
  custodians: readonly { key: Uint8Array; hash: Uint8Array }[]
}

/**
 * How the root secret comes into the vault, and in which forms it leaves: sealed to an enclave, or as shares sealed to
 * custodians. Whom it may be sealed to is judged outside, before the vault is asked.
 */
export type Custody = {
  /** Makes a fresh secret. */
  generate(): Promise<void>
  /** Makes the key that `accept` will open with. */
  makeKey(): Promise<Uint8Array<ArrayBuffer>>
  /** Takes the secret; with a commitment, only the one that the commitment is of. */
  accept(parameters: { sealed: Sealed; aad: Uint8Array; commitment?: Uint8Array }): Promise<void>
  /** The secret, sealed to another enclave's key. */
  seal(parameters: { recipient: Uint8Array; aad: Uint8Array }): Promise<Sealed>
  share(parameters: SharingParameters): Promise<{ commitment: Uint8Array; shares: SealedShare[] }>
  /** Makes the key that custodians seal their shares to. */
  expectShares(expected: ExpectedShares): Promise<Uint8Array<ArrayBuffer>>
  /** Takes one share. With the last that is needed, the secret is there. */
  addShare(parameters: { index: number; sealed: Sealed }): Promise<{ held: number; needed: number }>
}

const NO_SALT = new Uint8Array()

export function createCustody(deps: {
  configHash: Uint8Array
  random: Random
  onSecret(secret: Uint8Array): void
}): Custody {
  const { configHash, random, onSecret } = deps
  let secret: Uint8Array<ArrayBuffer> | undefined
  let key: X25519Pair | undefined
  let expected: ExpectedShares | undefined
  const held = new Map<number, Uint8Array>()

  function keep(candidate: Uint8Array<ArrayBuffer>) {
    if (secret !== undefined) throw new CustodyError('secret already here')
    try {
      assertSecret(candidate)
    } catch {
      throw new CustodyError('not a root secret')
    }
    secret = candidate
    key = undefined
    for (const share of held.values()) share.fill(0)
    held.clear()
    onSecret(secret)
  }

  function use(): Uint8Array<ArrayBuffer> {
    if (secret === undefined) throw new CustodyError('no secret here')
    return secret
  }

  async function makeKey() {
    if (secret !== undefined) throw new CustodyError('secret already here')
    key = createX25519Pair()
    return key.publicKey
  }

  return {
    makeKey,
    async generate() {
      keep(random(SECRET_BYTES))
    },
    async accept({ sealed, aad, commitment }) {
      if (key === undefined) throw new CustodyError('no key was made for it')
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
      const publicKey = await makeKey()
      expected = shares
      return publicKey
    },
    async addShare({ index, sealed }) {
      if (key === undefined || expected === undefined) throw new CustodyError('no key was made for it')
      const { backupHash, commitment, needed, custodians } = expected
      const custodian = custodians[index]
      if (custodian === undefined) throw new CustodyError('no such custodian')
      const aad = toSubmissionContext({ backupHash, configHash, index })
      // By the custodian's key as well: a backup can be forged around a secret of the forger's, a custodian's hand cannot.
      const share = unseal(sealed, {
        recipient: key,
        sender: custodian.key,
        info: toTagBytes(tags.rootSubmission),
        aad,
      })
      if (held.has(index)) throw new CustodyError('this share is here already')
      if (share.length !== SECRET_BYTES + 1 || !equalBytes(hashShare({ index, share }), custodian.hash)) {
        throw new CustodyError('not the share of this backup')
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
  // The library throws where shares have the same place.
  const combined = await combine(shares).catch(() => new Uint8Array())
  const secret = new Uint8Array(combined)
  combined.fill(0)
  assertCommitted(secret, commitment)
  return secret
}

function assertCommitted(secret: Uint8Array, commitment: Uint8Array) {
  if (equalBytes(computeCommitment(secret), commitment)) return
  secret.fill(0)
  throw new CustodyError('not the secret of this backup')
}

/** Tells a secret from any other without giving it away: HKDF-SHA-256(secret, salt "", info tag), 32 bytes. */
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
    throw new CustodyError('sealed for another purpose, by another, or changed')
  }
}
