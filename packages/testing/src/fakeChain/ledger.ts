import type { Hex } from '@countersign/protocol'
import { keccak256, stringToHex } from 'viem/utils'
import type { Execute, FindCheckpoint, Log } from './contract.ts'
import { type FakeChainTransaction, intrinsicGas, poolError, priceOf, readTransaction } from './transaction.ts'

export type Mined = { transaction: FakeChainTransaction; isSuccess: boolean; gasUsed: bigint; logs: Log[] }
export type Block = { number: number; hash: Hex; parentHash: Hex; timestamp: number; baseFee: bigint; mined: Mined[] }
export type Place = { block: Block; index: number }

const BLOCK_GAS = 30_000_000n
const START_BALANCE = 10_000n * 10n ** 18n
/** EIP-7825. */
const TRANSACTION_GAS = 2n ** 24n

export type Ledger = ReturnType<typeof createLedger>

/** The state of a node: blocks, accounts and mempool. */
export function createLedger(parameters: {
  chainId: number
  execute: Execute
  /** Rejects transactions below the base fee, as sequencers do. */
  checksBaseFee: boolean
  now(): number
}) {
  const { chainId, execute, checksBaseFee, now } = parameters
  let baseFee = 10n ** 9n
  const blocks: Block[] = []
  const pool: FakeChainTransaction[] = []
  const funded = new Map<Hex, bigint>()
  /** Derived from the canonical chain. */
  let places = new Map<Hex, Place>()
  let nonces = new Map<Hex, number>()
  let spent = new Map<Hex, bigint>()
  let isHeld = false
  let forks = 0

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
    const parentHash = parent?.hash ?? keccak256('0x')
    const seed = [chainId, number, parentHash, forks, ...mined.map(({ transaction }) => transaction.hash)].join()
    const timestamp = Math.max(Math.floor(now() / 1000), (parent?.timestamp ?? 0) + 1)
    const block = { number, hash: keccak256(stringToHex(seed)), parentHash, timestamp, baseFee, mined }
    blocks.push(block)
    apply(block)
    // Pools drop transactions that can't be mined any more.
    for (const item of pool.filter(({ from, nonce }) => nonce < nonceOf(from))) remove(item)
  }

  /**
   * Finds checkpoints in the canonical chain up to a block, and in transactions after it. LogWitness stores no heads, so a reorganization
   * rolls them back.
   */
  function toFindCheckpoint(number = head().number, mined: readonly Mined[] = []): FindCheckpoint {
    const findIn = (items: readonly Mined[], id: Hex) =>
      items.flatMap(({ logs }) => logs.map(({ checkpoint }) => checkpoint)).findLast((item) => item?.id === id)
    return (id) => {
      const after = findIn(mined, id)
      if (after !== undefined) return after
      const block = blocks.findLast((item) => item.number <= number && findIn(item.mined, id) !== undefined)
      return findIn(block?.mined ?? [], id)
    }
  }

  function run(transaction: FakeChainTransaction, earlier: readonly Mined[] = []): Mined {
    const { gas, logs, revert } = execute(transaction, toFindCheckpoint(head().number, earlier))
    // Out of gas: the sender pays for all of it.
    if (gas > transaction.gas) return { transaction, isSuccess: false, gasUsed: transaction.gas, logs: [] }
    return { transaction, isSuccess: revert === undefined, gasUsed: gas, logs }
  }

  /** Mines by order of arrival, and by nonce within an account. A transaction that pays too little blocks the account's later ones. */
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
        const result = run(transaction, mined)
        mined.push(result)
        next.set(from, nonce + 1)
        gasLeft -= result.gasUsed
        isChanged = true
      }
    }
    append(mined)
  }

  /** Checks a transaction as geth's pool does, in the same order and with the same messages. */
  async function accept(raw: unknown): Promise<Hex> {
    const transaction = await readTransaction(raw, chainId)
    const { hash, from, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, value, data } = transaction
    if (pool.some((item) => item.hash === hash)) throw poolError('already known')
    if (gas > TRANSACTION_GAS) throw poolError(`transaction gas limit too high (cap: ${TRANSACTION_GAS}, tx: ${gas})`)
    if (maxPriorityFeePerGas > maxFeePerGas) throw poolError('max priority fee per gas higher than max fee per gas')
    const intrinsic = intrinsicGas(data)
    if (gas < intrinsic) throw poolError(`intrinsic gas too low: gas ${gas}, minimum needed ${intrinsic}`)
    const next = nonceOf(from)
    if (nonce < next) throw poolError(`nonce too low: next nonce ${next}, tx nonce ${nonce}`)
    // A check of the execution, which comes first on sequencers without a pool.
    if (checksBaseFee && maxFeePerGas < baseFee) {
      throw poolError(`max fee per gas less than block base fee: maxFeePerGas: ${maxFeePerGas}, baseFee: ${baseFee}`)
    }
    const cost = gas * maxFeePerGas + value
    if (cost > balanceOf(from)) {
      throw poolError(`insufficient funds for gas * price + value: balance ${balanceOf(from)}, tx cost ${cost}`)
    }
    const replaced = waiting(from, nonce)
    if (replaced !== undefined) {
      const isEnough = (after: bigint, before: bigint) => after > before && after * 100n >= before * 110n
      const { maxFeePerGas: fee, maxPriorityFeePerGas: tip } = replaced
      if (!isEnough(maxFeePerGas, fee) || !isEnough(maxPriorityFeePerGas, tip)) {
        throw poolError('replacement transaction underpriced')
      }
      remove(replaced)
    }
    pool.push(transaction)
    return hash
  }

  function pendingNonceOf(account: Hex): number {
    let nonce = nonceOf(account)
    while (waiting(account, nonce) !== undefined) nonce += 1
    return nonce
  }

  append([])
  return {
    /** The canonical chain, oldest first. */
    blocks: blocks as readonly Block[],
    /** Pending transactions in the order of arrival. */
    pool: pool as readonly FakeChainTransaction[],
    get baseFee() {
      return baseFee
    },
    head,
    nonceOf,
    pendingNonceOf,
    balanceOf,
    /** The block and index of a mined transaction. */
    findPlace: (hash: Hex) => places.get(hash),
    run,
    toFindCheckpoint,
    accept,
    mineOne,
    /** Mines a transaction in a separate block, bypassing the pool. */
    mineDirectly: (transaction: FakeChainTransaction) => append([run(transaction)]),
    reorg(depth: number, keep: 'all' | 'none') {
      if (!Number.isInteger(depth) || depth < 1 || depth >= blocks.length) {
        throw new RangeError("a reorganization can't replace the first block")
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
    drop: (hash: Hex) => remove(pool.find((item) => item.hash === hash)),
    setBaseFee(wei: bigint) {
      baseFee = wei
    },
    setBalance(account: Hex, wei: bigint) {
      funded.set(account, wei + (spent.get(account) ?? 0n))
    },
    hold(next: boolean) {
      isHeld = next
    },
  }
}
