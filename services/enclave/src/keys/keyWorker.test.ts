import { createX25519Pair } from '@countersign/root-secret/sealing'
import { isEd25519Signature } from '@countersign/service/ed25519'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { computeCommitment } from '../rootSecret/rootSecretHolder.ts'
import { createKeyWorker, type KeyWorker } from './keyWorker.ts'

const configHash = new Uint8Array(32).fill(1)
const aad = new Uint8Array(64)
const identity = { issuer: 'https://issuer.example', subject: 'alice', email: null }
const grant = { owner: 'ab'.repeat(32), identity, clientKey: null, sidHash: 'cd'.repeat(32), exp: 1 }
let empty: KeyWorker
let given: KeyWorker

beforeAll(async () => {
  empty = await createKeyWorker({ configHash, implementations: [] })
  given = await createKeyWorker({
    rootSecret: new Uint8Array(32).map((_, index) => index),
    configHash,
    implementations: [],
  })
})
afterAll(async () => {
  await empty.close()
  await given.close()
})

describe('the root secret in the thread', () => {
  test('one from outside is not transferred to others', async () => {
    await expect(given.openGrant(grant)).resolves.toHaveProperty('address')
    const recipient = createX25519Pair().publicKey
    await expect(given.holder.seal({ recipient, aad })).rejects.toMatchObject({ refusal: 'no secret here' })
  })

  test('is identified by its commitment, regardless of its source', async () => {
    const commitment = await given.getCommitment()
    expect(commitment).toEqual(computeCommitment(new Uint8Array(32).map((_, index) => index)))
    expect(commitment.buffer.byteLength).toBe(32)
  })

  test('is transferred sealed between workers, and nothing is signed or returned before', async () => {
    await expect(empty.openGrant(grant)).rejects.toThrow('the key worker could not do it')
    await expect(empty.getCommitment()).rejects.toThrow('the key worker could not do it')
    const donor = await createKeyWorker({ configHash, implementations: [] })
    try {
      await donor.holder.generate()
      const recipient = await empty.holder.createKey()
      const sealed = await donor.holder.seal({ recipient, aad })
      await empty.holder.accept({ sealed, aad })
      expect(await empty.openGrant(grant)).toEqual(await donor.openGrant(grant))
      expect(await empty.getCommitment()).toEqual(await donor.getCommitment())
      expect(await empty.getCommitment()).not.toEqual(await given.getCommitment())
    } finally {
      await donor.close()
    }
  })

  test('posts only the answer, not a view of a larger buffer', async () => {
    const keyWorker = await createKeyWorker({ configHash, implementations: [] })
    try {
      const [first, recipient] = [createX25519Pair().publicKey, createX25519Pair().publicKey]
      const key = await keyWorker.holder.createKey()
      await keyWorker.holder.generate()
      const custodians = [first, recipient]
      const { commitment, shares } = await keyWorker.holder.share({ policyHash: configHash, custodians, threshold: 2 })
      const sealed = await keyWorker.holder.seal({ recipient, aad })
      const views = [key, commitment, sealed, ...shares].flatMap((part) =>
        part instanceof Uint8Array ? part : Object.values<Uint8Array>(part),
      )
      expect(views).toHaveLength(10)
      expect(views.map(({ buffer }) => buffer.byteLength)).toEqual(views.map(({ byteLength }) => byteLength))
    } finally {
      await keyWorker.close()
    }
  })

  test('concurrent calls get their own answers', async () => {
    const policyHash = new Uint8Array(32)
    const custodians = [1, 2, 3].map(() => createX25519Pair().publicKey)
    const [refused, shared, again, granted] = await Promise.allSettled([
      empty.holder.createKey(),
      empty.holder.share({ policyHash, custodians, threshold: 2 }),
      empty.holder.share({ policyHash, custodians: [], threshold: 2 }),
      empty.openGrant(grant),
    ])
    expect(refused).toMatchObject({ reason: { refusal: 'secret already here' } })
    expect(shared).toMatchObject({ value: { shares: [{}, {}, {}] } })
    // The library's error text is not passed on.
    expect(again).toMatchObject({ reason: new Error('the key worker could not do it') })
    expect(granted).toHaveProperty('value.address')
  })

  test('a closed worker answers earlier calls and rejects later ones', async () => {
    const keyWorker = await createKeyWorker({ configHash, implementations: [] })
    const before = keyWorker.holder.generate()
    const closing = keyWorker.close()
    const after = expect(keyWorker.holder.createKey()).rejects.toThrow('the key worker has ended')
    await Promise.all([before, closing, after])
    await expect(keyWorker.holder.createKey()).rejects.toThrow('the key worker has ended')
  })
})

test('the keys of logs stay in the thread, which signs checkpoints of the configured origins', async () => {
  const log = { origins: ['log.example/a'], witnesses: [], quorum: 0 }
  const rootSecret = new Uint8Array(32).map((_, index) => index)
  const keyWorker = await createKeyWorker({ rootSecret, configHash, implementations: [], log })
  try {
    const [origin = ''] = log.origins
    const text = `${origin}\n1\n${Buffer.alloc(32).toString('base64')}\n`
    const publicKey = await keyWorker.describeLog(origin)
    const signature = await keyWorker.signCheckpoint(origin, text)
    expect([publicKey.buffer.byteLength, signature.buffer.byteLength]).toEqual([32, 64])
    expect(isEd25519Signature(publicKey, signature, Buffer.from(text))).toBe(true)
    const refused = [
      keyWorker.signCheckpoint(origin, 'anything'),
      keyWorker.signCheckpoint('log.example/b', text.replace('/a', '/b')),
      keyWorker.describeLog('log.example/b'),
      given.describeLog(origin),
      given.signCheckpoint(origin, text),
    ]
    for (const { status } of await Promise.allSettled(refused)) expect(status).toBe('rejected')
  } finally {
    await keyWorker.close()
  }
})
