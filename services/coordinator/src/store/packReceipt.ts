import { equalBytes, toCanonicalJson } from '@countersign/protocol'
import { packJson, unpackJson } from './packJson.ts'
import { type KnownColumns, toKnown } from './signings.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * How a receipt is stored, with what its signing has left out: the first byte says whether it is packed. What packing would not give again
 * is stored as it is.
 */
export function packReceipt(bytes: Uint8Array, signing: KnownColumns): Buffer {
  const packed = pack(bytes, toKnown(signing))
  return packed === undefined ? Buffer.concat([Buffer.of(0), bytes]) : Buffer.concat([Buffer.of(1), packed])
}

export function unpackReceipt(stored: Uint8Array, signing: KnownColumns): Bytes {
  const content = stored.subarray(1)
  return stored[0] === 1 ? toCanonicalBytes(unpackJson(content, toKnown(signing))) : new Uint8Array(content)
}

function pack(bytes: Uint8Array, known: readonly string[]): Buffer | undefined {
  try {
    const packed = packJson(JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()), known)
    return equalBytes(toCanonicalBytes(unpackJson(packed, known)), bytes) ? packed : undefined
  } catch {
    return undefined
  }
}

const toCanonicalBytes = (value: unknown): Bytes => new Uint8Array(Buffer.from(toCanonicalJson(value)))
