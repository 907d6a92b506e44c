import {
  fromHex,
  isHex,
  isNatural,
  parseCanonicalJson,
  preimages,
  readMembers,
  ServiceError,
  toCanonicalJson,
  toHex,
  toPreimage,
  verifyEd25519,
} from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { type Checkpoint, parseCheckpoint } from './checkpoint.ts'
import { LogError } from './errors.ts'
import { MAX_NOTE_BYTES, type Note, parseNote } from './note.ts'

/** The newest checkpoint of a log that a witness has cosigned, or that it has cosigned none: `spec/log-v1.md` §4. */
export type WitnessStatement = {
  /** Ed25519 key of the witness, 32 bytes of hex. */
  witness: string
  /** SHA-256 of the origin, in hex. */
  originHash: string
  /** 32 bytes of hex that the client chose, so that an older statement can't be replayed. */
  nonce: string
  /** Whole seconds since 1970, by the clock of the witness. */
  timestampS: number
  /** A note with the log's own signature; null if the witness has cosigned none. */
  checkpoint: string | null
}

/** A statement that one of the reader's witnesses signed for this request. */
export type OpenedStatement = {
  witness: string
  /** The signatures of the note in it are not verified. */
  known: (Checkpoint & { note: Note }) | undefined
}

/** The size if JSON escapes every byte of the note. */
export const MAX_WITNESS_STATEMENT_BYTES = 2 * MAX_NOTE_BYTES + 1_024

/** How far the clocks of witness and reader may differ. */
const MAX_SKEW_S = 300

/** The name of a log in paths and statements. */
export function hashOrigin(origin: string): string {
  return toHex(sha256(new TextEncoder().encode(origin)))
}

/** The path of the request, below the address of a witness. */
export function toStatementPath({ originHash, nonce }: Pick<WitnessStatement, 'originHash' | 'nonce'>): string {
  return `/${originHash}/statement/${nonce}`
}

/** Parses the path of a request. Returns undefined for any other path. */
export function parseStatementPath(path: string): Pick<WitnessStatement, 'originHash' | 'nonce'> | undefined {
  const [, originHash, nonce] = /^\/([0-9a-f]{64})\/statement\/([0-9a-f]{64})$/.exec(path) ?? []
  return originHash === undefined || nonce === undefined ? undefined : { originHash, nonce }
}

/** The bytes that the witness signs. No checkpoint or cosignature has a zero byte after this tag. */
export function toStatementMessage(statement: WitnessStatement): Uint8Array {
  return toPreimage(preimages.witnessStatement, { statement: toCanonicalJson(statement) })
}

/** Formats the response of a witness. */
export function formatWitnessStatement(statement: WitnessStatement, signature: Uint8Array): string {
  return new TextDecoder().decode(toCanonicalJson({ ...statement, signature: toHex(signature) }))
}

/**
 * Verifies the response of a witness. Throws `witness_statement_malformed` if it is not a statement, and `witness_statement_invalid` if none
 * of these witnesses signed it, or if it is for another request or another time.
 *
 * @example
 * const { witness, known } = openWitnessStatement(bytes, { origin, nonce, witnesses: policy.witnesses, now: new Date() })
 */
export function openWitnessStatement(
  bytes: Uint8Array,
  expected: { origin: string; nonce: string; witnesses: readonly string[]; now: Date },
): OpenedStatement {
  const { signature, ...statement } = parseStatement(bytes)
  const { witness, originHash, nonce, timestampS, checkpoint } = statement
  if (!expected.witnesses.includes(witness)) throw invalid('not signed by one of the witnesses')
  if (!verifyEd25519(fromHex(witness), fromHex(signature), toStatementMessage(statement))) {
    throw invalid('the signature does not match')
  }
  if (originHash !== hashOrigin(expected.origin)) throw invalid('about another log')
  if (nonce !== expected.nonce) throw invalid('for another request')
  if (Math.abs(timestampS - expected.now.getTime() / 1000) > MAX_SKEW_S) {
    throw invalid(`dated ${timestampS}, more than ${MAX_SKEW_S} seconds from now`)
  }
  if (checkpoint === null) return { witness, known: undefined }
  const note = parseNote(checkpoint)
  const known = { ...parseCheckpoint(note.text), note }
  if (known.origin !== expected.origin) throw invalid('its checkpoint belongs to another log')
  return { witness, known }
}

function parseStatement(bytes: Uint8Array): WitnessStatement & { signature: string } {
  let value: unknown
  try {
    value = parseCanonicalJson(bytes, { maxBytes: MAX_WITNESS_STATEMENT_BYTES })
  } catch (error) {
    if (error instanceof ServiceError) throw malformed(error.details ?? error.message)
    throw error
  }
  const required = ['witness', 'originHash', 'nonce', 'timestampS', 'checkpoint', 'signature'] as const
  const { witness, originHash, nonce, timestampS, checkpoint, signature } = readMembers(value, { required }, malformed)
  const isName = isHex(witness, 32) && isHex(originHash, 32) && isHex(nonce, 32) && isHex(signature, 64)
  const isCheckpoint = checkpoint === null || typeof checkpoint === 'string'
  if (!isName || !isNatural(timestampS) || !isCheckpoint) throw malformed('a member has the wrong form')
  return { witness, originHash, nonce, timestampS, checkpoint, signature }
}

function malformed(details: string) {
  return new LogError('witness_statement_malformed', 'malformed witness statement', { details })
}

function invalid(details: string) {
  return new LogError('witness_statement_invalid', 'invalid witness statement', { details })
}
