import { isDeepStrictEqual } from 'node:util'
import {
  type Hex,
  hashUnsignedTransaction,
  type TxMetadata,
  type TypedData,
  toPrefixedHex,
} from '@countersign/protocol'
import { startChain } from '@countersign/testing'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  createPublicClient,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  http,
  parseAbi,
  parseEther,
  parseSignature,
  serializeTransaction,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { serviceAttestations } from '../../../contracts/abi.ts'
import { compileTestContract } from '../../../contracts/compileTestContract.ts'
import { createRandom, type Random } from '../../../packages/protocol/fuzz/random.ts'
import { createSession, type Session, signFor, toViem } from './randomTransactions.ts'
import { createSecondEvm, type Execution } from './secondEvm.ts'

/** How many transactions both EVMs executed, reverted and rejected. */
export type ExecutionTally = { executed: number; reverted: number; rejected: number }

const CHAIN_ID = 31337
const FEES = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n }
const tokenAbi = parseAbi([
  'constructor(address holder, uint256 supply)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function nonces(address owner) view returns (uint256)',
])
const PERMIT = ['owner address', 'spender address', 'value uint256', 'nonce uint256', 'deadline uint256']
const types = { Permit: PERMIT.map((field) => field.split(' ')).map(([name = '', type = '']) => ({ name, type })) }

/**
 * Lets the enclave sign random transactions, permits and authorizations, and runs each on the test chain and in a second EVM. Throws if
 * sender, hash, gas, events or the resulting accounts differ.
 */
export async function compareExecutions({ runs, seed }: { runs: number; seed: number }): Promise<ExecutionTally> {
  const chain = await startChain({ chainId: CHAIN_ID })
  try {
    const random = createRandom(seed)
    const tally: ExecutionTally = { executed: 0, reverted: 0, rejected: 0 }
    const world = await createWorld(chain)
    for (let run = 0; run < runs; run++) {
      const session = random.pick(world.sessions)
      const draw = random.pick([drawPayment, drawForgery, drawPermit, drawAuthorization, drawPublication])
      const drawn = await draw({ ...world, random, session })
      const raw = 'raw' in drawn ? drawn.raw : await world.relay(drawn)
      const result = await world.send(raw, [session.address as Hex, drawn.to])
      tally[result === undefined ? 'rejected' : result.isSuccess ? 'executed' : 'reverted'] += 1
    }
    return tally
  } finally {
    await chain.stop()
  }
}

type Chain = Awaited<ReturnType<typeof startChain>>
type DrawnTransaction = { to: Hex; raw: Hex } | { to: Hex; data: Hex; authorizationList?: object[] }
type Draw = (
  world: Awaited<ReturnType<typeof createWorld>> & { random: Random; session: Session },
) => Promise<DrawnTransaction>

/** Both chains with the same accounts and contracts, and funded wallets of the enclave. */
async function createWorld({ url, accounts }: Chain) {
  const relayer = privateKeyToAccount(accounts[0]?.privateKey ?? '0x')
  const client = createPublicClient({ transport: http(url), cacheTime: 0 })
  const request = (method: string, params: unknown[]) => client.request({ method, params } as never) as Promise<Hex>
  const sessions = Array.from({ length: 4 }, (_, index) => createSession(`user ${index}`))
  const funded = new Map(
    [relayer.address, ...sessions.map(({ address }) => address as Hex)].map((one) => [one, 10n ** 22n]),
  )
  for (const [address, balance] of funded) await request('hardhat_setBalance', [address, toHex(balance)])
  const second = await createSecondEvm({ chainId: CHAIN_ID, funded })

  const getAccount = async (address: Hex) => ({
    balance: await client.getBalance({ address }),
    nonce: await client.getTransactionCount({ address }),
    code: (await client.getCode({ address })) ?? '0x',
  })
  /** Undefined if both reject it. */
  async function send(raw: Hex, touched: readonly Hex[]): Promise<Execution | undefined> {
    const hash = await request('eth_sendRawTransaction', [raw]).catch(() => undefined)
    const block = await client.getBlock()
    const { number, timestamp, gasLimit, miner: coinbase } = block
    const header = { number, timestamp, gasLimit, coinbase, baseFeePerGas: block.baseFeePerGas ?? 0n }
    const found = await second.run(raw, header).catch((error: Error) => error)
    const expected = hash === undefined ? undefined : await toExecution(hash)
    const result = found instanceof Error ? undefined : found
    assertEqual(raw, result, expected, found)
    for (const address of new Set([...touched, relayer.address])) {
      assertEqual(raw, await second.getAccount(address), await getAccount(address), address)
    }
    return expected
  }
  async function toExecution(hash: Hex): Promise<Execution> {
    const { status, gasUsed, from, logs } = await client.getTransactionReceipt({ hash })
    const events = logs.map(({ address, topics, data }) => ({ address, topics: [...topics], data }))
    return { hash, from, isSuccess: status === 'success', gasUsed, logs: events }
  }
  /** A transaction of an account outside the enclave. */
  async function relay({ to, data, authorizationList }: { to?: Hex; data: Hex; authorizationList?: object[] }) {
    const nonce = await client.getTransactionCount({ address: relayer.address })
    const fields = { chainId: CHAIN_ID, nonce, gas: 3_000_000n, data, ...FEES, ...(to && { to }) }
    return relayer.signTransaction((authorizationList ? { ...fields, authorizationList } : fields) as never)
  }
  async function deploy(data: Hex): Promise<Hex> {
    const nonce = BigInt(await client.getTransactionCount({ address: relayer.address }))
    const address = getContractAddress({ from: relayer.address, nonce }).toLowerCase() as Hex
    const result = await send(await relay({ data }), [address])
    if (result?.isSuccess !== true) throw new Error('not deployed')
    return address
  }
  const { abi, bytecode } = serviceAttestations
  const args = [relayer.address, relayer.address] as const
  const contract = await deploy(encodeDeployData({ abi, bytecode, args }))
  const tokenCode = await compileTestContract('PermitToken')
  const token = await deploy(encodeDeployData({ abi: tokenAbi, bytecode: tokenCode, args: [relayer.address, 1000n] }))
  return {
    sessions,
    relay,
    send,
    getNonce: (address: string) => client.getTransactionCount({ address: address as Hex }),
    relayer: relayer.address.toLowerCase() as Hex,
    contract,
    token,
    /** Reads a number from the token on both chains. */
    async readToken(data: Hex): Promise<bigint> {
      const expected = await request('eth_call', [{ to: token, data }, 'latest'])
      assertEqual(data, await second.call(token, data), expected, 'a call')
      return BigInt(expected)
    },
  }
}

function assertEqual(raw: Hex, found: unknown, expected: unknown, about: unknown): void {
  if (isDeepStrictEqual(found, expected)) return
  const show = (value: unknown) => JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? String(item) : item))
  throw new Error(`${raw}: ${show(found)} in the second EVM, ${show(expected)} on the chain (${about})`)
}

const drawPayment: Draw = async ({ random, session, token, contract, getNonce }) => {
  const [stranger, other] = [random.bytes(20), random.bytes(20)].map(toPrefixedHex) as [Hex, Hex]
  const to = random.pick([stranger, other, session.address as Hex, token, contract])
  const data = toPrefixedHex(random.bytes(random.pick([0, 0, 4, 36])))
  const value = random.pick([0n, 1n, parseEther('0.001'), parseEther('20000')])
  return { to, raw: signTransaction(session, { to, data, value, nonce: await getNonce(session.address) }) }
}

/** A payment whose nonce, chain or signature is wrong. */
const drawForgery: Draw = async ({ random, session, relayer: to, getNonce }) => {
  const nonce = await getNonce(session.address)
  const payment = { to, data: '0x', value: 1n, nonce } as const
  const spoil = (bytes: Uint8Array) => bytes.with(random.below(64), random.below(256))
  const ways = [
    () => signTransaction(session, { ...payment, nonce: nonce + 1 }),
    () => signTransaction(session, { ...payment, chainId: CHAIN_ID + 1 }),
    () => signTransaction(session, payment, spoil),
    () => signTransaction(session, payment, toHighS),
  ]
  return { to, raw: random.pick(ways)() }
}

const drawPermit: Draw = async ({ random, session, relayer, token, readToken }) => {
  const owner = session.address as Hex
  // The allowance left by the previous permit.
  await readToken(encodeFunctionData({ abi: tokenAbi, functionName: 'allowance', args: [owner, relayer] }))
  const nonce = await readToken(encodeFunctionData({ abi: tokenAbi, functionName: 'nonces', args: [owner] }))
  const value = BigInt(random.below(1000))
  const deadline = random.pick([1n, 2n ** 40n, 2n ** 40n, 2n ** 40n])
  const content: TypedData = {
    domain: { name: 'Permit Token', version: '1', chainId: CHAIN_ID, verifyingContract: token },
    types,
    primaryType: 'Permit',
    message: { owner, spender: relayer, value: String(value), nonce: String(nonce), deadline: String(deadline) },
  }
  const { r, s, v } = parseSignature(signFor(session, { kind: 'typed-data', content }))
  const signed = value + random.pick([0n, 0n, 0n, 1n])
  const args = [owner, relayer, signed, deadline, Number(v), r, s] as const
  return { to: token, data: encodeFunctionData({ abi: tokenAbi, functionName: 'permit', args }) }
}

/** Delegates the account to the token's code, or removes the delegation. With a wrong nonce nothing changes. */
const drawAuthorization: Draw = async ({ random, session, token, contract, getNonce }) => {
  const nonce = (await getNonce(session.address)) + random.pick([0, 0, 1])
  const address = random.pick([token, contract])
  const authorization = { chainId: CHAIN_ID, address, nonce }
  const signature = signFor(session, { kind: 'authorization', authorization }, [token, contract])
  const authorizationList = [{ ...authorization, ...parseSignature(signature) }]
  return { to: session.address as Hex, data: '0x', authorizationList }
}

const drawPublication: Draw = async ({ random, contract }) => {
  const proof = () => ({
    wallet: toPrefixedHex(random.bytes(20)),
    txHash: toPrefixedHex(random.bytes(32)),
    ipfsCid: 'b'.repeat(random.pick([1, 31, 32, 59, 59, 129])),
  })
  const args = [Array.from({ length: random.below(6) }, proof)] as const
  return {
    to: contract,
    data: encodeFunctionData({ abi: serviceAttestations.abi, functionName: 'publishBatch', args }),
  }
}

type Payment = { to: Hex; data: Hex; value: bigint; nonce: number; chainId?: number }

function signTransaction(session: Session, payment: Payment, change = (bytes: Uint8Array) => bytes): Hex {
  const fees = { maxFeePerGas: String(FEES.maxFeePerGas), maxPriorityFeePerGas: String(FEES.maxPriorityFeePerGas) }
  const txMetadata: TxMetadata = { chainId: CHAIN_ID, ...payment, value: String(payment.value), gas: '100000', ...fees }
  const digest = toPrefixedHex(hashUnsignedTransaction(txMetadata))
  const signature = signFor(session, { kind: 'transaction', statementVersion: 2, digest, txMetadata })
  const changed = toPrefixedHex(change(new Uint8Array(Buffer.from(signature.slice(2), 'hex'))))
  return serializeTransaction(toViem(txMetadata), parseSignature(changed))
}

/** The other form of the same signature, which EIP-2 rejects. */
function toHighS(bytes: Uint8Array): Uint8Array {
  const { r, s } = secp256k1.Signature.fromBytes(bytes.subarray(0, 64))
  const other = new secp256k1.Signature(r, secp256k1.Point.CURVE().n - s).toBytes()
  return Uint8Array.of(...other, bytes[64] === 27 ? 28 : 27)
}
