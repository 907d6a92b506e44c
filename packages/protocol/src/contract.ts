import { equalBytes, isZero } from './bytes.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, fromPrefixedHex, type Hex, toPrefixedHex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'

/**
 * The event of `ServiceAttestations` and the functions that emit it, as a JSON ABI. `publishBatch` takes a list of structs, because three
 * lists could differ in length. It emits one event for each, in order.
 */
export const serviceAttestationsAbi = [
  {
    type: 'event',
    name: 'AttestationPublished',
    anonymous: false,
    inputs: [
      { name: 'wallet', type: 'address', indexed: true, internalType: 'address' },
      { name: 'txHash', type: 'bytes32', indexed: true, internalType: 'bytes32' },
      { name: 'ipfsCid', type: 'string', indexed: false, internalType: 'string' },
    ],
  },
  {
    type: 'function',
    name: 'publish',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'wallet', type: 'address', internalType: 'address' },
      { name: 'txHash', type: 'bytes32', internalType: 'bytes32' },
      { name: 'ipfsCid', type: 'string', internalType: 'string' },
    ],
    outputs: [],
  },
  {
    type: 'function',
    name: 'publishBatch',
    stateMutability: 'nonpayable',
    inputs: [
      {
        name: 'attestations',
        type: 'tuple[]',
        internalType: 'struct ServiceAttestations.Attestation[]',
        components: [
          { name: 'wallet', type: 'address', internalType: 'address' },
          { name: 'txHash', type: 'bytes32', internalType: 'bytes32' },
          { name: 'ipfsCid', type: 'string', internalType: 'string' },
        ],
      },
    ],
    outputs: [],
  },
] as const

/** keccak256("AttestationPublished(address,bytes32,string)"), the first topic of the event. */
export const attestationPublishedTopic = '0x1a85ecbef58dd9f2ba6c675cd83d16bb690e0c547fc5aea56486a4ba6c253601'

/** The on-chain event: the receipt of this wallet's transaction has this CID. */
export type AttestationPublished = { wallet: Hex; txHash: Hex; ipfsCid: string }

/** A log as JSON-RPC returns it (`eth_getLogs`, `eth_getTransactionReceipt`). */
export type EventLog = { topics: readonly string[]; data: string }

const WORD = 32
/** Our CIDs have 59 characters. The longest CIDs in use are much shorter than this. */
const MAX_CID_CHARACTERS = 256

/**
 * Parses an `AttestationPublished` log. Unlike ABI decoders, it rejects other offsets, non-zero padding and trailing bytes, which the
 * contract never writes, and text that is not printable. The caller must check which contract wrote the log, and in which block.
 *
 * Contract ABI Specification, "Events": topics are the signature hash and the indexed values as words; data is the offset of
 * the string (always 0x20), at 0x20 its length, from 0x40 its bytes, zero-padded to whole words.
 */
export function parseAttestationPublished({ topics, data }: EventLog): AttestationPublished {
  if (!Array.isArray(topics) || topics.length !== 3) throw malformed('not three topics')
  const [topic, wallet, txHash] = topics.map((item) => toBytes('topics', item, WORD)) as [Bytes, Bytes, Bytes]
  if (!equalBytes(topic, fromHex(attestationPublishedTopic.slice(2)))) throw malformed('wrong event')
  if (!isZero(wallet.subarray(0, 12))) throw malformed('the wallet address is not zero-padded')
  return {
    wallet: toPrefixedHex(wallet.subarray(12)),
    txHash: toPrefixedHex(txHash),
    ipfsCid: readCid(toBytes('data', data)),
  }
}

/**
 * Like `parseAttestationLog`, but returns undefined for an event without a CID. The contract accepts any text from a publisher, so one bad
 * event must not hide the others of its transaction.
 */
export function readAttestationPublished(log: EventLog): AttestationPublished | undefined {
  try {
    return parseAttestationPublished(log)
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

type Bytes = Uint8Array<ArrayBuffer>

function readCid(data: Bytes): string {
  if (data.length < 2 * WORD) throw malformed('data is too short')
  if (readWord(data, 0) !== BigInt(WORD)) throw malformed('wrong offset of the string')
  const length = readWord(data, WORD)
  if (length < 1n || length > MAX_CID_CHARACTERS) throw malformed('wrong length of the string')
  const end = 2 * WORD + Number(length)
  if (data.length !== Math.ceil(end / WORD) * WORD) throw malformed('wrong length of the data')
  if (!isZero(data.subarray(end))) throw malformed('the string is not zero-padded')
  const characters = data.subarray(2 * WORD, end)
  // CIDs use multibase alphabets. Spaces and control characters could only mislead a reader.
  if (!characters.every((code) => code > 0x20 && code < 0x7f)) throw malformed('the string is not printable ASCII')
  return String.fromCharCode(...characters)
}

function readWord(data: Bytes, offset: number): bigint {
  return BigInt(toPrefixedHex(data.subarray(offset, offset + WORD)))
}

/** JSON-RPC doesn't specify the case of hex digits. */
function toBytes(name: string, value: unknown, length?: number): Bytes {
  if (!isPrefixedHex(value)) throw malformed(`${name}: not hex`)
  const bytes = fromPrefixedHex(value)
  if (length !== undefined && bytes.length !== length) throw malformed(`${name}: not ${length} bytes`)
  return bytes
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('event_malformed', 'malformed AttestationPublished event', { details })
}
