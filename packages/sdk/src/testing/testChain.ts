import { isPlainObject, isPrefixedHex } from '@countersign/protocol'
import {
  type Hex,
  keccak256,
  numberToHex,
  parseTransaction,
  recoverTransactionAddress,
  stringToHex,
  type TransactionSerialized,
} from 'viem'

/** A mined transaction of a test service's chain. */
export type TestTransaction = {
  hash: Hex
  from: Hex
  to: Hex | null
  nonce: number
  value: bigint
  data: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
  blockNumber: bigint
}

/** An error of a JSON-RPC method. */
export type TestRpcError = { code: number; message: string; data?: unknown }

/** The test's own answers by method, such as `eth_call`. They override the chain's. */
export type TestRpcHandlers = Readonly<Record<string, (params: readonly unknown[]) => unknown>>

type TestChain = {
  /** The result, or throws what `toRpcError` reads. */
  call(method: string, params: readonly unknown[]): Promise<unknown>
  mine(): bigint
  readonly transactions: readonly TestTransaction[]
}

type TestChainOptions = {
  chainId: number
  baseFeePerGas: bigint
  balances: ReadonlyMap<Hex, bigint>
  handlers: TestRpcHandlers
}

type Block = {
  number: bigint
  hash: Hex
  parentHash: Hex
  timestamp: bigint
  transaction: MinedTransaction | undefined
}
type MinedTransaction = TestTransaction & { r: Hex; s: Hex; yParity: number; effectiveGasPrice: bigint }

const PRIORITY_FEE = 1_000_000_000n
const GAS_LIMIT = 30_000_000n
const NO_HASH: Hex = `0x${'00'.repeat(32)}`
const NOBODY: Hex = `0x${'00'.repeat(20)}`
const NO_BLOOM: Hex = `0x${'00'.repeat(256)}`
const MAX_HISTORY = 1024n

/** Thrown by methods. Any other error becomes -32603. */
class RpcFailure extends Error {
  readonly error: TestRpcError
  constructor(error: TestRpcError) {
    super(error.message)
    this.error = error
  }
}

/** A chain that mines each transaction at once and runs no code: a call to a contract is a transfer with data. */
export function createTestChain({
  chainId,
  baseFeePerGas,
  balances: initialBalances,
  handlers,
}: TestChainOptions): TestChain {
  const balances = new Map(initialBalances)
  const nonces = new Map<Hex, number>()
  const transactions: MinedTransaction[] = []
  const blocks: Block[] = []
  const genesis = addBlock(undefined)

  function addBlock(transaction: MinedTransaction | undefined): Block {
    const parent = blocks.at(-1)
    const number = BigInt(blocks.length)
    const now = BigInt(Math.floor(Date.now() / 1000))
    const block: Block = {
      number,
      hash: keccak256(stringToHex(`block ${chainId} ${number} ${transaction?.hash}`)),
      parentHash: parent?.hash ?? NO_HASH,
      timestamp: parent !== undefined && now <= parent.timestamp ? parent.timestamp + 1n : now,
      transaction,
    }
    blocks.push(block)
    return block
  }

  function latest(): Block {
    return blocks.at(-1) ?? genesis
  }

  function findBlock(tag: unknown): Block | undefined {
    if (tag === undefined || tag === 'latest' || tag === 'pending' || tag === 'safe' || tag === 'finalized')
      return latest()
    if (tag === 'earliest') return genesis
    return blocks[Number(toQuantity(tag, 'block number'))]
  }

  async function sendRawTransaction(raw: unknown): Promise<Hex> {
    if (typeof raw !== 'string' || !/^0x(?:[0-9a-fA-F]{2})+$/.test(raw)) throw invalidParams('not a raw transaction')
    const serialized = raw.toLowerCase() as Hex
    const { transaction, from } = await parseSigned(serialized)
    const hash = keccak256(serialized)
    if (transactions.some((mined) => mined.hash === hash)) throw rejected('already known')
    if (transaction.chainId !== chainId) throw rejected('invalid chain id for signer')
    const { nonce = 0, gas = 0n, value = 0n, data = '0x', to = null } = transaction
    const maxFeePerGas = transaction.maxFeePerGas ?? 0n
    const maxPriorityFeePerGas = transaction.maxPriorityFeePerGas ?? 0n
    const next = nonces.get(from) ?? 0
    if (nonce < next) throw rejected(`nonce too low: next nonce ${next}, tx nonce ${nonce}`)
    // Real pools store it, but here nothing would fill the gap.
    if (nonce > next) throw rejected(`nonce too high: next nonce ${next}, tx nonce ${nonce}`)
    if (maxFeePerGas < baseFeePerGas) throw rejected('max fee per gas less than block base fee')
    const needed = toIntrinsicGas(data)
    if (gas < needed) throw rejected(`intrinsic gas too low: gas ${gas}, minimum needed ${needed}`)
    const balance = balances.get(from) ?? 0n
    if (balance < value + gas * maxFeePerGas) throw rejected('insufficient funds for gas * price + value')

    const tip = min(maxPriorityFeePerGas, maxFeePerGas - baseFeePerGas)
    const effectiveGasPrice = baseFeePerGas + tip
    balances.set(from, balance - value - needed * effectiveGasPrice)
    if (to !== null) {
      const recipient = to.toLowerCase() as Hex
      balances.set(recipient, (balances.get(recipient) ?? 0n) + value)
    }
    nonces.set(from, next + 1)
    const mined: MinedTransaction = {
      hash,
      from,
      to: to === null ? null : (to.toLowerCase() as Hex),
      nonce,
      value,
      data,
      gas,
      maxFeePerGas,
      maxPriorityFeePerGas,
      blockNumber: latest().number + 1n,
      r: transaction.r ?? '0x0',
      s: transaction.s ?? '0x0',
      yParity: transaction.yParity ?? 0,
      effectiveGasPrice,
    }
    transactions.push(mined)
    addBlock(mined)
    return hash
  }

  function toRpcTransaction(transaction: MinedTransaction) {
    return {
      type: '0x2',
      chainId: numberToHex(chainId),
      hash: transaction.hash,
      from: transaction.from,
      to: transaction.to,
      nonce: numberToHex(transaction.nonce),
      value: numberToHex(transaction.value),
      input: transaction.data,
      gas: numberToHex(transaction.gas),
      gasPrice: numberToHex(transaction.effectiveGasPrice),
      maxFeePerGas: numberToHex(transaction.maxFeePerGas),
      maxPriorityFeePerGas: numberToHex(transaction.maxPriorityFeePerGas),
      accessList: [],
      blockHash: blocks[Number(transaction.blockNumber)]?.hash ?? null,
      blockNumber: numberToHex(transaction.blockNumber),
      transactionIndex: '0x0',
      r: transaction.r,
      s: transaction.s,
      v: numberToHex(transaction.yParity),
      yParity: numberToHex(transaction.yParity),
    }
  }

  function toRpcReceipt(transaction: MinedTransaction) {
    const gasUsed = numberToHex(toIntrinsicGas(transaction.data))
    return {
      type: '0x2',
      status: '0x1',
      transactionHash: transaction.hash,
      transactionIndex: '0x0',
      blockHash: blocks[Number(transaction.blockNumber)]?.hash ?? null,
      blockNumber: numberToHex(transaction.blockNumber),
      from: transaction.from,
      to: transaction.to,
      contractAddress: null,
      gasUsed,
      cumulativeGasUsed: gasUsed,
      effectiveGasPrice: numberToHex(transaction.effectiveGasPrice),
      logs: [],
      logsBloom: NO_BLOOM,
    }
  }

  function toRpcBlock(block: Block, isFull: boolean) {
    const { transaction } = block
    return {
      number: numberToHex(block.number),
      hash: block.hash,
      parentHash: block.parentHash,
      timestamp: numberToHex(block.timestamp),
      baseFeePerGas: numberToHex(baseFeePerGas),
      gasLimit: numberToHex(GAS_LIMIT),
      gasUsed: numberToHex(transaction === undefined ? 0n : toIntrinsicGas(transaction.data)),
      miner: NOBODY,
      difficulty: '0x0',
      totalDifficulty: '0x0',
      extraData: '0x',
      logsBloom: NO_BLOOM,
      mixHash: NO_HASH,
      nonce: '0x0000000000000000',
      receiptsRoot: NO_HASH,
      sha3Uncles: NO_HASH,
      size: '0x0',
      stateRoot: NO_HASH,
      transactionsRoot: NO_HASH,
      uncles: [],
      transactions: transaction === undefined ? [] : [isFull ? toRpcTransaction(transaction) : transaction.hash],
    }
  }

  function feeHistory([count, newest, percentiles]: readonly unknown[]) {
    const last = findBlock(newest)
    if (last === undefined) throw invalidParams('unknown block')
    const requested = min(toQuantity(count, 'block count'), MAX_HISTORY)
    const length = Number(min(requested, last.number + 1n))
    const rewards = Array.isArray(percentiles) ? percentiles.map(() => numberToHex(PRIORITY_FEE)) : undefined
    return {
      oldestBlock: numberToHex(last.number + 1n - BigInt(length)),
      baseFeePerGas: Array.from({ length: length + 1 }, () => numberToHex(baseFeePerGas)),
      gasUsedRatio: Array.from({ length }, () => 0),
      ...(rewards === undefined ? {} : { reward: Array.from({ length }, () => rewards) }),
    }
  }

  const methods: TestRpcHandlers = {
    eth_chainId: () => numberToHex(chainId),
    eth_blockNumber: () => numberToHex(latest().number),
    eth_getTransactionCount: ([address]) => numberToHex(nonces.get(toAddress(address)) ?? 0),
    eth_getBalance: ([address]) => numberToHex(balances.get(toAddress(address)) ?? 0n),
    eth_getBlockByNumber: ([tag, isFull]) => {
      const block = findBlock(tag)
      return block === undefined ? null : toRpcBlock(block, isFull === true)
    },
    eth_maxPriorityFeePerGas: () => numberToHex(PRIORITY_FEE),
    eth_gasPrice: () => numberToHex(baseFeePerGas + PRIORITY_FEE),
    eth_feeHistory: feeHistory,
    eth_estimateGas: ([request]) => numberToHex(toIntrinsicGas(toCallData(request))),
    eth_call: () => '0x',
    eth_sendRawTransaction: ([raw]) => sendRawTransaction(raw),
    eth_getTransactionByHash: ([hash]) => {
      const found = findTransaction(transactions, hash)
      return found === undefined ? null : toRpcTransaction(found)
    },
    eth_getTransactionReceipt: ([hash]) => {
      const found = findTransaction(transactions, hash)
      return found === undefined ? null : toRpcReceipt(found)
    },
  }

  return {
    async call(method, params) {
      const handler = own(handlers, method) ?? own(methods, method)
      if (handler === undefined) {
        throw new RpcFailure({ code: -32601, message: `the method ${method} does not exist/is not available` })
      }
      return await handler(params)
    },
    mine: () => addBlock(undefined).number,
    get transactions() {
      return transactions.map(
        ({ r: _r, s: _s, yParity: _yParity, effectiveGasPrice: _price, ...transaction }) => transaction,
      )
    },
  }
}

/** The error of a JSON-RPC answer. A test's handler can throw `{ code, message, data }`. */
function toRpcError(error: unknown): TestRpcError {
  if (error instanceof RpcFailure) return error.error
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number') {
    const message = 'message' in error && typeof error.message === 'string' ? error.message : 'failed'
    return { code: error.code, message, ...('data' in error ? { data: error.data } : {}) }
  }
  return { code: -32603, message: error instanceof Error ? error.message : 'internal error' }
}

function own(handlers: TestRpcHandlers, method: string) {
  return Object.hasOwn(handlers, method) ? handlers[method] : undefined
}

async function parseSigned(serialized: Hex) {
  try {
    const transaction = parseTransaction(serialized as TransactionSerialized)
    if (transaction.type !== 'eip1559') throw rejected('transaction type not supported')
    const from = await recoverTransactionAddress({ serializedTransaction: serialized as TransactionSerialized })
    return { transaction, from: from.toLowerCase() as Hex }
  } catch (error) {
    if (error instanceof RpcFailure) throw error
    throw rejected('rlp: the transaction cannot be read, or its signature recovers no address')
  }
}

/** The intrinsic gas of a transfer with this data (EIP-2028). */
function toIntrinsicGas(data: Hex): bigint {
  let gas = 21_000n
  for (let index = 2; index < data.length; index += 2) gas += data.slice(index, index + 2) === '00' ? 4n : 16n
  return gas
}

function toCallData(request: unknown): Hex {
  if (typeof request !== 'object' || request === null) throw invalidParams('not a transaction')
  const { data, input } = request as { data?: unknown; input?: unknown }
  const text = data ?? input ?? '0x'
  if (!isPrefixedHex(text)) throw invalidParams('data is not hex')
  return text
}

function findTransaction(transactions: readonly MinedTransaction[], hash: unknown): MinedTransaction | undefined {
  if (!isPrefixedHex(hash, 32)) throw invalidParams('not a transaction hash')
  return transactions.find((transaction) => transaction.hash === hash.toLowerCase())
}

function toAddress(address: unknown): Hex {
  if (!isPrefixedHex(address, 20)) throw invalidParams('not an address')
  return address.toLowerCase() as Hex
}

function toQuantity(value: unknown, name: string): bigint {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value)
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(value)) throw invalidParams(`not a ${name}`)
  return BigInt(value)
}

function min(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}

function invalidParams(message: string) {
  return new RpcFailure({ code: -32602, message: `invalid params: ${message}` })
}

/** Uses geth's messages, which clients search for. */
function rejected(message: string) {
  return new RpcFailure({ code: -32000, message })
}

type AnswerRpcDeps = {
  chain: TestChain
  /** Records the call and returns the failure that the test has queued. */
  takeFailure(method: string): TestRpcError | undefined
}

/** JSON-RPC over HTTP, a call or a batch of them. */
export async function answerRpc(deps: AnswerRpcDeps, request: Request): Promise<Response> {
  if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } })
  let body: unknown
  try {
    body = await request.json()
  } catch {
    return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse error' } })
  }
  if (!Array.isArray(body) || body.length === 0) return Response.json(await answerCall(deps, body))
  const answers: unknown[] = []
  // In order: a batch may hold two transactions of one account.
  for (const call of body) answers.push(await answerCall(deps, call))
  return Response.json(answers)
}

async function answerCall({ chain, takeFailure }: AnswerRpcDeps, call: unknown): Promise<unknown> {
  if (!isPlainObject(call) || typeof call.method !== 'string') {
    return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'invalid request' } }
  }
  const { method, id = null, params } = call
  const failure = takeFailure(method)
  try {
    if (failure !== undefined) throw failure
    const result = await chain.call(method, Array.isArray(params) ? params : [])
    return { jsonrpc: '2.0', id, result }
  } catch (error) {
    return { jsonrpc: '2.0', id, error: toRpcError(error) }
  }
}
