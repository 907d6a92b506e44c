import type { Approval } from '@countersign/policy'
import type { PasskeyApproval } from '@countersign/protocol'
import { keccak256, recoverMessageAddress, recoverTypedDataAddress } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { alice, bob, type StartedVault, startVault, toFailure } from '../../test/vaults/vaults.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import { approve } from './approve.ts'
import { type PrepareRequest, prepare } from './prepare.ts'
import { type Prepared, parsePrepared } from './prepared.ts'
import { sendPrepared, signPrepared } from './signPrepared.ts'
import { signAndSend } from './toVaultClient.ts'

let started: StartedVault

async function start() {
  started = await startVault()
}
const stop = () => started.stop()

const large: PrepareRequest = { kind: 'transaction', to: bob, value: '1' }
const message: PrepareRequest = { kind: 'message', message: 'I agree.' }
const typedData = {
  domain: { name: 'Shop', chainId: 31337 },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: 5n },
} as const

const ask = (request: PrepareRequest, validForMs?: number) =>
  prepare(started.client, started.vault, request, { validForMs })

/** Approves as each owner would on their device. */
const approveWith = (prepared: Prepared, index: 0 | 1) => {
  const { credentialId } = started.passkeys[index]
  return approve(parsePrepared(JSON.stringify(prepared)), { credentials: [{ credentialId }] })
}

const countSigned = () => started.service.requests.filter((name) => name.startsWith('POST /sign/')).length

describe('sendPrepared', () => {
  beforeEach(start)
  afterEach(stop)

  test('sends exactly the approved transaction from the vault, with its proof', async () => {
    const { client, service, vault } = started
    const prepared = await ask(large)
    const { txHash, attestationSlug } = await sendPrepared(client, prepared, [await approveWith(prepared, 1)])
    expect(service.transactions.at(-1)).toMatchObject({ hash: txHash, from: vault.address, to: bob, value: 10n ** 18n })
    expect((await client.api.getProof(attestationSlug)).walletAddress).toBe(vault.address)
    const { transactions } = await client.api.listTransactions()
    expect(transactions.map(({ walletAddress }) => walletAddress)).toEqual([vault.address, undefined])
  })

  test('rejects with nonce_taken before signing if the nonce was used', async () => {
    const prepared = await ask(large)
    const approval = await approveWith(prepared, 0)
    await signAndSend(started.client, { to: alice, value: '0.01', wallet: started.vault })
    const before = countSigned()
    const error = await toFailure(sendPrepared(started.client, prepared, [approval]))
    expect(error).toMatchObject({
      code: 'nonce_taken',
      details: 'it has nonce 0, the next one is 1',
      signed: undefined,
    })
    expect(countSigned()).toBe(before)
  })

  test('the same approval pays only once', async () => {
    const prepared = await ask(large)
    const approvals = [await approveWith(prepared, 0)]
    await sendPrepared(started.client, prepared, approvals)
    expect((await toFailure(sendPrepared(started.client, prepared, approvals))).code).toBe('nonce_taken')
    expect(started.service.transactions).toHaveLength(2)
  })

  test('of two concurrent calls, one sends and the other fails with nonce_taken', async () => {
    const prepared = await ask(large)
    const approvals = [await approveWith(prepared, 0)]
    const results = await Promise.allSettled([1, 2].map(() => sendPrepared(started.client, prepared, approvals)))
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  test('the error of a failed broadcast has `signed`', async () => {
    const prepared = await ask(large)
    const approvals = [await approveWith(prepared, 0)]
    started.service.failNext('eth_sendRawTransaction', { code: -32000, message: 'insufficient funds' })
    const error = await toFailure(sendPrepared(started.client, prepared, approvals))
    expect(error.code).toBe('rpc_insufficient_funds')
    expect(error.signed?.attestationSlug).toBeTruthy()
  })

  test('does not sign if the RPC returns an invalid nonce', async () => {
    const prepared = await ask(large)
    const approvals = [await approveWith(prepared, 0)]
    const before = countSigned()
    vi.spyOn(started.client.publicClient, 'getTransactionCount').mockResolvedValue(Number.NaN)
    expect((await toFailure(sendPrepared(started.client, prepared, approvals))).code).toBe('rpc_failed')
    expect(countSigned()).toBe(before)
  })

  test('sends only transactions of the client’s chain', async () => {
    const { client } = started
    const prepared = await ask(message)
    expect((await toFailure(sendPrepared(client, prepared))).code).toBe('invalid_request')
    const other = new ServiceClient({ ...client.config, chainId: 1 })
    const payment = await ask({ kind: 'transaction', to: alice, value: 1n })
    const error = await toFailure(sendPrepared(other, payment))
    expect(error).toMatchObject({ code: 'invalid_request', details: 'it is for chain 31337' })
  })
})

/** Changes the last byte, which differs in each run. */
const changeEnd = (hex: string) => `${hex.slice(0, -2)}${hex.endsWith('00') ? '01' : '00'}`

describe('signPrepared', () => {
  // Nothing is sent, so no nonce is used.
  beforeAll(start)
  afterAll(stop)
  afterEach(() => vi.useRealTimers())

  test('returns a transaction’s bytes without sending it', async () => {
    const prepared = await ask(large)
    const signed = await signPrepared(started.client, prepared, [await approveWith(prepared, 0)])
    if (signed.kind !== 'transaction') throw new Error('another kind')
    expect(keccak256(signed.serializedTransaction)).toBe(signed.txHash)
    expect(started.service.transactions).toHaveLength(1)
  })

  test('signs a message with two approvals in any order, one of them twice', async () => {
    const prepared = await ask(message)
    const [one, two] = [await approveWith(prepared, 0), await approveWith(prepared, 1)]
    for (const approvals of [
      [one, two],
      [two, one],
      [two, one, two],
    ]) {
      const signed = await signPrepared(started.client, prepared, approvals)
      if (signed.kind !== 'message') throw new Error('another kind')
      const { signature, opening, attestationSlug } = signed
      const signer = await recoverMessageAddress({ message: 'I agree.', signature })
      expect(signer.toLowerCase()).toBe(started.vault.address)
      const listed = (opening.content as { approvals: readonly Approval[] }).approvals.map(({ approver }) => approver)
      expect(listed).toEqual([0, 1])
      await started.client.verifyOpening(await started.client.api.getProof(attestationSlug), opening)
    }
  })

  test('signs typed data', async () => {
    const prepared = await ask({ kind: 'typed-data', ...typedData })
    const signed = await signPrepared(started.client, prepared, [await approveWith(prepared, 0)])
    if (signed.kind !== 'typed-data') throw new Error('another kind')
    const signer = await recoverTypedDataAddress({ ...typedData, signature: signed.signature })
    expect(signer.toLowerCase()).toBe(started.vault.address)
    const other = new ServiceClient({ ...started.client.config, chainId: 1 })
    expect((await toFailure(signPrepared(other, prepared, [await approveWith(prepared, 0)]))).code).toBe(
      'invalid_typed_data',
    )
  })

  test('reports how many approvals are missing before sending', async () => {
    const prepared = await ask(message)
    const before = countSigned()
    const none = await toFailure(signPrepared(started.client, prepared))
    expect(none).toMatchObject({ code: 'approvals_missing', details: '2 missing', status: undefined })
    const one = await toFailure(signPrepared(started.client, prepared, [await approveWith(prepared, 0)]))
    expect(one).toMatchObject({ code: 'approvals_missing', details: '1 missing' })
    expect(countSigned()).toBe(before)
  })

  test.each<[string, (approval: PasskeyApproval) => Approval]>([
    ['of another approver', (approval) => ({ ...approval, approver: 1 - approval.approver })],
    ['of no approver', (approval) => ({ ...approval, approver: 2 })],
    ['with another end', (approval) => ({ ...approval, expiresMs: approval.expiresMs + 1 })],
    ['with another signature', ({ signature, ...rest }) => ({ ...rest, signature: changeEnd(signature) })],
    ['in capitals', (approval) => ({ ...approval, clientDataJSON: approval.clientDataJSON.toUpperCase() })],
    ['with a member too many', (approval) => ({ ...approval, by: 'ada' }) as Approval],
  ])('rejects an approval %s with approval_invalid before sending', async (_name, change) => {
    const prepared = await ask(large)
    const approval = change(await approveWith(prepared, 0))
    const before = countSigned()
    expect((await toFailure(signPrepared(started.client, prepared, [approval]))).code).toBe('approval_invalid')
    expect(countSigned()).toBe(before)
  })

  test('rejects a prepared request with another rule before sending', async () => {
    const before = countSigned()
    for (const request of [large, message]) {
      const prepared = await ask(request)
      const approvals = [await approveWith(prepared, 0), await approveWith(prepared, 1)]
      for (const [rule] of started.vault.policy.rules.entries()) {
        if (rule === prepared.rule) continue
        const error = await toFailure(signPrepared(started.client, { ...prepared, rule }, approvals))
        expect(error).toMatchObject({ code: 'prepared_mismatch', details: expect.stringContaining('rule') })
      }
    }
    expect(countSigned()).toBe(before)
  })

  test('rejects an approval of another request', async () => {
    const [one, other] = [await ask(large), await ask({ ...large, value: '1.1' })]
    const error = await toFailure(signPrepared(started.client, other, [await approveWith(one, 0)]))
    expect(error.code).toBe('approval_invalid')
    expect(error.details).toContain('another signature')
  })

  test('accepts approvals of 24 hours with a clock ten minutes behind, and not further', async () => {
    const prepared = await ask(large, 86_400_000)
    const preparedMs = Date.now()
    vi.useFakeTimers({ toFake: ['Date'], now: preparedMs - 599_000 })
    const approval = await approveWith(prepared, 0)
    await signPrepared(started.client, prepared, [approval])
    vi.setSystemTime(preparedMs - 660_000)
    expect((await toFailure(signPrepared(started.client, prepared, [approval]))).code).toBe('prepared_early')
  })

  test('rejects an expired approval', async () => {
    const prepared = await ask(large, 60_000)
    const approval = await approveWith(prepared, 0)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_001 })
    const error = await toFailure(signPrepared(started.client, prepared, [approval]))
    expect(error.code).toBe('prepared_expired')
    expect(error.details).toContain('it had expired')
  })

  test.each([
    ['policy_refused', 403],
    ['approvals_missing', 403],
    ['approval_invalid', 403],
    ['vault_not_found', 404],
  ] as const)('keeps the service’s code %s', async (code, status) => {
    const prepared = await ask(large)
    const approval = await approveWith(prepared, 0)
    started.service.failNext('POST /sign/digest', { code })
    expect(await toFailure(signPrepared(started.client, prepared, [approval]))).toMatchObject({ code, status })
  })

  test('rejects an opening without an approval', async () => {
    const prepared = await ask(message)
    const approvals = [await approveWith(prepared, 0), await approveWith(prepared, 1)]
    const answer = globalThis.fetch
    onTestFinished(() => {
      globalThis.fetch = answer
    })
    globalThis.fetch = async (input, init) => {
      const response = await answer(input, init)
      const body = (await response.json()) as { opening?: { content: { approvals: unknown[] } } }
      body.opening?.content.approvals.pop()
      return Response.json(body)
    }
    expect((await toFailure(signPrepared(started.client, prepared, approvals))).code).toBe('opening_mismatch')
  })
})
