import type { Hex } from '@countersign/protocol'
import { keccak256, parseTransaction } from 'viem/utils'
import type { FakeContract } from './contract.ts'
import { BLOCK_GAS, type Block, type Ledger, type Mined, type Place } from './ledger.ts'
import { RpcError } from './RpcError.ts'
import { type FakeChainTransaction, priceOf } from './transaction.ts'
import { lower, quantity, ZERO_ADDRESS, ZERO_HASH } from './values.ts'

export type RpcMethods = Readonly<Record<string, (params: unknown[]) => unknown>>

/** What public nodes do not serve. */
export type FakeChainLimits = {
  /** Those before it were dropped. Unset: none was. */
  firstBlock?: number
  /** In one question for events. Unset: any number. */
  maxLogBlocks?: number
}

export const TIP = 10n ** 9n
const NO_BLOOM: Hex = `0x${'00'.repeat(256)}`

/** The calls of JSON-RPC. `isFault` says whether a fault is on for what is asked now. */
export function createRpcMethods(parameters: {
  chainId: number
  contract: FakeContract
  ledger: Ledger
  finalityDepth: number | 'none'
  isFault(fault: 'wrong-hash' | 'no-receipts' | 'lies-mined'): boolean
  /** Mined transactions that the node does not know. */
  forgotten: ReadonlyMap<Hex, { andEvents: boolean }>
  limits: Readonly<FakeChainLimits>
}): RpcMethods {
  const { chainId, contract, ledger, finalityDepth, isFault, forgotten, limits } = parameters
  const { blocks, pool, head } = ledger

  function findBlock(tag: unknown): Block | undefined {
    if (tag === undefined || tag === 'latest') return head()
    if (tag === 'earliest') return blocks[0]
    if (tag === 'finalized' || tag === 'safe') {
      // Geth's words where no block is final.
      if (finalityDepth === 'none') throw new RpcError(-39001, `${tag} block not found`)
      return blocks[Math.max(0, head().number - (tag === 'safe' ? Math.ceil(finalityDepth / 2) : finalityDepth))]
    }
    if (typeof tag !== 'string' || !/^0x[0-9a-f]+$/i.test(tag)) throw new RpcError(-32602, 'invalid block number')
    // Geth's words for what EIP-4444 has it drop.
    if (Number(tag) < (limits.firstBlock ?? 0)) throw new RpcError(4444, 'pruned history unavailable')
    return blocks[Number(tag)]
  }

  function toLogs({ block, index }: Place) {
    const before = block.mined.slice(0, index).reduce((sum, { logs }) => sum + logs.length, 0)
    const { transaction, logs } = block.mined[index] as Mined
    return logs.map(({ topics, data }, position) => ({
      address: contract.address,
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
    if (isFault('no-receipts') || forgotten.has(hash)) return null
    const place = ledger.findPlace(hash)
    if (place !== undefined) return toReceipt(place)
    const transaction = pool.find((item) => item.hash === hash)
    if (transaction === undefined || !isFault('lies-mined')) return null
    const block = { ...head(), hash: keccak256(transaction.hash), mined: [ledger.run(transaction)] }
    return toReceipt({ block, index: 0 })
  }

  function getTransaction(hash: Hex) {
    if (forgotten.has(hash)) return null
    const place = ledger.findPlace(hash)
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
    const next = {
      number: number + 1,
      hash: ZERO_HASH,
      parentHash,
      timestamp: timestamp + 1,
      baseFee: ledger.baseFee,
      mined: [],
    }
    return { ...toBlock(next, isFull), hash: null, nonce: null }
  }

  function getLogs(filter: unknown) {
    const { fromBlock, toBlock: until, blockHash, address, topics } = (filter ?? {}) as Record<string, unknown>
    const numberOf = (tag: unknown) => (tag === 'pending' ? head().number : (findBlock(tag)?.number ?? Number(tag)))
    const [from, to] = [numberOf(fromBlock), numberOf(until)]
    const { maxLogBlocks = Number.POSITIVE_INFINITY } = limits
    if (to - from >= maxLogBlocks) throw new RpcError(-32600, `eth_getLogs takes at most ${maxLogBlocks} blocks`)
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
          forgotten.get(log.transactionHash)?.andEvents !== true &&
          isAny(address, log.address) &&
          (!Array.isArray(topics) || topics.every((wanted, index) => isAny(wanted, log.topics[index]))),
      )
  }

  function getFeeHistory([count, newest, percentiles]: unknown[]) {
    const last = newest === 'pending' ? head() : (findBlock(newest) ?? head())
    const length = Math.max(1, Math.min(Number(count), 1024, last.number + 1))
    const window = blocks.slice(last.number + 1 - length, last.number + 1)
    const next = blocks[last.number + 1]?.baseFee ?? ledger.baseFee
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
    const result = contract.execute(toCall(parameter))
    if (result.revert === undefined) return result
    throw new RpcError(3, 'execution reverted', result.revert)
  }

  return {
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
      if (tag === 'pending') return quantity(ledger.pendingNonceOf(lower(account)))
      const block = findBlock(tag)
      if (block === undefined) throw new RpcError(-32000, 'header not found')
      return quantity(block === head() ? ledger.nonceOf(lower(account)) : ledger.nonceAt(lower(account), block))
    },
    eth_getBalance: ([account]) => quantity(ledger.balanceOf(lower(account))),
    eth_getCode: ([account]) => (lower(account) === contract.address ? '0x6080604052' : '0x'),
    eth_gasPrice: () => quantity(ledger.baseFee + TIP),
    eth_maxPriorityFeePerGas: () => quantity(TIP),
    eth_feeHistory: getFeeHistory,
    eth_estimateGas: ([parameter]) => quantity(call(parameter).gas),
    eth_call: ([parameter]) => call(parameter).output,
    eth_sendRawTransaction: async ([raw]) => {
      const hash = await ledger.accept(raw)
      return isFault('wrong-hash') ? keccak256(hash) : hash
    },
    eth_getTransactionByHash: ([hash]) => getTransaction(lower(hash)),
    eth_getTransactionReceipt: ([hash]) => getReceipt(lower(hash)),
    eth_getLogs: ([filter]) => getLogs(filter),
  }
}
