import { parseAttestationPublished } from '@countersign/protocol'
import { type LocalChain, startChain } from '@countersign/testing'
import {
  createPublicClient,
  createWalletClient,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  http,
  padHex,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serviceAttestations } from './abi.ts'
import { deployServiceAttestations } from './deployContract.ts'

// Tests of what Solidity tests can't see: receipts, gas of whole transactions, and the TypeScript parsers.

const { abi } = serviceAttestations
let chain: LocalChain
let address: Hex

beforeAll(async () => {
  chain = await startChain()
  const [owner, publisher] = [accountOf(0), accountOf(1)]
  const parameters = { rpcUrl: chain.url, owner: owner.address, publisher: publisher.address }
  ;({ address } = await deployServiceAttestations({ ...parameters, privateKey: owner.privateKey }))
})

afterAll(() => chain.stop())

function accountOf(index: number) {
  const account = chain.accounts[index]
  if (!account) throw new Error(`no account ${index}`)
  return account
}

function toProof(index: number, ipfsCid = `bafkrei${'a'.repeat(52)}`) {
  return { wallet: padHex(toHex(index + 1), { size: 20 }), txHash: padHex(toHex(index + 1), { size: 32 }), ipfsCid }
}

/** Sends without simulating first, like a publisher that lost a race. */
async function send(data: Hex, from = 1) {
  const transport = http(chain.url)
  const account = privateKeyToAccount(accountOf(from).privateKey)
  const hash = await createWalletClient({ account, transport }).sendTransaction({
    chain: null,
    to: address,
    data,
    gas: 2n ** 24n,
  })
  return createPublicClient({ transport }).getTransactionReceipt({ hash })
}

/** The contract's error for a rejected call. */
async function refusalOf(data: Hex, from = 1) {
  const client = createPublicClient({ transport: http(chain.url) })
  const error = await client
    .request({ method: 'eth_call', params: [{ to: address, from: accountOf(from).address, data }, 'latest'] })
    .then(
      () => undefined,
      (cause: unknown) => cause,
    )
  const data_ = (error as { cause?: { data?: Hex } } | undefined)?.cause?.data
  if (data_ === undefined) throw new Error('the call was not refused')
  return decodeErrorResult({ abi, data: data_ })
}

const publishBatch = (proofs: ReturnType<typeof toProof>[]) =>
  encodeFunctionData({ abi, functionName: 'publishBatch', args: [proofs] })

test('the protocol’s strict parser reads every event in the order of the batch', async () => {
  const proofs = Array.from({ length: 200 }, (_, index) => toProof(index, `b${'x'.repeat(index)}`))
  const { status, logs } = await send(publishBatch(proofs))
  expect(status).toBe('success')
  expect(logs.map(parseAttestationPublished)).toEqual(proofs)
})

test('the protocol reads the longest CID that the contract accepts', async () => {
  const proof = toProof(1, 'z'.repeat(256))
  const { logs } = await send(
    encodeFunctionData({ abi, functionName: 'publish', args: [proof.wallet, proof.txHash, proof.ipfsCid] }),
  )
  expect(logs.map(parseAttestationPublished)).toEqual([proof])
})

test('rejects a longer CID and names its index', async () => {
  const proofs = [toProof(0), toProof(1), toProof(2, 'z'.repeat(257))]
  expect(await refusalOf(publishBatch(proofs))).toMatchObject({ errorName: 'OversizedCid', args: [2n, 257n] })
})

test('the largest batch stays below the gas cap of a transaction (EIP-7825)', async () => {
  const proofs = Array.from({ length: 256 }, (_, index) => toProof(index, 'z'.repeat(256)))
  const { status, logs } = await send(publishBatch(proofs))
  expect(status).toBe('success')
  expect(logs).toHaveLength(256)
})

test('a batch whose last proof is invalid emits no event', async () => {
  const { status, logs } = await send(
    publishBatch([...Array.from({ length: 199 }, (_, index) => toProof(index)), toProof(199, '')]),
  )
  expect(status).toBe('reverted')
  expect(logs).toEqual([])
})

test('neither the owner nor another account can publish', async () => {
  for (const from of [0, 2]) {
    const { status, logs } = await send(publishBatch([toProof(0)]), from)
    expect(status).toBe('reverted')
    expect(logs).toEqual([])
    const caller = accountOf(from).address
    expect(await refusalOf(publishBatch([toProof(0)]), from)).toMatchObject({
      errorName: 'NotPublisher',
      args: [caller],
    })
  }
})
