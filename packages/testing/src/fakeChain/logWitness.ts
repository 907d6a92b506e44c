import { assertConsistency, LogError } from '@countersign/log'
import { type CheckpointEvent, checkpointTopic, type Hex, toSizeTopic } from '@countersign/protocol'
import { zeroAddress, zeroHash } from 'viem'
import { concatHex, decodeFunctionData, encodeAbiParameters, encodeErrorResult, hexToBytes, parseAbi } from 'viem/utils'
import type { FakeContract, Log } from './contract.ts'
import { lower } from './transaction.ts'

export const LOG_WITNESS: Hex = '0xe7f1725e7734ce288f8367e1bb143e90bb3f0512'

export const logWitnessAbi = parseAbi([
  'function advance(bytes32 id, uint64 newSize, bytes32 newRoot, bytes32 blockHash, bytes32[] consistency)',
  'function head(bytes32 id) view returns (uint64 size, bytes32 root)',
  'function publisher(bytes32 id) view returns (address)',

  'error NotPublisher(address caller)',
  'error InvalidSize(uint64 head)',
  'error Inconsistent()',
])
const ADVANCE_GAS = 60_000n

/** A fake LogWitness contract with the calls and events that a coordinator uses. Its heads are the newest events of the chain. */
export function createLogWitness() {
  const publishers = new Map<Hex, Hex>()
  const publisherOf = (id: Hex) => publishers.get(id) ?? zeroAddress

  const contract: FakeContract = ({ data, from }, findCheckpoint) => {
    const call = decodeCall(data)
    if (call === undefined) return undefined
    const id = call.args[0]
    const head = findCheckpoint(id)
    switch (call.functionName) {
      case 'publisher':
        return { output: encodeAbiParameters([{ type: 'address' }], [publisherOf(id)]) }
      case 'head':
        return { output: concatHex([toSizeTopic(head?.size ?? 0), head?.root ?? zeroHash]) }
      case 'advance': {
        const [, newSize, root, block, consistency] = call.args
        if (from !== publisherOf(id)) {
          return { revert: encodeErrorResult({ abi: logWitnessAbi, errorName: 'NotPublisher', args: [from] }) }
        }
        const size = Number(newSize)
        const oldSize = head?.size ?? 0
        if (size === 0 || size < oldSize) {
          return {
            revert: encodeErrorResult({ abi: logWitnessAbi, errorName: 'InvalidSize', args: [BigInt(oldSize)] }),
          }
        }
        const checkpoint = { id, size, root, block }
        if (!isConsistent(head, checkpoint, consistency)) {
          return { revert: encodeErrorResult({ abi: logWitnessAbi, errorName: 'Inconsistent' }) }
        }
        return { gas: ADVANCE_GAS, logs: size === oldSize ? [] : [toLog(checkpoint)] }
      }
    }
  }

  return {
    contract,
    /** Registers a log, or replaces its publisher. */
    registerLog: (id: Hex, publisher: Hex) => void publishers.set(lower(id), lower(publisher)),
  }
}

function isConsistent(head: CheckpointEvent | undefined, next: CheckpointEvent, consistency: readonly Hex[]): boolean {
  if (head === undefined) return consistency.length === 0
  const proof = consistency.map((hash) => hexToBytes(hash))
  const [oldRoot, root] = [hexToBytes(head.root), hexToBytes(next.root)]
  try {
    assertConsistency({ oldSize: head.size, oldRoot, size: next.size, root, proof })
    return true
  } catch (error) {
    if (error instanceof LogError) return false
    throw error
  }
}

function toLog(checkpoint: CheckpointEvent): Log {
  const { id, size, root, block } = checkpoint
  const topics: Hex[] = [checkpointTopic, id, toSizeTopic(size)]
  return { address: LOG_WITNESS, topics, data: concatHex([root, block]), checkpoint }
}

function decodeCall(data: Hex) {
  try {
    return decodeFunctionData({ abi: logWitnessAbi, data })
  } catch {
    return undefined
  }
}
