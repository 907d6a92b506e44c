import { assertCosigned, assertInclusion, type NoteKey, type WitnessPolicy } from '@countersign/log'
import {
  checkpointTopic,
  fromHex,
  fromPrefixedHex,
  parseCheckpointEvent,
  toHex,
  toSizeTopic,
} from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { parseAnchorBlock } from '../anchor/anchorBlock.ts'
import type { Anchors } from './anchors.ts'
import type { ChainLog, ChainReader } from './chainReader.ts'
import { failIf, needs, StepFailure, StepSkip } from './steps.ts'

/** The checkpoint on the chain that covers the signature's log entry. */
export type GivenAnchor = {
  /** `LogWitness`, in lower case. */
  contract: string
  /** The log in the contract. */
  id: string
  /** The size in the checkpoint. */
  size: number
  /** The inclusion proof of the entry in the tree of that size, in hex. */
  path: readonly string[]
  /** The anchor block. Undefined if it could not be fetched. */
  block: Uint8Array | undefined
}

/** The entry that the receipt proves, and the log it is in. */
export type LoggedEntry = { leaf: Uint8Array; index: number; log: NoteKey; policy: WitnessPolicy }

/**
 * The part of step `event` for a receipt without an event: a checkpoint of a log that the reader lists covers the entry. A consistency proof
 * doesn't prove the size, so the checkpoint must also be one that a quorum cosigned.
 */
export async function checkAnchor(
  reader: Pick<ChainReader, 'getLogs'>,
  { given, anchors, entry }: { given: GivenAnchor; anchors: Anchors; entry: LoggedEntry | undefined },
): Promise<[string, ChainLog] | undefined> {
  const { contract, id, size, path, block } = given
  const { leaf, index, log, policy } = needs(entry, 'the receipt proves no log entry')
  const listed = (anchors.logContracts ?? [])
    .filter(({ address }) => address === contract)
    .flatMap(({ logs }) => logs.filter((one) => one.id === id))
  if (listed.length === 0) {
    throw new StepSkip(`A checkpoint of the log ${id} in ${contract} covers it, which your manifest doesn’t list.`)
  }
  if (!listed.some(({ upTo = Number.MAX_SAFE_INTEGER }) => size <= upTo)) {
    throw new StepSkip(`The checkpoint has ${size} entries, more than your manifest accepts for this log.`)
  }
  const logs = await reader.getLogs({ address: contract, topics: [checkpointTopic, id, toSizeTopic(size)] })
  // The contract emits it once. The earliest counts, so that the order of a node's answer doesn't matter.
  const [own] = logs
    .filter(({ address }) => address.toLowerCase() === contract)
    .map((one) => ({ ...one, ...parseCheckpointEvent(one) }))
    .filter((event) => event.id === id && event.size === size)
    .toSorted((a, b) => a.blockTime.getTime() - b.blockTime.getTime())
  if (own === undefined) return undefined
  const bytes = needs(block, 'the anchor block is withheld')
  const hash = `0x${toHex(sha256(bytes))}`
  failIf(hash !== own.block, `The anchor block has the hash ${hash}, but the checkpoint names ${own.block}.`)
  const { checkpoint } = assertCosigned(parseAnchorBlock(bytes).checkpoint, { log, policy })
  failIf(checkpoint.extensions.length > 0, 'The checkpoint has more lines than origin, size and root.')
  const isSame = checkpoint.size === size && toHex(checkpoint.root) === own.root.slice(2)
  if (!isSame) throw new StepFailure('The witnesses cosigned another tree than the one on the chain.')
  const root = fromPrefixedHex(own.root)
  assertInclusion({ leaf, index, size, root, proof: path.map(fromHex) })
  const where = `Block ${own.blockNumber} of ${own.blockTime.toISOString()}`
  return [`${where} has a checkpoint of ${size} entries, and entry ${index} is this signature.`, own]
}
