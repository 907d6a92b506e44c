// Writes the test vectors of the log to this folder, computed with this package's functions:
//   node -C source packages/log/vectors/createVectors.ts
// `src/vectors.test.ts` compares the file with this script and with independent code.

import { hkdfSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { fromHex, hashTree, hashTreeLeaf, tags, toHex } from '@countersign/protocol'
import {
  appendLeaves,
  computeFrontierRoot,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  emptyFrontier,
  encodeLogEntry,
  formatAddCheckpoint,
  formatCheckpoint,
  formatTlogProof,
  formatWitnessStatement,
  hashLogEntry,
  hashOrigin,
  type LogEntry,
  type LogErrorCode,
  toStatementMessage,
  toVkey,
  type WitnessStatement,
} from '../src/index.ts'
import { createSigner, hash, log, origin, type Signer, TIME_S, toCosigned, witnesses } from '../test/logs.ts'

const timeMs = TIME_S * 1_000
const short = (name: string) => toHex(hash(name).subarray(0, 16))
const long = (name: string) => toHex(hash(name))

const entries: LogEntry[] = [
  { kind: 'boot', bootId: short('boot'), configHash: long('config'), timeMs },
  { kind: 'signature', keyId: short('alice'), leaf: long('first'), timeMs: timeMs + 1 },
  { kind: 'signature', keyId: short('bob'), leaf: long('second'), timeMs: timeMs + 2 },
  { kind: 'dropped', keyId: short('bob'), leaf: long('second'), timeMs: timeMs + 30_000 },
  { kind: 'unacknowledged', keyId: short('alice'), leaf: long('first'), timeMs: timeMs + 60_000 },
  { kind: 'table', rows: 2, root: long('table'), timeMs: timeMs + 60_000 },
]

/** `spec/log-v1.md` §2. */
function deriveKey(rootSecret: Uint8Array, origin: string) {
  const info = Buffer.from(`${tags.log}\0${origin}`)
  const seed = new Uint8Array(hkdfSync('sha256', rootSecret, '', info, 32))
  const { key } = createSigner(origin, 'ed25519', seed)
  return { rootSecret: toHex(rootSecret), origin, info: toHex(info), seed: toHex(seed), vkey: toVkey(key) }
}

const [witness] = witnesses as [Signer, ...Signer[]]

/** `spec/log-v1.md` §4, signed by the first witness. */
function signStatement(statement: WitnessStatement): string {
  return formatWitnessStatement(statement, witness.sign(toStatementMessage(statement)))
}

/** Two valid statements, and some that a reader rejects. */
function createStatements(checkpoint: string) {
  const question = { origin, nonce: long('nonce'), timestampS: TIME_S }
  const none: WitnessStatement = {
    witness: toHex(witness.key.publicKey),
    originHash: hashOrigin(origin),
    nonce: question.nonce,
    timestampS: TIME_S,
    checkpoint: null,
  }
  const known = { ...none, checkpoint }
  const other = 'log.example/enclave-b'
  const change = (text: string, from: string | RegExp, to: string) => text.replace(from, to)
  const invalid = {
    'another signature': formatWitnessStatement(none, witness.sign(toStatementMessage(known))),
    'a known checkpoint made none': change(signStatement(known), /"checkpoint":".*?","/, '"checkpoint":null,"'),
    'another time than was signed': change(signStatement(none), String(TIME_S), String(TIME_S + 1)),
    'the key of no witness': change(signStatement(none), none.witness, toHex(log.key.publicKey)),
    'the key of another witness': change(
      signStatement(none),
      none.witness,
      toHex(witnesses[1]?.key.publicKey as Uint8Array),
    ),
    'another origin': signStatement({ ...none, originHash: hashOrigin(other) }),
    'another nonce': signStatement({ ...none, nonce: long('another nonce') }),
    'made 301 seconds before': signStatement({ ...none, timestampS: TIME_S - 301 }),
    'dated 301 seconds ahead': signStatement({ ...none, timestampS: TIME_S + 301 }),
    'a checkpoint of another origin': signStatement({ ...none, checkpoint: change(checkpoint, origin, other) }),
    'signed without the tag': formatWitnessStatement(none, witness.sign(toStatementMessage(none).slice(33))),
  }
  const malformed = {
    'white space': `${signStatement(none)}\n`,
    'no signature': change(signStatement(none), /,"signature":"[0-9a-f]+"/, ''),
    'one more member': change(signStatement(none), '{', '{"a":1,'),
    'a size in place of the checkpoint': change(signStatement(none), '"checkpoint":null', '"checkpoint":0'),
    'a hash that is too short': change(signStatement(none), none.originHash, none.originHash.slice(2)),
    nothing: '',
  }
  const toCases = (texts: Readonly<Record<string, string>>, code: LogErrorCode) =>
    Object.entries(texts).map(([name, statement]) => ({ name, statement, code }))
  return {
    question,
    messages: [none, known].map((one) => toHex(toStatementMessage(one))),
    accepted: [
      { statement: signStatement(none), size: null },
      { statement: signStatement(known), size: entries.length },
    ],
    refused: [...toCases(invalid, 'witness_statement_invalid'), ...toCases(malformed, 'witness_statement_malformed')],
  }
}

/** `spec/log-v1.md` §5: a state's members, and its bytes. */
function createState(row: number) {
  const counters = Array.from({ length: 1 + (row % 3) }, (_, budget) => ({
    window: budget === 0 ? 20_619 + row : 0,
    spent: String(BigInt(row) * 10n ** 18n + BigInt(budget)),
  }))
  const state = {
    keyId: short(`vault ${row}`),
    random: short(`random ${row}`),
    sequence: row + 1,
    revoked: row === 2 ? 0x8000_0001 : row,
  }
  const bytes = Buffer.alloc(12 + 40 * counters.length)
  bytes.writeBigUInt64BE(BigInt(state.sequence))
  bytes.writeUInt32BE(state.revoked, 8)
  for (const [index, { window, spent }] of counters.entries()) {
    bytes.writeBigUInt64BE(BigInt(window), 12 + 40 * index)
    bytes.write(BigInt(spent).toString(16).padStart(64, '0'), 20 + 40 * index, 'hex')
  }
  return { ...state, counters, bytes: state.keyId + state.random + toHex(bytes) }
}

/** The states of a table, and the roots of its first rows, with the path of the last row. */
function createTable() {
  const states = Array.from({ length: 6 }, (_, row) => createState(row))
  const leaves = states.map(({ bytes }) => hashTreeLeaf(fromHex(bytes)))
  const roots = Array.from({ length: 1 + states.length }, (_, rows) => rows).map((rows) => {
    const some = leaves.slice(0, rows)
    const proof = rows === 0 ? [] : createInclusionProof(createLeafReader(some), { index: rows - 1, size: rows })
    return { rows, root: rows === 0 ? '00'.repeat(32) : toHex(hashTree(some)), path: proof.map(toHex) }
  })
  return { states, roots }
}

/** Every vector, as plain JSON. Ed25519 signatures are deterministic. */
export function createVectors() {
  const leaves = entries.map(hashLogEntry)
  const read = createLeafReader(leaves)
  const checkpoints = leaves.map((_, index) => {
    const frontier = appendLeaves(emptyFrontier, leaves.slice(0, index + 1))
    const root = computeFrontierRoot(frontier)
    const text = formatCheckpoint({ origin, size: frontier.size, root, extensions: [] })
    return { size: frontier.size, root: toHex(root), frontier: frontier.hashes.map(toHex), note: toCosigned(text) }
  })
  const size = leaves.length
  const cosigned = toCosigned(
    formatCheckpoint({ origin, size, root: hashTree(leaves), extensions: [] }),
    witnesses.slice(0, 2),
  )
  return {
    version: 'countersign-log-vectors/1',
    notes: [
      'Byte strings are lower-case hex, texts are as they are sent.',
      'The seed of each key is SHA-256 of its name. Never use them.',
    ],
    log: toVkey(log.key),
    witnesses: witnesses.map(({ key }) => ({ vkey: toVkey(key), publicKey: toHex(key.publicKey) })),
    policy: { witnesses: witnesses.map(({ key }) => toHex(key.publicKey)), quorum: 2 },
    entries: entries.map((entry) => ({
      ...entry,
      bytes: toHex(encodeLogEntry(entry)),
      logLeaf: toHex(hashLogEntry(entry)),
    })),
    derivedKeys: [
      deriveKey(hash('root secret'), origin),
      deriveKey(hash('root secret'), 'log.example/enclave-b'),
      deriveKey(hash('another root secret'), 'log.example/été'),
    ],
    checkpoints,
    requests: [
      formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint: checkpoints[2]?.note ?? '' }),
      formatAddCheckpoint({
        oldSize: 3,
        proof: createConsistencyProof(read, { oldSize: 3, size }),
        checkpoint: checkpoints.at(-1)?.note ?? '',
      }),
    ],
    proofs: leaves.map((_, index) =>
      formatTlogProof({ index, proof: createInclusionProof(read, { index, size }), checkpoint: cosigned }),
    ),
    table: createTable(),
    statements: createStatements(checkpoints.at(-1)?.note ?? ''),
  }
}

/** The file, to the byte. */
export function toVectorFile(vectors: ReturnType<typeof createVectors>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

if (import.meta.main) {
  writeFileSync(new URL('log-v1.vectors.json', import.meta.url), toVectorFile(createVectors()))
}
