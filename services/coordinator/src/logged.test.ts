import { simulatedRoots } from '@countersign/attestation/simulator'
import { decodeLogEntry, parseVkey } from '@countersign/log'
import { createPolicy } from '@countersign/policy'
import {
  type Hex,
  hashUnsignedTransaction,
  type Opening,
  type ProofPayload,
  toCanonicalJson,
  toHex,
  type VaultInfo,
} from '@countersign/protocol'
import { checkReceipt, parseReceiptCar } from '@countersign/receipt'
import { createTx, createUser, type TestUser, toDigest, waitForCompleteProofs } from '@countersign/testing/stack'
import { recoverAddress } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startContract } from '../../../contracts/startContract.ts'
import { type Backend, startBackend } from '../test/backend.ts'

type Answer = { signature: Hex; slug: string; opening?: Opening }

const IMPLEMENTATION: Hex = `0x${'22'.repeat(20)}`
const typedData = {
  domain: { name: 'Token', chainId: 1, verifyingContract: `0x${'11'.repeat(20)}` },
  types: { Permit: [{ name: 'spender', type: 'address' }] },
  primaryType: 'Permit',
  message: { spender: `0x${'33'.repeat(20)}` },
}

/* Runs real processes of one backend in order: an enclave that requires its log, and three witnesses with a quorum of two. */
describe('an enclave with a log, as separate processes', () => {
  let started: Awaited<ReturnType<typeof startContract>>
  let backend: Backend
  let alice: TestUser
  let nonce = 0
  beforeAll(async () => {
    started = await startContract()
    const enclaveEnv = { IMPLEMENTATIONS: IMPLEMENTATION }
    backend = await startBackend({ env: started.env, enclaveEnv, log: {} })
    await backend.untilReady()
    alice = createUser(backend)
    await alice.signIn('alice')
  }, 120_000)
  afterAll(async () => {
    await backend?.stop()
    await started?.chain.stop()
  })

  async function read<Body>(pending: Promise<Response>, status = 200): Promise<Body> {
    const response = await pending
    const text = await response.text()
    expect({ status: response.status, text }).toMatchObject({ status })
    return JSON.parse(text)
  }
  const post = (path: string, body: unknown) => read<Answer>(alice.post(path, body))
  const sign = (txMetadata: ReturnType<typeof createTx>, user = alice) => read<Answer>(user.sign(txMetadata))
  const refusal = async (pending: Promise<Response>) => (await read<{ code: string }>(pending, 503)).code

  async function expectVerified({ slug, opening }: Answer): Promise<ProofPayload> {
    const [proof] = await waitForCompleteProofs({ url: backend.url, slugs: [slug], timeoutMs: 90_000 })
    const car = await fetch(`${backend.url}/ipfs/${proof?.ipfsCid}?format=car`)
    const { bytes, collateral, blocks } = parseReceiptCar(new Uint8Array(await car.arrayBuffer()))
    const { steps, verdict } = await checkReceipt(bytes, collateral as Uint8Array, {
      roots: simulatedRoots(),
      mockEntropyKeys: [backend.satellite.publicKey],
      cid: proof?.ipfsCid ?? '',
      blocks,
      ...(opening && { opening: toCanonicalJson(opening) }),
    })
    expect(steps.filter(({ status }) => status === 'fail')).toEqual([])
    expect(steps.find(({ id }) => id === 'log')).toMatchObject({ status: 'pass' })
    expect(verdict).toBe('mock')
    return proof as ProofPayload
  }

  /** All stored entries, decoded. */
  const readEntries = () =>
    backend.withDatabase(async (query) => {
      const rows = await query(`select substr(entries, 57 * place + 1, 57) as entry from log_appends
        cross join generate_series(0, length(entries) / 57 - 1) as place order by log_id, size, place`)
      return rows.map(({ entry }) => decodeLogEntry(new Uint8Array(entry as Buffer)))
    })
  const countSigned = () =>
    backend.withDatabase(async (query) => Number((await query('select count(*) from proofs'))[0]?.count))

  test('signs every kind, and each receipt proves its log entry', async () => {
    const transaction = createTx(nonce++)
    const { chainId } = started.chain
    const answers = await Promise.all([
      sign(transaction),
      post('/sign/message', { message: '0x6869' }),
      post('/sign/typed-data', typedData),
      post('/sign/authorization', { chainId, address: IMPLEMENTATION, nonce: 4 }),
      post('/wallet/attest', {}),
    ])
    const [first] = answers as [Answer, ...Answer[]]
    const hash = `0x${toHex(hashUnsignedTransaction(transaction))}` as const
    const { address } = await read<{ address: Hex }>(alice.get('/wallet/me'))
    expect((await recoverAddress({ hash, signature: first.signature })).toLowerCase()).toBe(address)
    for (const answer of answers) await expectVerified(answer)
    const kinds = (await readEntries()).map(({ kind }) => kind)
    expect(kinds[0]).toBe('boot')
    expect(kinds.filter((kind) => kind === 'signature').length).toBe(answers.length)
  }, 240_000)

  test('64 concurrent signings have an entry and a receipt each', async () => {
    const answers = await Promise.all(Array.from({ length: 64 }, () => sign(createTx(nonce++))))
    expect(new Set(answers.map(({ slug }) => slug)).size).toBe(64)
    await expectVerified(answers[63] as Answer)
  }, 240_000)

  test('the same digest through two coordinators at once creates one signature', async () => {
    const second = await backend.startSecond({ WORKER: 'off' })
    try {
      const other = createUser(second)
      await other.signIn('alice')
      const transactions = Array.from({ length: 8 }, () => createTx(nonce++))
      const before = await countSigned()
      const answers = await Promise.all(
        transactions.map((one) => Promise.all([sign(one), sign(one, other), sign(one), sign(one, other)])),
      )
      for (const same of answers) expect(new Set(same.map(({ slug }) => slug)).size).toBe(1)
      expect(await countSigned()).toBe(before + transactions.length)
    } finally {
      await second.stop()
    }
  }, 240_000)

  test('a vault that requires two specific witnesses waits for both; the wallet needs any two', async () => {
    const [first, second, third] = backend.witnesses
    const rule = {
      kind: 'transaction',
      chainIds: 'any',
      to: 'any',
      maxValueWei: '1',
      maxFeeWei: '100000',
      approvers: 'any',
    } as const
    const witnesses = [first, second].map((one) => toHex(parseVkey(one?.vkey ?? '').publicKey)).sort()
    const log = { witnesses, quorum: 2 }
    const policy = createPolicy({ version: 1, log, approvers: [], rules: [{ ...rule, approvals: 0 }] })
    const { address: wallet } = await read<VaultInfo>(alice.post('/vaults', { policy }), 201)
    const pay = () => {
      const txMetadata = createTx(nonce++, { value: '1' })
      return { digest: toDigest(txMetadata), txMetadata, wallet, rule: 0 }
    }
    await third?.kill('SIGKILL')
    await expectVerified(await post('/sign/digest', pay()))
    await third?.start()
    await first?.kill('SIGKILL')
    const [ofVault] = await Promise.all([refusal(alice.post('/sign/digest', pay())), sign(createTx(nonce++))])
    expect(ofVault).toBe('log_unavailable')
    await first?.start()
    await expectVerified(await post('/sign/digest', pay()))
  }, 240_000)

  test('without a quorum nothing is released: callers get an error, an entry marks the drop, and signing works when witnesses are back', async () => {
    const [first, second] = backend.witnesses
    const [before, dropped] = [
      await countSigned(),
      (await readEntries()).filter(({ kind }) => kind === 'dropped').length,
    ]
    await Promise.all([first?.kill('SIGKILL'), second?.kill('SIGKILL')])
    const transactions = Array.from({ length: 4 }, () => createTx(nonce++))
    expect(new Set(await Promise.all(transactions.map((one) => refusal(alice.sign(one)))))).toEqual(
      new Set(['log_unavailable']),
    )
    expect(await countSigned()).toBe(before)
    await Promise.all([first?.start(), second?.start()])
    await backend.untilReady()
    for (const answer of await Promise.all(transactions.map((one) => sign(one)))) await expectVerified(answer)
    await expect
      .poll(async () => (await readEntries()).filter(({ kind }) => kind === 'dropped').length)
      .toBeGreaterThanOrEqual(dropped + transactions.length)
    expect((await readEntries()).some(({ kind }) => kind === 'unacknowledged')).toBe(false)
  }, 240_000)
})
