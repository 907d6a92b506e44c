import {
  type AttestationPublished,
  attestationPublishedTopic,
  type CheckpointEvent,
  checkpointTopic,
  type EventLog,
  type Hex,
  isPlainObject,
  parseAttestationPublished,
  parseCheckpointEvent,
} from '@countersign/protocol'
import { ChainError } from './chainError.ts'

export type ChainReceipt = {
  hash: Hex
  /** False if the transaction reverted. */
  isSuccess: boolean
  blockNumber: number
  blockHash: Hex
  gasUsed: bigint
  /** Events of our contract only, in order. */
  events: AttestationPublished[]
  checkpoints: CheckpointEvent[]
}

/** The largest exact JavaScript number, larger than any count on a chain. */
const MAX_NUMBER = BigInt(Number.MAX_SAFE_INTEGER)
const MAX_QUANTITY = 2n ** 256n - 1n

export type Block = { number: number; hash: Hex; baseFeePerGas: bigint | undefined }

/** A JSON-RPC quantity. */
export function parseQuantity(name: string, value: unknown, max = MAX_QUANTITY): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw malformed(`${name} is not a quantity`)
  const quantity = BigInt(value)
  if (quantity > max) throw malformed(`${name} is too large`)
  return quantity
}

/** A count of blocks, transactions or gas. */
export function parseNumber(name: string, value: unknown): number {
  return Number(parseQuantity(name, value, MAX_NUMBER))
}

export function parseHash(name: string, value: unknown): Hex {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{64}$/i.test(value)) throw malformed(`${name} is not a hash`)
  return value.toLowerCase() as Hex
}

export function parseObject(name: string, value: unknown): Record<string, unknown> {
  if (!isPlainObject(value)) throw malformed(`${name} is not an object`)
  return value
}

/** `undefined` if the node has no such block. */
export function parseBlock(value: unknown): Block | undefined {
  if (value === null) return undefined
  const { number, hash, baseFeePerGas } = parseObject('block', value)
  return {
    number: parseNumber('block.number', number),
    hash: parseHash('block.hash', hash),
    baseFeePerGas:
      baseFeePerGas === undefined || baseFeePerGas === null
        ? undefined
        : parseQuantity('block.baseFeePerGas', baseFeePerGas),
  }
}

/** Milliseconds since 1970. */
export function parseBlockTime(value: unknown): number {
  return 1000 * parseNumber('block.timestamp', parseObject('block', value).timestamp)
}

/** Parses the receipt of the requested transaction, with the events of our contract only. */
export function parseReceipt(value: unknown, expected: { hash: Hex; contract: Hex }): ChainReceipt | undefined {
  if (value === null) return undefined
  const receipt = parseObject('receipt', value)
  if (parseHash('receipt.transactionHash', receipt.transactionHash) !== expected.hash) {
    throw malformed('the receipt is of another transaction')
  }
  // Some nodes return receipts for transactions in their mempool.
  if (receipt.blockHash === null || receipt.blockNumber === null) return undefined
  const blockHash = parseHash('receipt.blockHash', receipt.blockHash)
  if (!Array.isArray(receipt.logs)) throw malformed('receipt.logs is not a list')
  const status = parseNumber('receipt.status', receipt.status)
  if (status > 1) throw malformed('receipt.status is neither 0 nor 1')
  const inBlock = { ...expected, blockHash }
  const events = receipt.logs.flatMap((log) => parseEvent(log, published, inBlock))
  const checkpoints = receipt.logs.flatMap((log) => parseEvent(log, anchored, inBlock))
  if (status === 0 && events.length + checkpoints.length > 0) throw malformed('a reverted receipt has events')
  return {
    hash: expected.hash,
    isSuccess: status === 1,
    blockNumber: parseNumber('receipt.blockNumber', receipt.blockNumber),
    blockHash,
    gasUsed: parseQuantity('receipt.gasUsed', receipt.gasUsed, MAX_NUMBER),
    events,
    checkpoints,
  }
}

/** A kind of event: its first topic and its parser. */
export type EventKind<Event> = { topic: Hex; parse(log: EventLog): Event }
export const published: EventKind<AttestationPublished> = {
  topic: attestationPublishedTopic,
  parse: parseAttestationPublished,
}
export const anchored: EventKind<CheckpointEvent> = { topic: checkpointTopic, parse: parseCheckpointEvent }

/** Parses the events of a contract, from any transaction. */
export function parseEvents<Event>(value: unknown, kind: EventKind<Event>, contract: Hex): Event[] {
  if (!Array.isArray(value)) throw malformed('the logs are not a list')
  return value.flatMap((log) => parseEvent(log, kind, { contract }))
}

/** Returns one event, or none for other contracts and other events. If a transaction is expected, rejects events of another one. */
function parseEvent<Event>(
  value: unknown,
  { topic, parse }: EventKind<Event>,
  expected: { contract: Hex; hash?: Hex; blockHash?: Hex },
): Event[] {
  const { address, topics, data, removed, transactionHash, blockHash } = parseObject('log', value)
  if (typeof address !== 'string' || address.toLowerCase() !== expected.contract) return []
  if (removed === true) return []
  if (!Array.isArray(topics) || String(topics[0]).toLowerCase() !== topic) return []
  const hashes = [parseHash('log.transactionHash', transactionHash), parseHash('log.blockHash', blockHash)]
  if (hashes[0] !== (expected.hash ?? hashes[0]) || hashes[1] !== (expected.blockHash ?? hashes[1])) {
    throw malformed('the log is of another transaction')
  }
  try {
    return [parse({ topics, data: data as string })]
  } catch {
    throw malformed('the event is not one of the contract’s')
  }
}

function malformed(details: string) {
  return new ChainError('chain_unavailable', { details })
}
