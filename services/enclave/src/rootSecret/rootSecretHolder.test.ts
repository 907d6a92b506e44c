import { hashShare, tags, toShareContext, toSubmissionContext, toTagBytes } from '@countersign/protocol'
import { createX25519Pair, open, type Sealed, seal, type X25519Pair } from '@countersign/root-secret/sealing'
import { describe, expect, test } from 'vitest'
import {
  computeCommitment,
  createRootSecretHolder,
  type RootSecretHolder,
  type SealedShare,
} from './rootSecretHolder.ts'

const configHash = new Uint8Array(32).fill(7)
const policyHash = new Uint8Array(32).fill(8)
const backupHash = new Uint8Array(32).fill(9)
const pairs = Array.from({ length: 5 }, createX25519Pair)
const THRESHOLD = 3
/** Counts up, so that all secrets of this file differ. */
let next = 0
const random = (length: number) => new Uint8Array(length).map((_, index) => (index === 0 ? ++next : index))

function create() {
  const secrets: Uint8Array[] = []
  const holder = createRootSecretHolder({
    configHash,
    random,
    onSecret: (secret) => secrets.push(new Uint8Array(secret)),
  })
  return { holder, secrets }
}

async function createShared() {
  const { holder, secrets } = create()
  await holder.generate()
  const { commitment, shares } = await holder.share({
    policyHash,
    custodians: pairs.map(({ publicKey }) => publicKey),
    threshold: THRESHOLD,
  })
  return { secret: secrets[0] as Uint8Array, commitment, shares }
}

type Shared = Awaited<ReturnType<typeof createShared>>

function openShare({ commitment, shares }: Shared, index: number): Uint8Array {
  const aad = toShareContext({ policyHash, configHash, commitment, threshold: THRESHOLD, index })
  const recipient = pairs[index] as X25519Pair
  return open(shares[index] as SealedShare, { recipient, info: toTagBytes(tags.rootShare), aad })
}

async function createExpecting(shared: Shared, needed = THRESHOLD) {
  const { holder, secrets } = create()
  const publicKey = await holder.expectShares({
    backupHash,
    commitment: shared.commitment,
    needed,
    custodians: shared.shares.map(({ hash }, index) => ({ key: (pairs[index] as X25519Pair).publicKey, hash })),
  })
  return { holder, secrets, publicKey }
}

type Submission = { index: number; share: Uint8Array; sender?: X25519Pair; as?: number; hash?: Uint8Array }

function submit(
  holder: RootSecretHolder,
  publicKey: Uint8Array,
  { index, share, sender, as = index, hash }: Submission,
) {
  const aad = toSubmissionContext({ backupHash: hash ?? backupHash, configHash, index: as })
  const from = sender ?? (pairs[index] as X25519Pair)
  const sealed = seal(share, { recipient: publicKey, sender: from, info: toTagBytes(tags.rootSubmission), aad })
  return holder.addShare({ index: as, sealed })
}

describe('shares', () => {
  test('any three of five restore the secret, in any order; two do not', async () => {
    const shared = await createShared()
    for (const indexes of [
      [0, 1, 2],
      [4, 2, 0],
      [3, 1, 4],
    ]) {
      const { holder, secrets, publicKey } = await createExpecting(shared)
      for (const [count, index] of indexes.entries()) {
        expect(secrets).toEqual([])
        const answer = await submit(holder, publicKey, { index, share: openShare(shared, index) })
        expect(answer).toEqual({ held: count + 1, needed: THRESHOLD })
      }
      expect(secrets).toEqual([shared.secret])
    }
  })

  test('the policy may require more than the backup', async () => {
    const shared = await createShared()
    const { holder, secrets, publicKey } = await createExpecting(shared, 5)
    for (const index of [0, 1, 2, 3, 4]) {
      expect(secrets).toEqual([])
      await submit(holder, publicKey, { index, share: openShare(shared, index) })
    }
    expect(secrets).toEqual([shared.secret])
  })

  test('each is bound to its custodian, index, policy, configuration and secret', async () => {
    const shared = await createShared()
    const [first] = shared.shares
    const facts = { policyHash, configHash, commitment: shared.commitment, threshold: THRESHOLD, index: 0 }
    const info = toTagBytes(tags.rootShare)
    for (const [recipient, changes] of [
      [pairs[1], {}],
      [pairs[0], { index: 1 }],
      [pairs[0], { threshold: 2 }],
      [pairs[0], { policyHash: new Uint8Array(32) }],
      [pairs[0], { configHash: new Uint8Array(32) }],
      [pairs[0], { commitment: new Uint8Array(32) }],
    ] as [X25519Pair, object][]) {
      const aad = toShareContext({ ...facts, ...changes })
      expect(() => open(first as SealedShare, { recipient, info, aad })).toThrow()
    }
    expect(hashShare({ index: 0, share: openShare(shared, 0) })).toEqual(first?.hash)
  })

  test('the commitment depends only on the secret and does not reveal it', async () => {
    const { secret, commitment } = await createShared()
    expect(computeCommitment(secret)).toEqual(commitment)
    expect(commitment).not.toEqual(secret)
    expect((await createShared()).commitment).not.toEqual(commitment)
  })
})

describe('a rejected share changes nothing', () => {
  test.each<[string, (shared: Shared, other: Shared) => Submission, string]>([
    ['of an unknown custodian', (shared) => ({ index: 0, share: openShare(shared, 0), as: 5 }), 'no such custodian'],
    ['sent in another’s name', (shared) => ({ index: 0, share: openShare(shared, 1), as: 1 }), 'sealed for another'],
    [
      'sent by a third party',
      (shared) => ({ index: 0, share: openShare(shared, 0), sender: createX25519Pair() }),
      'sealed for another',
    ],
    [
      'for another backup',
      (shared) => ({ index: 0, share: openShare(shared, 0), hash: configHash }),
      'sealed for another',
    ],
    ['of another backup', (_, other) => ({ index: 0, share: openShare(other, 0) }), 'not the share of this backup'],
    ['of another custodian', (shared) => ({ index: 0, share: openShare(shared, 1) }), 'not the share of this backup'],
    [
      'with a bit changed',
      (shared) => ({ index: 0, share: openShare(shared, 0).map((byte, at) => (at === 5 ? byte ^ 1 : byte)) }),
      'not the share of this backup',
    ],
    ['cut short', (shared) => ({ index: 0, share: openShare(shared, 0).slice(1) }), 'not the share of this backup'],
    ['empty', () => ({ index: 0, share: new Uint8Array() }), 'not the share of this backup'],
  ])('%s', async (_, toSubmission, refusal) => {
    const [shared, other] = [await createShared(), await createShared()]
    const { holder, secrets, publicKey } = await createExpecting(shared)
    await submit(holder, publicKey, { index: 4, share: openShare(shared, 4) })
    await expect(submit(holder, publicKey, toSubmission(shared, other))).rejects.toThrow(refusal)
    for (const index of [0, 1]) await submit(holder, publicKey, { index, share: openShare(shared, index) })
    expect(secrets).toEqual([shared.secret])
  })

  test('the same share twice', async () => {
    const shared = await createShared()
    const { holder, secrets, publicKey } = await createExpecting(shared)
    for (const index of [0, 1]) await submit(holder, publicKey, { index, share: openShare(shared, index) })
    await expect(submit(holder, publicKey, { index: 1, share: openShare(shared, 1) })).rejects.toThrow('already')
    expect(secrets).toEqual([])
  })

  test('individually valid shares of another secret than the backup’s', async () => {
    const shared = await createShared()
    const { holder, secrets, publicKey } = await createExpecting({ ...shared, commitment: new Uint8Array(32) })
    for (const index of [0, 1]) await submit(holder, publicKey, { index, share: openShare(shared, index) })
    const last = submit(holder, publicKey, { index: 2, share: openShare(shared, 2) })
    await expect(last).rejects.toThrow('not the secret of this backup')
    expect(secrets).toEqual([])
  })

  test('any share, to a holder that expects none or has its secret', async () => {
    const shared = await createShared()
    const { holder, publicKey } = await createExpecting(shared)
    const parameters = { index: 0, share: openShare(shared, 0) }
    await expect(submit(create().holder, publicKey, parameters)).rejects.toThrow('no key was created')
    for (const index of [0, 1, 2]) await submit(holder, publicKey, { index, share: openShare(shared, index) })
    await expect(submit(holder, publicKey, { index: 3, share: openShare(shared, 3) })).rejects.toThrow(
      'no key was created',
    )
  })
})

describe('a transfer', () => {
  const aad = new Uint8Array(64).fill(3)

  async function give(plaintext?: Uint8Array) {
    const [donor, joiner] = [create(), create()]
    await donor.holder.generate()
    const recipient = await joiner.holder.createKey()
    const sealed: Sealed =
      plaintext === undefined
        ? await donor.holder.seal({ recipient, aad })
        : seal(plaintext, { recipient, info: toTagBytes(tags.keyTransfer), aad })
    return { donor, joiner, sealed }
  }

  test('gives the secret once to the holder that created the key', async () => {
    const { donor, joiner, sealed } = await give()
    await joiner.holder.accept({ sealed, aad })
    expect(joiner.secrets).toEqual(donor.secrets)
    await expect(joiner.holder.accept({ sealed, aad })).rejects.toThrow('no key was created')
    await expect(joiner.holder.createKey()).rejects.toThrow('already here')
    await expect(joiner.holder.generate()).rejects.toThrow('already here')
  })

  test('only the latest key counts, and only under the same transcript', async () => {
    const { joiner, sealed } = await give()
    await expect(joiner.holder.accept({ sealed, aad: new Uint8Array(64) })).rejects.toThrow('sealed for another')
    await joiner.holder.createKey()
    await expect(joiner.holder.accept({ sealed, aad })).rejects.toThrow('sealed for another')
    expect(joiner.secrets).toEqual([])
  })

  test.each([
    ['31 bytes', new Uint8Array(31).map((_, index) => index)],
    ['33 bytes', new Uint8Array(33).map((_, index) => index)],
    ['zeros', new Uint8Array(32)],
    ['nothing', new Uint8Array()],
  ])('%s are no secret', async (_, plaintext) => {
    const { joiner, sealed } = await give(plaintext)
    await expect(joiner.holder.accept({ sealed, aad })).rejects.toThrow('not a root secret')
    expect(joiner.secrets).toEqual([])
  })

  test('fails for a holder without a secret', async () => {
    const { holder } = create()
    await expect(holder.seal({ recipient: createX25519Pair().publicKey, aad })).rejects.toThrow('no secret here')
    await expect(holder.share({ policyHash, custodians: [], threshold: 2 })).rejects.toThrow('no secret here')
  })
})
