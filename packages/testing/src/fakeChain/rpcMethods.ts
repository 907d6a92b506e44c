import type { Hex } from '@countersign/protocol'
import { keccak256, numberToHex as quantity } from 'viem/utils'
import type { Execute } from './contract.ts'
import type { Block, Ledger, Mined, Place } from './ledger.ts'
import { type FakeChainTransaction, lower, priceOf, RpcError } from './transaction.ts'

/** Limits of public nodes. */
export type FakeChainLimits = {
  /** Earlier blocks are pruned. Default: none. */
  firstBlock?: number
  /** Maximum block range for events. Default: unlimited. */
  maxLogBlocks?: number
}

export const TIP = 10n ** 9n

/** Creates the JSON-RPC methods that a coordinator calls. `isFault` tells whether a fault applies to the current request. */
export function createRpcMethods(parameters: {
  chainId: number
  execute: Execute
  hasCode(account: Hex): boolean
  ledger: Ledger
  finalityDepth: number | 'none'
  isFault(fault: 'wrong-hash' | 'no-receipts' | 'lies-mined'): boolean
  /** Mined transactions that the node doesn't return. */
  forgotten: ReadonlyMap<Hex, { andEvents: boolean }>
  limits: Readonly<FakeChainLimits>
}): Readonly<Record<string, (params: unknown[]) => unknown>> {
  const { chainId, execute, hasCode, ledger, finalityDepth, isFault, forgotten, limits } = parameters
  const { blocks, pool, head } = ledger

  function findBlock(tag: unknown): Block | undefined {
    if (tag === 'latest') return head()
    if (tag === 'finalized') {
      // Geth's message if no block is final.
      if (finalityDepth === 'none') throw new RpcError(-39001, 'finalized block not found')
      return blocks[Math.max(0, head().number - finalityDepth)]
    }
    // Geth's message for history pruned under EIP-4444.
    if (Number(tag) < (limits.firstBlock ?? 0)) throw new RpcError(4444, 'pruned history unavailable')
    return blocks[Number(tag)]
  }

  function toLogs({ block, index }: Place) {
    const before = block.mined.slice(0, index).reduce((sum, { logs }) => sum + logs.length, 0)
    const { transaction, logs } = block.mined[index] as Mined
    return logs.map(({ address, topics, data }, position) => ({
      address,
      topics,
      data,
      blockNumber: quantity(block.number),
      blockHash: block.hash,
      transactionHash: transaction.hash,
      transactionIndex: quantity(index),
      logIndex: quantity(before + position),
      removed: false,
    }))
  }

  function toReceipt(place: Place) {
    const { block, index } = place
    const { transaction, isSuccess, gasUsed } = block.mined[index] as Mined
    return {
      transactionHash: transaction.hash,
      transactionIndex: quantity(index),
      blockHash: block.hash,
      blockNumber: quantity(block.number),
      from: transaction.from,
      to: transaction.to ?? null,
      gasUsed: quantity(gasUsed),
      effectiveGasPrice: quantity(priceOf(transaction, block.baseFee)),
      logs: toLogs(place),
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
    const { hash, from, to, nonce, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
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
      maxFeePerGas: quantity(maxFeePerGas),
      maxPriorityFeePerGas: quantity(maxPriorityFeePerGas),
      blockHash: place?.block.hash ?? null,
      blockNumber: place === undefined ? null : quantity(place.block.number),
      transactionIndex: place === undefined ? null : quantity(place.index),
    }
  }

  function getBlock(tag: unknown) {
    const block = findBlock(tag)
    if (block === undefined) return null
    const { number, hash, parentHash, timestamp, baseFee, mined } = block
    return {
      number: quantity(number),
      hash,
      parentHash,
      timestamp: quantity(timestamp),
      baseFeePerGas: quantity(baseFee),
      transactions: mined.map(({ transaction }) => transaction.hash),
    }
  }

  function getLogs(filter: unknown) {
    const { fromBlock, toBlock, address, topics } = filter as Record<string, unknown>
    const [from, to] = [fromBlock, toBlock].map((tag) => findBlock(tag)?.number ?? Number(tag)) as [number, number]
    const { maxLogBlocks = Number.POSITIVE_INFINITY } = limits
    if (to - from >= maxLogBlocks) throw new RpcError(-32600, `eth_getLogs is limited to ${maxLogBlocks} blocks`)
    const isAny = (wanted: unknown, actual: string | undefined) =>
      wanted === undefined ||
      wanted === null ||
      [wanted].flat().some((item) => String(item).toLowerCase() === actual?.toLowerCase())
    return blocks
      .slice(from, to + 1)
      .flatMap((block) => block.mined.flatMap((_, index) => toLogs({ block, index })))
      .filter(
        (log) =>
          forgotten.get(log.transactionHash)?.andEvents !== true &&
          isAny(address, log.address) &&
          (!Array.isArray(topics) || topics.every((wanted, index) => isAny(wanted, log.topics[index]))),
      )
  }

  function toCall(value: unknown) {
    const { from, to, data = '0x', value: wei = '0x0' } = value as Record<string, Hex | undefined>
    return { from: lower(from), to: to === undefined ? undefined : lower(to), data, value: BigInt(wei) }
  }

  function call(parameter: unknown, tag: unknown = 'latest') {
    const block = findBlock(tag)
    // Geth's message for a block that doesn't exist yet.
    if (block === undefined) throw new RpcError(-32000, 'header not found')
    const result = execute(toCall(parameter), ledger.toFindCheckpoint(block.number))
    if (result.revert === undefined) return result
    throw new RpcError(3, 'execution reverted', result.revert)
  }

  return {
    eth_chainId: () => quantity(chainId),
    eth_getBlockByNumber: ([tag]) => getBlock(tag),
    eth_getTransactionCount: ([account, tag]) =>
      quantity(tag === 'pending' ? ledger.pendingNonceOf(lower(account)) : ledger.nonceOf(lower(account))),
    eth_getBalance: ([account]) => quantity(ledger.balanceOf(lower(account))),
    eth_getCode: ([account]) => (hasCode(lower(account)) ? '0x6080604052' : '0x'),
    eth_gasPrice: () => quantity(ledger.baseFee + TIP),
    eth_maxPriorityFeePerGas: () => quantity(TIP),
    eth_estimateGas: ([parameter]) => quantity(call(parameter).gas),
    eth_call: ([parameter, tag]) => call(parameter, tag).output,
    eth_sendRawTransaction: async ([raw]) => {
      const hash = await ledger.accept(raw)
      return isFault('wrong-hash') ? keccak256(hash) : hash
    },
    eth_getTransactionByHash: ([hash]) => getTransaction(lower(hash)),
    eth_getTransactionReceipt: ([hash]) => getReceipt(lower(hash)),
    eth_getLogs: ([filter]) => getLogs(filter),
  }
}
