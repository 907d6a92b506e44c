import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { fromHex, hashSignedTransaction, hashUnsignedTransaction, toHex } from '@countersign/protocol'
import { createTx } from '@countersign/testing/stack'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestWalletKey, signTestDigest } from '../../test/signingEnclave.ts'
import { createSignatureChecker, type SignatureChecker, type SignatureClaim } from './checkSignatures.ts'

const wallet = createTestWalletKey('alice')
const other = createTestWalletKey('bob')
const txMetadata = createTx(1)

function claim(changes: Partial<SignatureClaim> = {}): SignatureClaim {
  const digest = hashUnsignedTransaction(txMetadata)
  const signature = signTestDigest(digest, wallet.privateKey)
  return {
    digest: `0x${toHex(digest)}`,
    signature: `0x${toHex(signature)}`,
    publicKey: toHex(wallet.publicKey),
    address: wallet.address,
    transaction: { txHash: `0x${toHex(hashSignedTransaction(txMetadata, signature))}`, txMetadata },
    ...changes,
  }
}

function withSignature(change: (bytes: Uint8Array<ArrayBuffer>) => void): Partial<SignatureClaim> {
  const bytes = fromHex(claim().signature.slice(2))
  change(bytes)
  return { signature: `0x${toHex(bytes)}` }
}

let checker: SignatureChecker
beforeAll(async () => {
  checker = await createSignatureChecker()
})
afterAll(() => checker.stop())

test('accepts a signature by the wallet’s key', async () => {
  expect(await checker.check([claim()])).toEqual([true])
})

test.each<[string, Partial<SignatureClaim>]>([
  ['of another key', { signature: `0x${toHex(signTestDigest(fromHex(claim().digest.slice(2)), other.privateKey))}` }],
  ['over another digest', { digest: `0x${'22'.repeat(32)}` }],
  ['said to be of another key', { publicKey: toHex(other.publicKey) }],
  ['of another address', { address: other.address }],
  ['with one bit of r changed', withSignature((bytes) => bytes.set([(bytes[5] ?? 0) ^ 1], 5))],
  ['with the other v, which another sender has', withSignature((bytes) => bytes.set([55 - (bytes[64] ?? 0)], 64))],
  ['with v of 0', withSignature((bytes) => bytes.set([0], 64))],
  [
    'with a high s',
    withSignature((bytes) => {
      const { n } = secp256k1.Point.CURVE()
      const s = n - BigInt(`0x${toHex(bytes.subarray(32, 64))}`)
      bytes.set(fromHex(s.toString(16).padStart(64, '0')), 32)
      bytes[64] = 55 - (bytes[64] ?? 0)
    }),
  ],
  ['of zeros', { signature: `0x${'00'.repeat(65)}` }],
  ['that is too short', { signature: '0x11' }],
  ['with a key that is no point', { publicKey: `04${'00'.repeat(64)}` }],
  ['with a transaction hash of another transaction', { transaction: { txHash: `0x${'33'.repeat(32)}`, txMetadata } }],
])('a signature %s is refused', async (_, changes) => {
  const claims = [claim(), claim(changes), claim()]
  expect(await checker.check(claims)).toEqual([true, false, true])
})

test('answers match their questions among many concurrent ones', async () => {
  const bad = claim({ digest: `0x${'22'.repeat(32)}` })
  const answers = await Promise.all([checker.check([bad]), checker.check([]), checker.check([claim(), bad])])
  expect(answers).toEqual([[false], [], [true, false]])
})

test('stop rejects pending and later calls', async () => {
  const ending = await createSignatureChecker()
  const waiting = ending.check(Array.from({ length: 200 }, () => claim()))
  const refused = expect(waiting).rejects.toThrow('has ended')
  await ending.stop()
  await refused
  await expect(ending.check([claim()])).rejects.toThrow('has ended')
})

test('a claim that cannot be sent fails alone, and later answers still match', async () => {
  const unsendable = { ...claim(), txMetadata: { toString: () => '' } } as unknown as SignatureClaim
  const bad = claim({ digest: `0x${'22'.repeat(32)}` })
  const answers = await Promise.allSettled([
    checker.check([unsendable]),
    checker.check([bad]),
    checker.check([claim()]),
  ])
  expect(answers).toMatchObject([{ status: 'rejected' }, { value: [false] }, { value: [true] }])
})

describe('a thread that dies', () => {
  /** A checker whose threads the test can end. `start` can be replaced to create another kind of thread. */
  async function createMortal() {
    const real = () => new Worker(new URL('./signatureWorker.ts', import.meta.url))
    const mortal = { start: real, real, workers: [] as Worker[] }
    const own = await createSignatureChecker(() => {
      const worker = mortal.start()
      mortal.workers.push(worker)
      return worker
    })
    return { mortal, own }
  }

  test('rejects pending calls, and the next call starts a new one', async () => {
    const { mortal, own } = await createMortal()
    try {
      // The first call ends it. `terminate` during a call of libsecp256k1 would end the whole process.
      const waiting = Promise.allSettled([own.check([null as never]), own.check([claim()])])
      for (const outcome of await waiting) {
        expect(outcome).toMatchObject({ status: 'rejected' })
      }
      const bad = claim({ digest: `0x${'22'.repeat(32)}` })
      expect(await Promise.all([own.check([claim()]), own.check([bad])])).toEqual([[true], [false]])
      expect(mortal.workers).toHaveLength(2)
    } finally {
      await own.stop()
    }
  })

  test('is replaced after each error of its own', async () => {
    const { mortal, own } = await createMortal()
    try {
      const throwing = `const { parentPort } = require('node:worker_threads')
        parentPort.on('message', () => { throw new TypeError('out of order') })
        parentPort.postMessage('ready')`
      for (const _ of [1, 2]) {
        await mortal.workers.at(-1)?.terminate()
        mortal.start = () => new Worker(throwing, { eval: true })
        await expect(own.check([claim()])).rejects.toThrow('out of order')
        mortal.start = mortal.real
        expect(await own.check([claim()])).toEqual([true])
      }
      expect(mortal.workers).toHaveLength(5)
    } finally {
      await own.stop()
    }
  })

  test.each([
    ['ends at once', () => new Worker('', { eval: true })],
    ['fails at once', () => new Worker('throw new Error("not today")', { eval: true })],
    [
      'cannot be made',
      () => {
        throw new Error('no memory')
      },
    ],
  ] as const)('a new one that %s fails that call; the next tries again', async (_, start) => {
    await expect(createSignatureChecker(start)).rejects.toThrow()
    const { mortal, own } = await createMortal()
    try {
      await mortal.workers[0]?.terminate()
      mortal.start = start
      await expect(own.check([claim()])).rejects.toThrow()
      mortal.start = mortal.real
      expect(await own.check([claim()])).toEqual([true])
    } finally {
      await own.stop()
    }
  })

  test('leaves nothing running if stopped while a new one starts', async () => {
    const { mortal, own } = await createMortal()
    await mortal.workers[0]?.terminate()
    const late = expect(own.check([claim()])).rejects.toThrow('has ended')
    const [, renewed] = mortal.workers
    if (renewed === undefined) throw new Error('no new thread')
    const exited = once(renewed, 'exit')
    await own.stop()
    await late
    await exited
  })
})
