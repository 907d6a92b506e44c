import { type Authorization, createEnclaveSettings, type Hex } from '@countersign/protocol'
import { createTx } from '@countersign/testing/stack'
import { describe, expect, test } from 'vitest'
import { createFakeClock, createFakeLog, createFakeWitness } from '../../test/ports.ts'
import { fakeConfig } from '../../test/sign/enclave/httpEnclave.ts'
import { CoordinatorError } from '../errors.ts'
import { type BatchSignerDeps, createBatchSigner } from './batchSigner.ts'
import type { SignJob } from './job.ts'

const request = (digit: string): SignJob => ({
  sid: 'aa'.repeat(32),
  grant: 'grant',
  keyId: 'bb'.repeat(16),
  walletId: 'wallet',
  address: `0x${'cc'.repeat(20)}`,
  content: {
    kind: 'transaction',
    digest: `0x${digit.repeat(64)}`,
    txMetadata: createTx(0),
  },
})

/** A signer whose enclave does what the test says. It never signs; `signJobs.test.ts` covers signing. */
function setUp(
  signItems: BatchSignerDeps['enclave']['signItems'],
  getTerms: BatchSignerDeps['enclave']['getTerms'] = () => Promise.reject(new Error('not asked for')),
) {
  const batches: number[] = []
  const codes: string[] = []
  const unused = () => Promise.reject(new Error('not reached'))
  const drawn: number[] = []
  const signer = createBatchSigner({
    entropy: {
      async take(count) {
        drawn.push(count)
        return Array.from({ length: count }, (_, index) => createFakeWitness(index))
      },
      takeVerified: unused,
    },
    enclave: { signItems, getTerms, countSlots: () => 8 },
    selfReport: { publicKey: 'dd'.repeat(32) },
    signatures: { check: unused },
    verifyBatch: unused,
    commit: unused,
    clock: createFakeClock(),
    metrics: {
      observeBatch: (size) => void batches.push(size),
      observeSigning(code, seconds) {
        expect(seconds).toBeGreaterThanOrEqual(0)
        codes.push(code)
      },
    },
    receiptVersion: 1,
    log: createFakeLog(),
    batchLimit: 256,
  })
  return { signer, batches, codes, drawn }
}

const refuse = () => Promise.reject(new CoordinatorError('enclave_unavailable', 'no enclave is reachable'))

test('counts each batch by size and each request by outcome', async () => {
  const { signer, batches, codes } = setUp(refuse)
  const requests = [request('1'), request('2'), request('2')].map((each) => signer.sign(each))
  const outcomes = await Promise.allSettled(requests)
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  // Two equal requests are one item of the batch and two outcomes.
  expect(batches).toEqual([2])
  expect(codes).toEqual(Array(3).fill('enclave_unavailable'))
})

test('counts an error without a code as internal', async () => {
  const { signer, codes } = setUp(() => Promise.reject(new TypeError('a fault of ours')))
  await expect(signer.sign(request('1'))).rejects.toThrow(TypeError)
  expect(codes).toEqual(['internal'])
})

test('stop answers pending requests and rejects later ones', async () => {
  let fail = (_error: Error) => {}
  const { signer, codes } = setUp(() => new Promise((_resolve, reject) => (fail = reject)))
  const first = signer.sign(request('1'))
  await new Promise(setImmediate)
  let isStopped = false
  const stopping = signer.stop().then(() => (isStopped = true))
  await expect(signer.sign(request('2'))).rejects.toMatchObject({ code: 'shutting_down' })
  expect(isStopped).toBe(false)
  fail(new CoordinatorError('enclave_unavailable', 'no enclave is reachable'))
  await expect(first).rejects.toMatchObject({ code: 'enclave_unavailable' })
  await stopping
  expect(codes).toEqual(['shutting_down', 'enclave_unavailable'])
})

test('the same message twice is two items, so each caller gets a separate opening', async () => {
  const { signer, batches } = setUp(refuse)
  const signContent = { kind: 'message', digest: `0x${'1'.repeat(64)}`, content: { message: '0x11' } } as const
  const twice = [1, 2].map(() => signer.sign({ ...request('1'), content: signContent }))
  await Promise.allSettled([...twice, signer.sign(request('1')), signer.sign(request('1'))])
  expect(batches).toEqual([3])
})

test('large requests are split, so that the enclave does not reject a whole call', async () => {
  const sizes: number[] = []
  const { signer, batches } = setUp(async (items) => {
    sizes.push(Buffer.byteLength(JSON.stringify({ items })))
    return refuse()
  })
  const content = { message: `0x${'11'.repeat(16_000)}` } as const
  const signContent = { kind: 'message', digest: `0x${'1'.repeat(64)}`, content } as const
  await Promise.allSettled(Array.from({ length: 256 }, () => signer.sign({ ...request('1'), content: signContent })))
  expect(batches.reduce((sum, size) => sum + size, 0)).toBe(256)
  expect(batches.length).toBeGreaterThan(1)
  for (const size of sizes) expect(size).toBeLessThan(4_194_304)
})

describe('authorizations', () => {
  const address: Hex = `0x${'ab'.repeat(20)}`
  const authorize = (authorization: Authorization): SignJob => ({
    ...request('1'),
    content: { kind: 'authorization', digest: `0x${'1'.repeat(64)}`, authorization },
  })
  const settings = createEnclaveSettings([{ kind: 'unsigned' }], [address])
  const getTerms = async () => ({ settings, config: fakeConfig })

  test.each([
    [
      'an implementation that the enclave does not list',
      { chainId: 1, address: `0x${'ac'.repeat(20)}` as const, nonce: 0 },
    ],
    ['every chain', { chainId: 0, address, nonce: 0 }],
  ])('for %s cost no sample', async (_, authorization) => {
    const { signer, batches, codes, drawn } = setUp(refuse, getTerms)
    const payment = signer.sign(request('2'))
    await expect(signer.sign(authorize(authorization))).rejects.toMatchObject({ code: 'authorization_not_allowed' })
    await expect(payment).rejects.toMatchObject({ code: 'enclave_unavailable' })
    expect([batches, drawn]).toEqual([[1], [1]])
    expect(codes.toSorted()).toEqual(['authorization_not_allowed', 'enclave_unavailable'])
  })

  test('for a listed implementation are sent to the enclave', async () => {
    const { signer, batches } = setUp(refuse, getTerms)
    await expect(signer.sign(authorize({ chainId: 1, address, nonce: 0 }))).rejects.toMatchObject({
      code: 'enclave_unavailable',
    })
    expect(batches).toEqual([1])
  })

  test('fail without using a sample if no enclave attests a list', async () => {
    const { signer, drawn } = setUp(refuse, refuse)
    await expect(signer.sign(authorize({ chainId: 1, address, nonce: 0 }))).rejects.toMatchObject({
      code: 'enclave_unavailable',
    })
    expect(drawn).toEqual([])
  })
})
