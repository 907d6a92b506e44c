import { isNatural } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { parseHash, toBase64 } from './base64.ts'
import { parseDecimal } from './decimal.ts'
import { LogError } from './errors.ts'

/** The head of a log's tree, c2sp.org/tlog-checkpoint. */
export type Checkpoint = {
  /** Which log, on one line, 1 to 255 bytes. */
  origin: string
  /** Leaves of the tree. */
  size: number
  /** 32 bytes: its root (RFC 6962). */
  root: Uint8Array
  /** Lines of the log's own, which no monitor can check. Ours has none. */
  extensions: readonly string[]
}

/** The root of a tree without leaves: the hash of nothing (RFC 6962 §2.1). */
export const emptyRoot: Uint8Array = sha256(new Uint8Array())

/** The text that a log signs. */
export function formatCheckpoint({ origin, size, root, extensions }: Checkpoint): string {
  if (!isNatural(size) || root.length !== 32) throw malformed('no size, or no hash')
  const text = [origin, String(size), toBase64(root), ...extensions].map((line) => `${line}\n`).join('')
  // An origin or extension with a newline would be two lines.
  if (parseCheckpoint(text).extensions.length !== extensions.length) throw malformed('a line has a newline')
  return text
}

/** Reads the text of a note as a checkpoint. Who signed it is another question. */
export function parseCheckpoint(text: string): Checkpoint {
  if (!text.endsWith('\n')) throw malformed('no newline at the end')
  const [origin = '', size = '', root = '', ...extensions] = text.slice(0, -1).split('\n')
  const bytes = new TextEncoder().encode(origin).length
  if (bytes < 1 || bytes > 255) throw malformed('the origin has not 1 to 255 bytes')
  const parsedSize = parseDecimal(size)
  if (parsedSize === undefined) throw malformed('the size is no number from 0 to 2^53 - 1 in its one spelling')
  const parsedRoot = parseHash(root)
  if (parsedRoot === undefined) throw malformed('the root is not 32 bytes of base64')
  if (extensions.includes('')) throw malformed('a line is empty')
  return { origin, size: parsedSize, root: parsedRoot, extensions }
}

function malformed(details: string) {
  return new LogError('checkpoint_malformed', 'malformed checkpoint', { details })
}
