import { isNatural } from '@countersign/protocol/core'
import { fromBase64, parseHashLines, toBase64 } from './base64.ts'
import { parseDecimal } from './decimal.ts'
import { LogError } from './errors.ts'
import { MAX_NOTE_BYTES, parseNote } from './note.ts'

/** A proof that an entry is in a log, c2sp.org/tlog-proof: everything except the entry and the keys. */
export type TlogProof = {
  index: number
  /** From the leaf's sibling up. */
  proof: readonly Uint8Array[]
  /** A note: the checkpoint with the signatures of the log and its witnesses. */
  checkpoint: string
  /** Unsigned application data. Our proofs have none. */
  extra?: Uint8Array
}

const HEADER = 'c2sp.org/tlog-proof@v1'
const MAX_EXTRA_BYTES = 65_536
const MAX_PROOF_CHARACTERS = 2 * MAX_NOTE_BYTES

export function formatTlogProof({ index, proof, checkpoint, extra }: TlogProof): string {
  if (!isNatural(index)) throw malformed('malformed index')
  const extraLine = extra === undefined ? [] : [`extra ${toBase64(extra)}`]
  const text = [HEADER, ...extraLine, `index ${index}`, ...proof.map(toBase64), '', checkpoint].join('\n')
  parseTlogProof(text)
  return text
}

/** Parses a proof. `assertLogged` verifies it. */
export function parseTlogProof(text: string): TlogProof {
  if (typeof text !== 'string' || text.length > MAX_PROOF_CHARACTERS) throw malformed('too long')
  const split = text.indexOf('\n\n')
  if (split < 0) throw malformed('missing checkpoint')
  const checkpoint = text.slice(split + 2)
  parseNote(checkpoint)
  const [header, ...lines] = text.slice(0, split).split('\n')
  if (header !== HEADER) throw malformed('wrong first line')
  const extra = lines[0]?.startsWith('extra ') ? readExtra(lines.shift() as string) : undefined
  const [indexLine = '', ...hashLines] = lines
  const index = indexLine.startsWith('index ') ? parseDecimal(indexLine.slice('index '.length)) : undefined
  if (index === undefined) throw malformed('malformed index')
  const proof = parseHashLines(hashLines, malformed)
  return { index, proof, checkpoint, ...(extra === undefined ? {} : { extra }) }
}

function readExtra(line: string): Uint8Array {
  const extra = fromBase64(line.slice('extra '.length))
  if (extra === undefined || extra.length > MAX_EXTRA_BYTES) throw malformed('malformed extra data')
  return extra
}

function malformed(details: string) {
  return new LogError('log_proof_malformed', 'malformed log proof', { details })
}
