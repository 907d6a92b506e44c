import { keccak_256 } from '@noble/hashes/sha3.js'
import type { EventLog } from './contract.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { isNatural } from './fields.ts'
import { fromPrefixedHex, type Hex, toPrefixedHex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'

/** keccak256("Checkpoint(bytes32,uint64,bytes32,bytes32)"), the first topic of the event. */
export const checkpointTopic = '0xdf4adea15356e7ce918ce3cf0ce4c3d2e7619aadca21cda46bc397c00b54b92a'

/** The event of `LogWitness`: the log `id` has this root at this size. `block` is the SHA-256 of the anchor block. */
export type CheckpointEvent = { id: Hex; size: number; root: Hex; block: Hex }

/** The log's id in the contract: keccak256(abi.encode(owner, originHash)) with the account that registered it. */
export function toLogId(owner: Hex, originHash: Uint8Array): Hex {
  const words = new Uint8Array(64)
  words.set(fromPrefixedHex(owner), 12)
  words.set(originHash, 32)
  return toPrefixedHex(keccak_256(words))
}

/** The second indexed value of the event as a topic. */
export function toSizeTopic(size: number): Hex {
  return `0x${size.toString(16).padStart(64, '0')}`
}

/** Parses a `Checkpoint` log. The caller must check which contract wrote it, and in which block. */
export function parseCheckpointEvent({ topics, data }: EventLog): CheckpointEvent {
  const [topic, id, sizeWord] = topics.map((word) => word.toLowerCase())
  if (topics.length !== 3 || topic !== checkpointTopic) throw malformed('wrong event')
  if (!isPrefixedHex(id, 32) || !isPrefixedHex(sizeWord, 32)) throw malformed('malformed topics')
  const size = Number(BigInt(sizeWord))
  if (!isNatural(size)) throw malformed('the size is out of range')
  const words = data.toLowerCase()
  if (!isPrefixedHex(words, 64)) throw malformed('the data is not two words')
  return { id, size, root: `0x${words.slice(2, 66)}`, block: `0x${words.slice(66)}` }
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('event_malformed', 'malformed Checkpoint event', { details })
}
