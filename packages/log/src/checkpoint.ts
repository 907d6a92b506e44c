import { isNatural } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { parseHash, toBase64 } from './base64.ts'
import { parseDecimal } from './decimal.ts'
import { LogError } from './errors.ts'

/** The head of a log's tree, c2sp.org/tlog-checkpoint. */
export type Checkpoint = {
  /** The log's name: one line of 1 to 255 bytes. */
  origin: string
  /** The number of leaves. */
  size: number
  /** 32 bytes: its root (RFC 6962). */
  root: Uint8Array
  /** Additional lines, which monitors can't check. Our logs have none. */
  extensions: readonly string[]
}

/** The root of an empty tree: the hash of nothing (RFC 6962 §2.1). */
export const emptyRoot: Uint8Array = sha256(new Uint8Array())

/** The text that a log signs. */
export function formatCheckpoint({ origin, size, root, extensions }: Checkpoint): string {
  if (!isNatural(size) || root.length !== 32) throw malformed('malformed size or hash')
  const text = [origin, String(size), toBase64(root), ...extensions].map((line) => `${line}\n`).join('')
  // A newline in an origin or extension would make two lines.
  if (parseCheckpoint(text).extensions.length !== extensions.length) throw malformed('a line has a newline')
  return text
}

/** Parses the text of a note as a checkpoint. Doesn't verify signatures. */
export function parseCheckpoint(text: string): Checkpoint {
  if (!text.endsWith('\n')) throw malformed('no newline at the end')
  const [origin = '', size = '', root = '', ...extensions] = text.slice(0, -1).split('\n')
  const bytes = new TextEncoder().encode(origin).length
  if (bytes < 1 || bytes > 255) throw malformed('the origin does not have 1 to 255 bytes')
  const parsedSize = parseDecimal(size)
  if (parsedSize === undefined) throw malformed('the size is not a canonical number from 0 to 2^53 - 1')
  const parsedRoot = parseHash(root)
  if (parsedRoot === undefined) throw malformed('the root is not 32 bytes of base64')
  if (extensions.includes('')) throw malformed('a line is empty')
  return { origin, size: parsedSize, root: parsedRoot, extensions }
}

function malformed(details: string) {
  return new LogError('checkpoint_malformed', 'malformed checkpoint', { details })
}
