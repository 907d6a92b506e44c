import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type AttestationPublished, type Hex, serviceAttestationsAbi } from '@countersign/protocol'
import { recoverTransactionAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeErrorResult,
  encodeEventTopics,
  keccak256,
  parseAbi,
  parseTransaction,
  serializeTransaction,
  stringToHex,
} from 'viem/utils'

/** How a node can misbehave. */
export type FakeChainFault =
  /** Resets every connection, before it does anything. */
  | 'down'
  /** Does what it is asked at once, and answers late. */
  | 'slow'
  /** Answers 500, and does nothing. */
  | 'error'
  /** Takes a transaction into its mempool, then resets the connection. Other requests are not touched. */
  | 'reset-after-accept'
  /** Answers bytes that are no JSON, and does nothing. */
  | 'garbage'
  /** Does what it is asked, and ends in the middle of its JSON. */
  | 'truncated'
  /** Answers 16 MiB, and does nothing. */
  | 'oversized'
  /** Takes a transaction, and answers the hash of another. Other requests are not touched. */
  | 'wrong-hash'
  /** Has no receipts, though the transactions are mined. Other requests are not touched. */
  | 'no-receipts'
  /** Has receipts of what waits in its mempool, in a block that does not exist. Other requests are not touched. */
  | 'lies-mined'

type FakeChainFaultOptions = {
  /** For `slow`. */
  delayMs?: number
  /** Heals after so many requests that it touched. Unset: never. */
  count?: number
  /** Touches only HTTP requests with one of these methods. Unset: any. */
  methods?: readonly string[]
}

type FakeChainTransaction = {
  hash: Hex
  raw: Hex
  /** Lower case, as all addresses here. */
  from: Hex
  to: Hex | undefined
  nonce: number
  value: bigint
  data: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

type FakeChainMinedTransaction = FakeChainTransaction & {
  blockNumber: number
  blockHash: Hex
  isSuccess: boolean
  gasUsed: bigint
}

export type FakeChainEvent = AttestationPublished & { blockNumber: number; blockHash: Hex; transactionHash: Hex }

export type StartFakeChainParameters = {
  /** Unset: 31337. */
  chainId?: number
  /** The account that may publish. Unset: hardhat's first. */
  publisher?: Hex
  owner?: Hex
  /** Where ServiceAttestations is. Unset: where hardhat's first account deploys first. */
  contract?: Hex
  /** Mines a block for each transaction that it takes. Unset: on command only. */
  autoMine?: boolean
  /** Blocks from the newest to the finalized one. Unset: 8; `none`: a chain without finality. */
  finalityDepth?: number | 'none'
  /** In wei. Unset: 1 gwei. */
  baseFee?: bigint
  /** Unset: any that is free. */
  port?: number
  now?: () => number
}

type SendFromElsewhereParameters = {
  privateKey: Hex
  /** Unset: the account's next. */
  nonce?: number
  /** Unset: the account itself. */
  to?: Hex
  data?: Hex
}

export type FakeChain = {
  readonly url: string
  readonly chainId: number
  readonly contract: Hex
  readonly head: { number: number; hash: Hex }
  /** Requests so far by method, those in batches too, whatever the answer was. */
  readonly requests: Readonly<Record<string, number>>
  /** Mines what can be mined, block after block; empty blocks too. */
  mine(count?: number): void
  /**
   * Replaces the last `depth` blocks by `depth + 1` empty ones. Their transactions wait in the mempool again (`all`), or are
   * gone (`none`).
   */
  reorg(depth: number, options?: { keep?: 'all' | 'none' }): void
  /** Takes a transaction out of the mempool; false where it is not in there. */
  dropTransaction(hash: Hex): boolean
  /** Of blocks from now on. What pays less stays in the mempool. */
  setBaseFee(wei: bigint): void
  /** Unset, an account has 10,000 ether to start with. */
  setBalance(account: Hex, wei: bigint): void
  /** From now on this account alone publishes. */
  setPublisher(account: Hex): void
  /** Calls that publish such a proof revert, by its transaction's hash or as the predicate says; until the result is called. */
  revertFor(proof: Hex | ((proof: AttestationPublished) => boolean)): () => void
  /** While held, blocks are empty. */
  holdMempool(isHeld: boolean): void
  /** From the next request on; without a fault it behaves again. */
  setFault(fault?: FakeChainFault, options?: FakeChainFaultOptions): void
  /** Another process with the same key: mines a transaction in a block of its own, instead of one that waits with its nonce. */
  sendFromElsewhere(parameters: SendFromElsewhereParameters): Promise<Hex>
  /** Of the canonical chain, in order. */
  events(): FakeChainEvent[]
  /** Of the canonical chain, in order. */
  transactions(): FakeChainMinedTransaction[]
  /** In the order of arrival. */
  mempool(): FakeChainTransaction[]
  stop(): Promise<void>
}

type Log = { topics: Hex[]; data: Hex; event: AttestationPublished }
type Mined = { transaction: FakeChainTransaction; isSuccess: boolean; gasUsed: bigint; logs: Log[] }
type Block = { number: number; hash: Hex; parentHash: Hex; timestamp: number; baseFee: bigint; mined: Mined[] }
type Request = { id?: unknown; method?: unknown; params?: unknown }
type Place = { block: Block; index: number }

const errorsAbi = parseAbi([
  'function publisher() view returns (address)',
  'function owner() view returns (address)',
  'error Error(string reason)',
  'error NotPublisher(address caller)',
  'error ZeroWallet(uint256 index)',
  'error ZeroTxHash(uint256 index)',
  'error EmptyCid(uint256 index)',
  'error OversizedCid(uint256 index, uint256 length)',
  'error EmptyBatch()',
  'error OversizedBatch(uint256 length)',
])
const contractAbi = [...serviceAttestationsAbi, ...errorsAbi]

const GWEI = 10n ** 9n
const START_BALANCE = 10_000n * 10n ** 18n
const BLOCK_GAS = 30_000_000n
/** EIP-7825. */
const TRANSACTION_GAS = 2n ** 24n
const TIP = GWEI
const MAX_BATCH = 256
const MAX_CID_BYTES = 256
const MAX_BODY_BYTES = 4_194_304
const ZERO_ADDRESS: Hex = `0x${'00'.repeat(20)}`
const ZERO_HASH: Hex = `0x${'00'.repeat(32)}`
const NO_BLOOM: Hex = `0x${'00'.repeat(256)}`

/** What a node answers as an error; carried by throwing, so that no handler needs to pass it on. */
class RpcError extends Error {
  readonly code: number
  readonly data: Hex | undefined
  constructor(code: number, message: string, data?: Hex) {
    super(message)
    this.code = code
    this.data = data
  }
}

/**
 * A chain with ServiceAttestations on loopback: transactions are parsed, checked and executed for real, after geth's rules and
 * in its words; blocks come on command, and everything that can go wrong goes wrong on command.
 *
 * @example
 * const chain = await startFakeChain({ publisher })
 * chain.setFault('reset-after-accept', { count: 1 })
 * chain.mine()
 * chain.reorg(1)
 */
export async function startFakeChain(parameters: StartFakeChainParameters = {}): Promise<FakeChain> {
  const { chainId = 31_337, autoMine = false, finalityDepth = 8, port = 0, now = Date.now } = parameters
  const contract = lower(parameters.contract ?? '0x5fbdb2315678afecb367f032d93f642f64180aa3')
  let publisher = lower(parameters.publisher ?? '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266')
  const owner = lower(parameters.owner ?? publisher)
  let baseFee = parameters.baseFee ?? GWEI

  const blocks: Block[] = []
  const pool: FakeChainTransaction[] = []
  const funded = new Map<Hex, bigint>()
  const reverts = new Set<(proof: AttestationPublished) => boolean>()
  const requests: Record<string, number> = {}
  const timers = new Set<NodeJS.Timeout>()
  /** Of the canonical chain: what its blocks add up to. */
  let places = new Map<Hex, Place>()
  let nonces = new Map<Hex, number>()
  let spent = new Map<Hex, bigint>()
  let isHeld = false
  let forks = 0
  let fault: FakeChainFault | undefined
  let faultOptions: FakeChainFaultOptions = {}
  let faultsLeft = Number.POSITIVE_INFINITY

  const head = () => blocks.at(-1) as Block
  const nonceOf = (account: Hex) => nonces.get(account) ?? 0
  const balanceOf = (account: Hex) => (funded.get(account) ?? START_BALANCE) - (spent.get(account) ?? 0n)
  const waiting = (from: Hex, nonce: number) => pool.find((item) => item.from === from && item.nonce === nonce)

  function spend(account: Hex, wei: bigint) {
    spent.set(account, (spent.get(account) ?? 0n) + wei)
  }

  function remove(transaction: FakeChainTransaction | undefined): boolean {
    const index = transaction === undefined ? -1 : pool.indexOf(transaction)
    if (index >= 0) pool.splice(index, 1)
    return index >= 0
  }

  function apply(block: Block) {
    for (const [index, { transaction, isSuccess, gasUsed }] of block.mined.entries()) {
      const { hash, from, to, nonce, value } = transaction
      places.set(hash, { block, index })
      nonces.set(from, nonce + 1)
      spend(from, gasUsed * priceOf(transaction, block.baseFee))
      if (!isSuccess) continue
      spend(from, value)
      if (to !== undefined) spend(to, -value)
    }
  }

  function append(mined: Mined[]) {
    const parent = blocks.at(-1)
    const number = blocks.length
    const parentHash = parent?.hash ?? ZERO_HASH
    const seed = [chainId, number, parentHash, forks, ...mined.map(({ transaction }) => transaction.hash)].join()
    const timestamp = Math.max(Math.floor(now() / 1000), (parent?.timestamp ?? 0) + 1)
    const block = { number, hash: keccak256(stringToHex(seed)), parentHash, timestamp, baseFee, mined }
    blocks.push(block)
    apply(block)
    // As pools do: what can never be mined any more goes.
    for (const item of pool.filter(({ from, nonce }) => nonce < nonceOf(from))) remove(item)
  }

  function toRevert(proofs: readonly AttestationPublished[], from: Hex, isBatch: boolean): Hex | undefined {
    const encode = (errorName: string, args: readonly unknown[]) =>
      encodeErrorResult({ abi: errorsAbi, errorName, args } as Parameters<typeof encodeErrorResult>[0])
    if (from !== publisher) return encode('NotPublisher', [from])
    if (isBatch && proofs.length === 0) return encode('EmptyBatch', [])
    if (proofs.length > MAX_BATCH) return encode('OversizedBatch', [proofs.length])
    for (const [index, proof] of proofs.entries()) {
      const length = Buffer.byteLength(proof.ipfsCid)
      if (proof.wallet === ZERO_ADDRESS) return encode('ZeroWallet', [index])
      if (proof.txHash === ZERO_HASH) return encode('ZeroTxHash', [index])
      if (length === 0) return encode('EmptyCid', [index])
      if (length > MAX_CID_BYTES) return encode('OversizedCid', [index, length])
      if ([...reverts].some((isMatch) => isMatch(proof))) return encode('Error', ['scripted revert'])
    }
    return undefined
  }

  /** What a call does: the gas that it needs and its logs, or the data of its revert. */
  function execute(call: { from: Hex; to: Hex | undefined; data: Hex; value: bigint }) {
    const intrinsic = intrinsicGas(call.data)
    if (call.to !== contract) return { gas: intrinsic, logs: [], output: '0x' as Hex, revert: undefined }
    const reverted = (revert: Hex) => ({ gas: intrinsic + 1_000n, logs: [], output: '0x' as Hex, revert })
    const decoded = decode(call.data)
    if (decoded === undefined || call.value > 0n) return reverted('0x')
    if (!('proofs' in decoded)) {
      const account = decoded.functionName === 'publisher' ? publisher : owner
      const output = encodeAbiParameters([{ type: 'address' }], [account])
      return { gas: intrinsic + 2_500n, logs: [], output, revert: undefined }
    }
    const proofs = decoded.proofs
    const revert = toRevert(proofs, call.from, decoded.functionName === 'publishBatch')
    if (revert !== undefined) return reverted(revert)
    const gas = intrinsic + 2_500n + 4_000n * BigInt(proofs.length)
    return { gas, logs: proofs.map(toLog), output: '0x' as Hex, revert: undefined }
  }

  function run(transaction: FakeChainTransaction): Mined {
    const { gas, logs, revert } = execute(transaction)
    // Out of gas: all of it is gone.
    if (gas > transaction.gas) return { transaction, isSuccess: false, gasUsed: transaction.gas, logs: [] }
    return { transaction, isSuccess: revert === undefined, gasUsed: gas, logs }
  }

  /** In the order of arrival, each account's by nonce; what pays too little holds up what comes after it. */
  function mineOne() {
    const mined: Mined[] = []
    const next = new Map<Hex, number>()
    let gasLeft = BLOCK_GAS
    for (let isChanged = !isHeld; isChanged; ) {
      isChanged = false
      for (const transaction of pool) {
        const { from, nonce, maxFeePerGas, gas, value } = transaction
        if (nonce !== (next.get(from) ?? nonceOf(from)) || maxFeePerGas < baseFee || gas > gasLeft) continue
        if (gas * maxFeePerGas + value > balanceOf(from)) continue
        const result = run(transaction)
        mined.push(result)
        next.set(from, nonce + 1)
        gasLeft -= result.gasUsed
        isChanged = true
      }
    }
    append(mined)
  }

  /** The checks of geth's pool, in its order and its words. */
  async function accept(raw: unknown): Promise<Hex> {
    const transaction = await readTransaction(raw, chainId)
    const { hash, from, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, value, data } = transaction
    if (pool.some((item) => item.hash === hash)) throw new RpcError(-32000, 'already known')
    if (gas > TRANSACTION_GAS) {
      throw new RpcError(-32000, `transaction gas limit too high (cap: ${TRANSACTION_GAS}, tx: ${gas})`)
    }
    if (maxPriorityFeePerGas > maxFeePerGas) {
      throw new RpcError(-32000, 'max priority fee per gas higher than max fee per gas')
    }
    const intrinsic = intrinsicGas(data)
    if (gas < intrinsic) throw new RpcError(-32000, `intrinsic gas too low: gas ${gas}, minimum needed ${intrinsic}`)
    const next = nonceOf(from)
    if (nonce < next) throw new RpcError(-32000, `nonce too low: next nonce ${next}, tx nonce ${nonce}`)
    const cost = gas * maxFeePerGas + value
    if (cost > balanceOf(from)) {
      const overshot = cost - balanceOf(from)
      throw new RpcError(
        -32000,
        `insufficient funds for gas * price + value: balance ${balanceOf(from)}, tx cost ${cost}, overshot ${overshot}`,
      )
    }
    const replaced = waiting(from, nonce)
    if (replaced !== undefined) {
      const isEnough = (fee: bigint, before: bigint) => fee > before && fee * 100n >= before * 110n
      if (
        !isEnough(maxFeePerGas, replaced.maxFeePerGas) ||
        !isEnough(maxPriorityFeePerGas, replaced.maxPriorityFeePerGas)
      ) {
        throw new RpcError(-32000, 'replacement transaction underpriced')
      }
      remove(replaced)
    }
    pool.push(transaction)
    if (autoMine) mineOne()
    return hash
  }

  function pendingNonceOf(account: Hex): number {
    let nonce = nonceOf(account)
    while (waiting(account, nonce) !== undefined) nonce += 1
    return nonce
  }

  function nonceAt(account: Hex, block: Block): number {
    const last = blocks
      .slice(0, block.number + 1)
      .flatMap(({ mined }) => mined)
      .findLast(({ transaction }) => transaction.from === account)
    return last === undefined ? 0 : last.transaction.nonce + 1
  }

  function findBlock(tag: unknown): Block | undefined {
    if (tag === undefined || tag === 'latest') return head()
    if (tag === 'earliest') return blocks[0]
    if (tag === 'finalized' || tag === 'safe') {
      // Geth's words where no block is final.
      if (finalityDepth === 'none') throw new RpcError(-39001, `${tag} block not found`)
      return blocks[Math.max(0, head().number - (tag === 'safe' ? Math.ceil(finalityDepth / 2) : finalityDepth))]
    }
    if (typeof tag !== 'string' || !/^0x[0-9a-f]+$/i.test(tag)) throw new RpcError(-32602, 'invalid block number')
    return blocks[Number(tag)]
  }

  function toLogs({ block, index }: Place) {
    const before = block.mined.slice(0, index).reduce((sum, { logs }) => sum + logs.length, 0)
    const { transaction, logs } = block.mined[index] as Mined
    return logs.map(({ topics, data }, position) => ({
      address: contract,
      topics,
      data,
      blockNumber: quantity(block.number),
      blockHash: block.hash,
      blockTimestamp: quantity(block.timestamp),
      transactionHash: transaction.hash,
      transactionIndex: quantity(index),
      logIndex: quantity(before + position),
      removed: false,
    }))
  }

  function toReceipt(place: Place) {
    const { block, index } = place
    const { transaction, isSuccess, gasUsed } = block.mined[index] as Mined
    const cumulative = block.mined.slice(0, index + 1).reduce((sum, item) => sum + item.gasUsed, 0n)
    return {
      transactionHash: transaction.hash,
      transactionIndex: quantity(index),
      blockHash: block.hash,
      blockNumber: quantity(block.number),
      from: transaction.from,
      to: transaction.to ?? null,
      contractAddress: null,
      cumulativeGasUsed: quantity(cumulative),
      gasUsed: quantity(gasUsed),
      effectiveGasPrice: quantity(priceOf(transaction, block.baseFee)),
      logs: toLogs(place),
      logsBloom: NO_BLOOM,
      status: isSuccess ? '0x1' : '0x0',
      type: '0x2',
    }
  }

  function getReceipt(hash: Hex) {
    if (isFault('no-receipts')) return null
    const place = places.get(hash)
    if (place !== undefined) return toReceipt(place)
    const transaction = pool.find((item) => item.hash === hash)
    if (transaction === undefined || !isFault('lies-mined')) return null
    const block = { ...head(), hash: keccak256(transaction.hash), mined: [run(transaction)] }
    return toReceipt({ block, index: 0 })
  }

  function getTransaction(hash: Hex) {
    const place = places.get(hash)
    if (place !== undefined) return toTransaction(place.block.mined[place.index] as Mined, place)
    const transaction = pool.find((item) => item.hash === hash)
    return transaction === undefined ? null : toTransaction({ transaction })
  }

  function toTransaction({ transaction }: { transaction: FakeChainTransaction }, place?: Place) {
    const { hash, raw, from, to, nonce, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
    const { r, s, yParity } = parseTransaction(raw)
    return {
      hash,
      type: '0x2',
      chainId: quantity(chainId),
      from,
      to: to ?? null,
      nonce: quantity(nonce),
      value: quantity(value),
      input: data,
      gas: quantity(gas),
      gasPrice: quantity(place === undefined ? maxFeePerGas : priceOf(transaction, place.block.baseFee)),
      maxFeePerGas: quantity(maxFeePerGas),
      maxPriorityFeePerGas: quantity(maxPriorityFeePerGas),
      accessList: [],
      r,
      s,
      v: quantity(yParity ?? 0),
      yParity: quantity(yParity ?? 0),
      blockHash: place?.block.hash ?? null,
      blockNumber: place === undefined ? null : quantity(place.block.number),
      transactionIndex: place === undefined ? null : quantity(place.index),
    }
  }

  function toBlock(block: Block | undefined, isFull: unknown) {
    if (block === undefined) return null
    return {
      number: quantity(block.number),
      hash: block.hash as Hex | null,
      parentHash: block.parentHash,
      timestamp: quantity(block.timestamp),
      baseFeePerGas: quantity(block.baseFee),
      gasLimit: quantity(BLOCK_GAS),
      gasUsed: quantity(block.mined.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)),
      transactions: block.mined.map((mined, index) =>
        isFull === true ? toTransaction(mined, { block, index }) : mined.transaction.hash,
      ),
      miner: ZERO_ADDRESS,
      difficulty: '0x0',
      extraData: '0x',
      logsBloom: NO_BLOOM,
      mixHash: ZERO_HASH,
      nonce: '0x0000000000000000' as Hex | null,
      receiptsRoot: keccak256(block.hash),
      sha3Uncles: ZERO_HASH,
      size: '0x220',
      stateRoot: keccak256(keccak256(block.hash)),
      transactionsRoot: ZERO_HASH,
      uncles: [],
    }
  }

  function getBlock(tag: unknown, isFull: unknown) {
    if (tag !== 'pending') return toBlock(findBlock(tag), isFull)
    const { number, hash: parentHash, timestamp } = head()
    const next = { number: number + 1, hash: ZERO_HASH, parentHash, timestamp: timestamp + 1, baseFee, mined: [] }
    return { ...toBlock(next, isFull), hash: null, nonce: null }
  }

  function getLogs(filter: unknown) {
    const { fromBlock, toBlock: until, blockHash, address, topics } = (filter ?? {}) as Record<string, unknown>
    const numberOf = (tag: unknown) => (tag === 'pending' ? head().number : (findBlock(tag)?.number ?? Number(tag)))
    const [from, to] = [numberOf(fromBlock), numberOf(until)]
    const isWanted = (block: Block) =>
      blockHash === undefined ? block.number >= from && block.number <= to : block.hash === blockHash
    const isAny = (wanted: unknown, actual: string | undefined) =>
      wanted === undefined ||
      wanted === null ||
      [wanted].flat().some((item) => String(item).toLowerCase() === actual?.toLowerCase())
    return blocks
      .filter(isWanted)
      .flatMap((block) => block.mined.flatMap((_, index) => toLogs({ block, index })))
      .filter(
        (log) =>
          isAny(address, log.address) &&
          (!Array.isArray(topics) || topics.every((wanted, index) => isAny(wanted, log.topics[index]))),
      )
  }

  function getFeeHistory([count, newest, percentiles]: unknown[]) {
    const last = newest === 'pending' ? head() : (findBlock(newest) ?? head())
    const length = Math.max(1, Math.min(Number(count), 1024, last.number + 1))
    const window = blocks.slice(last.number + 1 - length, last.number + 1)
    const next = blocks[last.number + 1]?.baseFee ?? baseFee
    return {
      oldestBlock: quantity(window[0]?.number ?? 0),
      baseFeePerGas: [...window.map((block) => block.baseFee), next].map(quantity),
      gasUsedRatio: window.map(() => 0.5),
      ...(Array.isArray(percentiles) ? { reward: window.map(() => percentiles.map(() => quantity(TIP))) } : {}),
    }
  }

  function toCall(value: unknown) {
    const { from, to, data, input, value: wei } = (value ?? {}) as Record<string, Hex | undefined>
    return {
      from: lower(from ?? ZERO_ADDRESS),
      to: to === undefined ? undefined : lower(to),
      data: input ?? data ?? '0x',
      value: BigInt(wei ?? 0),
    }
  }

  function call(parameter: unknown) {
    const result = execute(toCall(parameter))
    if (result.revert === undefined) return result
    const isScripted = result.revert.startsWith('0x08c379a0')
    throw new RpcError(3, `execution reverted${isScripted ? ': scripted revert' : ''}`, result.revert)
  }

  const methods: Record<string, (params: unknown[]) => unknown> = {
    eth_chainId: () => quantity(chainId),
    net_version: () => String(chainId),
    eth_syncing: () => false,
    eth_blockNumber: () => quantity(head().number),
    eth_getBlockByNumber: ([tag, isFull]) => getBlock(tag, isFull),
    eth_getBlockByHash: ([hash, isFull]) =>
      toBlock(
        blocks.find((block) => block.hash === hash),
        isFull,
      ),
    eth_getTransactionCount: ([account, tag]) => {
      if (tag === 'pending') return quantity(pendingNonceOf(lower(account)))
      const block = findBlock(tag)
      if (block === undefined) throw new RpcError(-32000, 'header not found')
      return quantity(block === head() ? nonceOf(lower(account)) : nonceAt(lower(account), block))
    },
    eth_getBalance: ([account]) => quantity(balanceOf(lower(account))),
    eth_getCode: ([account]) => (lower(account) === contract ? '0x6080604052' : '0x'),
    eth_gasPrice: () => quantity(baseFee + TIP),
    eth_maxPriorityFeePerGas: () => quantity(TIP),
    eth_feeHistory: getFeeHistory,
    eth_estimateGas: ([parameter]) => quantity(call(parameter).gas),
    eth_call: ([parameter]) => call(parameter).output,
    eth_sendRawTransaction: async ([raw]) => {
      const hash = await accept(raw)
      return isFault('wrong-hash') ? keccak256(hash) : hash
    },
    eth_getTransactionByHash: ([hash]) => getTransaction(lower(hash)),
    eth_getTransactionReceipt: ([hash]) => getReceipt(lower(hash)),
    eth_getLogs: ([filter]) => getLogs(filter),
  }

  /** Whether the fault is on for what is asked now; this time counts. */
  function isFault(...faults: FakeChainFault[]): boolean {
    if (fault === undefined || !faults.includes(fault) || faultsLeft <= 0) return false
    faultsLeft -= 1
    return true
  }

  async function answerOne(request: Request) {
    const { id = null, method, params = [] } = request ?? {}
    const handler = typeof method === 'string' && Object.hasOwn(methods, method) ? methods[method] : undefined
    try {
      if (handler === undefined) throw new RpcError(-32601, `the method ${String(method)} does not exist`)
      if (!Array.isArray(params)) throw new RpcError(-32602, 'params must be a list')
      return { jsonrpc: '2.0', id, result: await handler(params) }
    } catch (error) {
      const { code, message, data } = error instanceof RpcError ? error : new RpcError(-32602, 'invalid argument')
      return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } }
    }
  }

  async function answerAll(body: unknown) {
    if (!Array.isArray(body)) return await answerOne(body as Request)
    if (body.length === 0) return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'empty batch' } }
    const answers: unknown[] = []
    for (const item of body) answers.push(await answerOne(item))
    return answers
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = parseJson(await readBody(request))
    const asked = [body].flat().map((item) => String((item as Request | undefined)?.method))
    for (const method of asked) requests[method] = (requests[method] ?? 0) + 1
    const isTouched = faultOptions.methods === undefined || asked.some((item) => faultOptions.methods?.includes(item))
    const isHit = (...faults: FakeChainFault[]) => isTouched && isFault(...faults)
    if (isHit('down')) return void request.socket.resetAndDestroy()
    if (isHit('error')) return send(response, 500, '{"error":"internal"}')
    if (isHit('garbage')) return send(response, 200, randomBytes(512).toString('latin1'))
    if (isHit('oversized')) return send(response, 200, JSON.stringify('0'.repeat(16_777_216)))
    const delayMs = isHit('slow') ? (faultOptions.delayMs ?? 0) : undefined
    const text = JSON.stringify(await answerAll(body))
    if (asked.includes('eth_sendRawTransaction') && isHit('reset-after-accept')) {
      return void request.socket.resetAndDestroy()
    }
    if (isHit('truncated')) return send(response, 200, text.slice(0, text.length / 2))
    if (delayMs === undefined) return send(response, 200, text)
    const timer = setTimeout(() => {
      timers.delete(timer)
      send(response, 200, text)
    }, delayMs)
    timers.add(timer)
  }

  append([])
  const server = createServer((request, response) => {
    answer(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    chainId,
    contract,
    get head() {
      const { number, hash } = head()
      return { number, hash }
    },
    get requests() {
      return { ...requests }
    },
    mine(count = 1) {
      for (let index = 0; index < count; index++) mineOne()
    },
    reorg(depth, { keep = 'all' } = {}) {
      if (!Number.isInteger(depth) || depth < 1 || depth >= blocks.length) {
        throw new RangeError('a reorganisation cannot replace the first block')
      }
      const replaced = blocks.splice(-depth)
      forks += 1
      places = new Map()
      nonces = new Map()
      spent = new Map()
      for (const block of blocks) apply(block)
      const returned = replaced.flatMap(({ mined }) => mined.map(({ transaction }) => transaction))
      if (keep === 'all') pool.unshift(...returned)
      for (let index = 0; index <= depth; index++) append([])
    },
    dropTransaction: (hash) => remove(pool.find((item) => item.hash === hash)),
    setBaseFee(wei) {
      baseFee = wei
    },
    setBalance(account, wei) {
      funded.set(lower(account), wei + (spent.get(lower(account)) ?? 0n))
    },
    setPublisher(account) {
      publisher = lower(account)
    },
    revertFor(proof) {
      const isMatch =
        typeof proof === 'function' ? proof : ({ txHash }: AttestationPublished) => txHash === lower(proof)
      reverts.add(isMatch)
      return () => void reverts.delete(isMatch)
    },
    holdMempool(next) {
      isHeld = next
    },
    setFault(next, options = {}) {
      fault = next
      faultOptions = options
      faultsLeft = options.count ?? Number.POSITIVE_INFINITY
    },
    async sendFromElsewhere({ privateKey, nonce, to, data = '0x' }) {
      const account = privateKeyToAccount(privateKey)
      const from = lower(account.address)
      const next = nonceOf(from)
      if (nonce !== undefined && nonce !== next) throw new RangeError(`the next nonce is ${next}`)
      const raw = await account.signTransaction({
        type: 'eip1559',
        chainId,
        nonce: next,
        to: to ?? from,
        data,
        gas: to === undefined ? intrinsicGas(data) : 1_000_000n,
        maxFeePerGas: 2n * baseFee + TIP,
        maxPriorityFeePerGas: TIP,
      })
      const transaction = await readTransaction(raw, chainId)
      if (nonceOf(from) !== next) throw new RangeError('the nonce was used meanwhile')
      append([run(transaction)])
      return transaction.hash
    },
    events: () =>
      blocks.flatMap(({ number, hash, mined }) =>
        mined.flatMap(({ transaction, logs }) =>
          logs.map(({ event }) => ({
            ...event,
            blockNumber: number,
            blockHash: hash,
            transactionHash: transaction.hash,
          })),
        ),
      ),
    transactions: () =>
      blocks.flatMap(({ number, hash, mined }) =>
        mined.map(({ transaction, isSuccess, gasUsed }) => ({
          ...transaction,
          blockNumber: number,
          blockHash: hash,
          isSuccess,
          gasUsed,
        })),
      ),
    mempool: () => pool.map((transaction) => ({ ...transaction })),
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

type Decoded =
  | { functionName: 'publisher' | 'owner' }
  | { functionName: 'publish' | 'publishBatch'; proofs: AttestationPublished[] }

/** `undefined` where the contract has no such function, or the data is not that of a call to it. */
function decode(data: Hex): Decoded | undefined {
  try {
    const decoded = decodeFunctionData({ abi: contractAbi, data })
    if (decoded.functionName === 'publisher' || decoded.functionName === 'owner') return decoded
    const { functionName, args } = decoded
    const proofs = functionName === 'publish' ? [{ wallet: args[0], txHash: args[1], ipfsCid: args[2] }] : args[0]
    return { functionName, proofs: proofs.map((proof) => ({ ...proof, wallet: lower(proof.wallet) })) }
  } catch {
    return undefined
  }
}

function toLog(event: AttestationPublished): Log {
  const { wallet, txHash, ipfsCid } = event
  const topics = encodeEventTopics({
    abi: serviceAttestationsAbi,
    eventName: 'AttestationPublished',
    args: { wallet, txHash },
  }) as Hex[]
  return { topics, data: encodeAbiParameters([{ type: 'string' }], [ipfsCid]), event }
}

/** A signed EIP-1559 transaction for this chain, in the one spelling that has its hash. */
async function readTransaction(raw: unknown, chainId: number): Promise<FakeChainTransaction> {
  if (typeof raw !== 'string' || !/^0x(?:[0-9a-f]{2})+$/i.test(raw)) throw new RpcError(-32602, 'invalid argument 0')
  if (!raw.startsWith('0x02')) throw new RpcError(-32000, 'transaction type not supported')
  const serialized = lower(raw) as `0x02${string}`
  const parsed = parse(serialized)
  if (parsed?.r === undefined || serializeTransaction(parsed) !== serialized) {
    throw new RpcError(-32000, 'rlp: the transaction cannot be decoded')
  }
  if (parsed.chainId !== chainId) {
    throw new RpcError(-32000, `invalid chain id for signer: have ${parsed.chainId} want ${chainId}`)
  }
  let from: Hex
  try {
    from = lower(await recoverTransactionAddress({ serializedTransaction: serialized }))
  } catch {
    throw new RpcError(-32000, 'invalid sender')
  }
  return {
    hash: keccak256(serialized),
    raw: serialized,
    from,
    to: parsed.to ? lower(parsed.to) : undefined,
    nonce: parsed.nonce ?? 0,
    value: parsed.value ?? 0n,
    data: parsed.data ?? '0x',
    gas: parsed.gas ?? 0n,
    maxFeePerGas: parsed.maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: parsed.maxPriorityFeePerGas ?? 0n,
  }
}

function parse(serialized: `0x02${string}`) {
  try {
    return parseTransaction(serialized)
  } catch {
    return undefined
  }
}

/** EIP-1559: the tip is what the cap leaves above the base fee, at most. */
function priceOf({ maxFeePerGas, maxPriorityFeePerGas }: FakeChainTransaction, baseFee: bigint): bigint {
  const price = baseFee + maxPriorityFeePerGas
  return price < maxFeePerGas ? price : maxFeePerGas
}

/** 21,000, and 4 for each zero byte, 16 for each other (EIP-2028). */
function intrinsicGas(data: Hex): bigint {
  const bytes = Buffer.from(data.slice(2), 'hex')
  return bytes.reduce((sum, byte) => sum + (byte === 0 ? 4n : 16n), 21_000n)
}

function quantity(value: number | bigint): Hex {
  return `0x${value.toString(16)}`
}

function lower(text: unknown): Hex {
  return String(text).toLowerCase() as Hex
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) throw new RangeError('the request is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function send(response: ServerResponse, status: number, body: string) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}
