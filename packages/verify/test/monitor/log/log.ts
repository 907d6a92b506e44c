import { developmentSeed } from '@countersign/attestation/simulator'
import {
  createInclusionProof,
  createLeafReader,
  createNoteKey,
  encodeBundle,
  encodeLogEntry,
  encodeTile,
  formatCheckpoint,
  formatTlogProof,
  formatWitnessStatement,
  hashLogEntry,
  hashOrigin,
  type LogEntry,
  type NoteKeyType,
  parseStatementPath,
  parseTilePath,
  signNote,
  TILE_WIDTH,
  toStatementMessage,
  toVkey,
  type WitnessStatement,
} from '@countersign/log'
import { hashLeaf, hashTree, toHex } from '@countersign/protocol'
import { encodeBlock, toCid } from '@countersign/receipt'
import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { json } from '../../network.ts'

export const origin = 'log.example/enclave-a'

export type FakeLog = ReturnType<typeof createFakeLog>

/** The log and the witnesses of the receipt simulator, with a separate history. It can lie, fork and withhold. */
export function createFakeLog(given: readonly LogEntry[] = [], seed = developmentSeed, name = origin) {
  const key = createSigner(seed, name, 'ed25519')
  const witnesses = ['w1', 'w2', 'w3'].map((name) => createSigner(seed, `${name}.example`, 'cosignature-ed25519'))
  const leaves: Uint8Array[] = given.map(hashLogEntry)
  const log = {
    name,
    entries: [...given],
    key: toVkey(key.key),
    witnesses: witnesses.map(({ hex }) => hex).toSorted(),
    /** The witnesses that cosign, and when. */
    cosigners: [0, 1, 2],
    cosignedAtS: 0,
    /** The delay of each witness. */
    delaysS: [0, 0, 0],
    /** Paths below the log that return 404. */
    gone: new Set<string>(),
    /** Responses that replace the log's; undefined uses the log's. */
    lie: (_path: string): Uint8Array<ArrayBuffer> | string | undefined => undefined,
    requests: [] as string[],
    /** False for a log whose checkpoints don't end with a table. */
    isClosing: true,

    append(entry: LogEntry): number {
      leaves.push(hashLogEntry(entry))
      return log.entries.push(entry) - 1
    },
    /** As an enclave before it signs a checkpoint: the last entry is the root of the table of budgets. */
    close(): number {
      for (const entry of log.isClosing ? withTable(log.entries).slice(leaves.length) : []) log.append(entry)
      return leaves.length
    },
    toNote(size: number = log.close(), timestampS?: number): string {
      const root = hashTree(leaves.slice(0, size))
      const cosigners = log.cosigners.map((place) => ({
        ...(witnesses[place] as Signer),
        timestampS: (timestampS ?? log.cosignedAtS) + (log.delaysS[place] ?? 0),
      }))
      // In the order of the settings, as in a receipt.
      const sorted = cosigners.toSorted((left, right) => (left.hex < right.hex ? -1 : 1))
      return signNote(formatCheckpoint({ origin: name, size, root, extensions: [] }), [key, ...sorted])
    },
    prove(index: number, timestampS: number): string {
      const size = log.entries.length
      const proof = createInclusionProof(createLeafReader(leaves), { index, size })
      return formatTlogProof({ index, proof, checkpoint: log.toNote(size, timestampS) })
    },
    answer(url: URL): Response {
      const path = url.pathname.slice('/log'.length)
      log.requests.push(path)
      const size = log.close()
      if (path === '') return json({ logs: [{ origin: name, hash: hashOrigin(name), key: log.key, size }] })
      const below = path.slice(2 + 64)
      const body = log.lie(below) ?? (log.gone.has(below) ? undefined : toBody(below))
      return body === undefined ? new Response(null, { status: 404 }) : new Response(body)
    },
  }

  /** Serves only covered entries. */
  function toBody(path: string): string | Uint8Array<ArrayBuffer> | undefined {
    if (path === 'checkpoint') return log.toNote()
    const asked = parseTilePath(path)
    const start = asked.index * TILE_WIDTH
    const level = asked.kind === 'entries' ? 0 : asked.level
    if (Math.floor(leaves.length / TILE_WIDTH ** level) < start + asked.width) return undefined
    if (asked.kind === 'entries') return encodeBundle(log.entries.slice(start, start + asked.width).map(encodeLogEntry))
    const span = TILE_WIDTH ** asked.level
    const hashes = Array.from({ length: asked.width }, (_, at) =>
      hashTree(leaves.slice((start + at) * span, (start + at + 1) * span)),
    )
    return encodeTile(hashes)
  }

  return log
}

/** Entries that a checkpoint may cover: the last is the root of an empty table. */
export function withTable(entries: readonly LogEntry[]): LogEntry[] {
  const last = entries.at(-1)
  if (last === undefined || last.kind === 'table') return [...entries]
  return [...entries, { kind: 'table', rows: 0, root: '00'.repeat(32), timeMs: last.timeMs }]
}

/** Responds as a witness that has cosigned these logs, at this time. `change` makes it lie. */
export function answerAsWitness(
  url: URL,
  { place, logs, at, change = {}, seed = developmentSeed }: FakeWitness,
): Response {
  const question = parseStatementPath(url.pathname)
  if (question === undefined) return new Response(null, { status: 404 })
  const { hex, sign } = createSigner(seed, `w${place + 1}.example`, 'cosignature-ed25519')
  const log = logs.find(({ name }) => hashOrigin(name) === question.originHash)
  const statement = {
    witness: hex,
    ...question,
    timestampS: Math.floor(at.getTime() / 1000),
    checkpoint: log?.toNote() ?? null,
    ...change,
  }
  return new Response(formatWitnessStatement(statement, sign(toStatementMessage(statement))))
}

/** One of the three. */
export function toWitnessKey(place: number): string {
  return createSigner(developmentSeed, `w${place + 1}.example`, 'cosignature-ed25519').hex
}

export type FakeWitness = {
  /** All three. */
  place: number
  logs: readonly FakeLog[]
  at: Date
  change?: Partial<WitnessStatement>
  seed?: string
}

/** The receipt with its entry in this log, and the proof of that. */
export function logReceipt(log: FakeLog, issue: SimulatedAttestation): SimulatedAttestation {
  const entry = toEntry(issue)
  const index = log.append(entry)
  const receipt = { ...issue.receipt, log: log.prove(index, Math.ceil(entry.timeMs / 1000) + 1) }
  const bytes = encodeBlock('attestation', receipt)
  return { ...issue, receipt, bytes, cid: toCid(bytes) }
}

export function toEntry(issue: Pick<SimulatedAttestation, 'receipt'>): LogEntry {
  const timeMs = new Date(issue.receipt.signer.statement.signedAt).getTime()
  return { kind: 'signature', ...nameEntry(issue), timeMs }
}

/** The members of an entry that identify a signature. */
export function nameEntry({ receipt }: Pick<SimulatedAttestation, 'receipt'>): { keyId: string; leaf: string } {
  const { statement } = receipt.signer
  return { keyId: statement.keyId, leaf: toHex(hashLeaf(statement)) }
}

type Signer = ReturnType<typeof createSigner>

/** As the receipt simulator creates them. */
function createSigner(seed: string, name: string, type: NoteKeyType) {
  const secret = sha256(new TextEncoder().encode(`${seed} ${type} ${name}`))
  const publicKey = ed25519.getPublicKey(secret)
  return {
    key: createNoteKey({ name, type, publicKey }),
    hex: toHex(publicKey),
    sign: (message: Uint8Array) => ed25519.sign(message, secret),
  }
}
