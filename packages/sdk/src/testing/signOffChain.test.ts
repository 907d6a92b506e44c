import {
  assertStatementV2,
  computeCommitment,
  type Hex,
  type Opening,
  type ProofPayload,
  type TransactionPage,
  toHex,
} from '@countersign/protocol'
import { keccak256, parseSignature, recoverAddress, toHex as toQuantity, toRlp } from 'viem'
import { hashAuthorization, hashMessage } from 'viem/utils'
import { describe, expect, test } from 'vitest'
import { createTestService } from './createTestService.ts'
import type { TestService } from './testService.ts'

const implementation: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const authorization = { chainId: 31337, address: implementation, nonce: 2 }
const typedData = {
  domain: { name: 'App' },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: '5' },
}

async function post(service: TestService, path: string, body: unknown) {
  const response = await service.fetch(`https://service.test${path}`, {
    method: 'POST',
    credentials: 'include',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

describe('POST /sign/message and /sign/typed-data', () => {
  test('make real signatures, with an opening that opens the proof', async () => {
    const service = createTestService()
    const { body } = await post(service, '/sign/message', { message: '0x6869' })
    const { signature, slug, opening } = body as { signature: Hex; slug: string; opening: Opening }
    const signer = await recoverAddress({ hash: hashMessage('hi'), signature })
    expect(signer.toLowerCase()).toBe(service.wallet.address)
    service.completeProofs()
    const [proof] = service.proofs
    const commitment = toHex(computeCommitment(opening))
    expect(proof).toMatchObject({ slug, kind: 'off-chain', chainId: 0, txHash: `0x${commitment}`, status: 'complete' })
    expect(proof?.receipt).toMatchObject({ version: 'countersign-attestation/2', subject: { commitment } })
  })

  test('create two proofs for the same content, and neither shows it', async () => {
    const service = createTestService()
    for (let time = 0; time < 2; time++) await post(service, '/sign/message', { message: `0x${'c0ffee'.repeat(8)}` })
    const { body } = await post(service, '/sign/typed-data', typedData)
    service.completeProofs()
    expect(new Set(service.proofs.map(({ txHash }) => txHash)).size).toBe(3)
    const shown = JSON.stringify(service.proofs)
    for (const secret of ['c0ffee'.repeat(8), body.signature.slice(2), body.opening.content.salt, 'Order']) {
      expect(shown).not.toContain(secret)
    }
  })

  test.each<[string, unknown, number, string]>([
    ['/sign/message', { message: 'hello' }, 400, 'invalid_message'],
    ['/sign/message', { message: `0x${'ab'.repeat(16_378)}` }, 413, 'message_too_large'],
    ['/sign/message', { message: '0x', more: 1 }, 400, 'invalid_request'],
    ['/sign/message', null, 400, 'invalid_request'],
    ['/sign/typed-data', { ...typedData, primaryType: 'EIP712Domain' }, 400, 'invalid_typed_data'],
    ['/sign/typed-data', { ...typedData, domain: {} }, 400, 'invalid_typed_data'],
    ['/sign/typed-data', [], 400, 'invalid_typed_data'],
    ['/sign/authorization', { ...authorization, nonce: '2' }, 400, 'invalid_request'],
    ['/sign/authorization', { ...authorization, chainId: 0 }, 422, 'authorization_not_allowed'],
    ['/sign/authorization', { ...authorization, address: `0x${'00'.repeat(20)}` }, 422, 'authorization_not_allowed'],
  ])('%s rejects %j', async (path, body, status, code) => {
    const service = createTestService({ implementations: [implementation] })
    expect(await post(service, path, body)).toMatchObject({ status, body: { code } })
    expect(service.proofs).toEqual([])
  })

  test.each(['/sign/message', '/sign/typed-data', '/sign/authorization'])(
    '%s checks the session first, and does not sign without a wallet',
    async (path) => {
      expect(await post(createTestService({ signedIn: false }), path, {})).toMatchObject({ status: 401 })
      const service = createTestService({ provisioned: false, implementations: [implementation] })
      const body = { '/sign/message': { message: '0x' }, '/sign/typed-data': typedData }[path] ?? authorization
      expect(await post(service, path, body)).toMatchObject({ status: 409, body: { code: 'wallet_not_provisioned' } })
    },
  )
})

describe('POST /sign/authorization', () => {
  test('signs for listed code, with one proof for each authorization', async () => {
    const service = createTestService({ implementations: [implementation] })
    const { body } = await post(service, '/sign/authorization', authorization)
    expect(await post(service, '/sign/authorization', authorization)).toMatchObject({ body })
    const signer = await recoverAddress({ hash: hashAuthorization(authorization), signature: body.signature })
    expect(signer.toLowerCase()).toBe(service.wallet.address)
    service.completeProofs()
    const { r, s, yParity } = parseSignature(body.signature)
    const numbers = [toQuantity(31337), implementation, toQuantity(2), yParity === 0 ? '0x' : '0x01', r, s] as Hex[]
    const txHash = keccak256(toRlp(numbers.map((hex) => (hex.length > 44 ? toQuantity(BigInt(hex)) : hex))))
    expect(service.proofs).toMatchObject([{ kind: 'authorization', chainId: 31337, slug: body.slug, txHash }])
    const [{ receipt }] = service.proofs as [(typeof service.proofs)[number]]
    if (receipt?.version !== 'countersign-attestation/2') throw new Error('another version')
    expect(() => assertStatementV2(receipt.signer.statement)).not.toThrow()
  })

  test('lists no code by default', async () => {
    const service = createTestService()
    expect(await post(service, '/sign/authorization', authorization)).toMatchObject({
      status: 422,
      body: { code: 'authorization_not_allowed' },
    })
  })
})

const toListed = ({ kind, txHash, chainId, slug, status, createdAt }: ProofPayload) => ({
  kind,
  txHash,
  chainId,
  slug,
  status,
  createdAt,
})

test('the history has each kind, and only the kind of a message', async () => {
  const service = createTestService({ implementations: [implementation] })
  await post(service, '/sign/message', { message: '0x' })
  await post(service, '/sign/authorization', authorization)
  const response = await service.fetch('https://service.test/wallet/transactions', { credentials: 'include' })
  const { transactions } = (await response.json()) as TransactionPage
  const [delegation, message] = service.proofs.map(toListed).toReversed()
  expect(transactions).toEqual([{ ...delegation, implementation }, message])
  expect(transactions.map(({ kind }) => kind)).toEqual(['authorization', 'off-chain'])
})
