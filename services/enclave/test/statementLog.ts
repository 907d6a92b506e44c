import { createHash } from 'node:crypto'
import { decodeLogEntry, type LogEntry, parseNote, signNote, toVkey } from '@countersign/log'
import type { PolicyLog } from '@countersign/policy'
import { fromHex, type LogRequest, type ReleaseRequest, type SignItem, toHex } from '@countersign/protocol'
import { expect } from 'vitest'
import { createSigner, type Signer } from '../../../packages/log/test/logs.ts'
import { createKeyring } from '../src/keys/deriveKey.ts'
import { createLogKeys } from '../src/keys/logKeys.ts'
import { createStatementLog, type StatementLog, type StatementLogDeps } from '../src/log/statementLog.ts'
import type { StartedBatch } from '../src/sign/batch.ts'
import type { SignedItem } from '../src/sign/signItem.ts'
import { createTime } from '../src/time/time.ts'

/* A log of statements in memory, with witnesses that cosign everything. */

export const NOW = Date.UTC(2026, 5, 15, 12)
export const origins = ['log.example/a', 'log.example/b']
export const witnesses = ['w1', 'w2', 'w3'].map((name) => createSigner(`${name}.example`, 'cosignature-ed25519'))
export const stranger = createSigner('stranger.example', 'cosignature-ed25519')
export const bootId = new Uint8Array(16).fill(3)
export const configHash = new Uint8Array(32).fill(0xcc)
export const coordinatorKey = 'cd'.repeat(32)
export const keyOf = ({ key }: Signer) => toHex(key.publicKey)
export const setting = { origins, witnesses: witnesses.map(keyOf).toSorted(), quorum: 2 }
const rootSecret = Uint8Array.from({ length: 32 }, (_, index) => index)
export const keyring = createKeyring(rootSecret, configHash)
const logKeys = createLogKeys(keyring)
/** The logs' keys, as the enclave has them. */
export const keyWorker: StatementLogDeps['keyWorker'] = {
  describeLog: async (origin) => logKeys.describe(origin),
  signCheckpoint: async (origin, text) => {
    const signature = logKeys.sign(origin, text)
    if (signature === undefined) throw new Error('not a checkpoint')
    return signature
  },
  startTable: async () => true,
}

/** The first start of the first log. */
export const fromNothing = { origin: origins[0] as string, checkpoint: null, hashes: [] }

/** An error with this code and any message. */
export const withCode = (code: string) => expect.objectContaining({ code })
/** A released statement with any content. */
export const given = expect.objectContaining({ statement: expect.anything(), subject: expect.anything() })

export type TestLog = ReturnType<typeof createTestLog>

export function createTestLog(changes: Partial<StatementLogDeps> = {}) {
  const clock = { nowMs: NOW, elapsedMs: 0 }
  // Monotonic time is stopped too, so only witnesses can detect the stopped clock.
  const time = createTime({ clock: { now: () => clock.nowMs }, elapsedMs: () => 0 })
  time.learn(NOW)
  const lines: object[] = []
  const add = (line: object) => void lines.push(line)
  const statementLog = createStatementLog({
    setting,
    origins,
    keyWorker,
    bootId,
    configHash,
    time,
    elapsedMs: () => clock.elapsedMs,
    log: { info: add, warn: add, error: add },
    ...changes,
  })
  return { statementLog, clock, lines }
}

/** Starts a log from nothing and gets its boot cosigned. */
export async function open({ statementLog }: Pick<TestLog, 'statementLog'>, start: Partial<LogRequest['start']> = {}) {
  await statementLog.call({ start: { ...fromNothing, ...start } })
  const { log } = await statementLog.call({})
  await release(statementLog, cosign(log?.checkpoint ?? ''))
}

export async function createOpenLog(changes: Partial<StatementLogDeps> = {}): Promise<TestLog> {
  const log = createTestLog(changes)
  await open(log)
  return log
}

let last = 0

/** A statement without a signature or content. */
export function createSignedItem(changes: { needs?: PolicyLog; signedAtMs?: number } = {}): SignedItem {
  const { needs, signedAtMs = NOW } = changes
  last += 1
  const statement = { keyId: toHex(bootId), signedAt: new Date(signedAtMs).toISOString(), number: last }
  const leaf = new Uint8Array(createHash('sha256').update(String(last)).digest())
  return { statement, subject: {}, leaf, ...(needs === undefined ? {} : { needs }) } as never
}

/** A batch whose quote ends or fails with `quoting`. */
export function toBatch(items: readonly SignedItem[], quoting: Promise<unknown> = Promise.resolve()): StartedBatch {
  const open = { bootId: toHex(bootId), sequence: 0, previous: '', leaves: items.map(toLeaf) }
  return { ...open, signed: quoting.then(() => ({ ...open, quote: 'aa' })) }
}

/** The places of all leaves. */
export const toPlacements = (batch: StartedBatch) => batch.leaves.map((_, leafIndex) => ({ batch, leafIndex }))

export const toLeaf = ({ leaf }: SignedItem) => toHex(leaf)
export const noItem = { kind: 'message', content: { message: '0x' } } as unknown as SignItem

/** Reserves memory for this many statements and appends them as one batch, like a call of `sign`. */
export async function sign(
  { statementLog }: { statementLog: StatementLog },
  items: readonly SignedItem[],
  { caller = coordinatorKey, quoting }: { caller?: string; quoting?: Promise<unknown> } = {},
) {
  const reservation = statementLog.reserve(items.map(() => noItem))
  try {
    reservation.add(items, caller)
    const batch = toBatch(items, quoting)
    statementLog.append(batch)
    const appended = await reservation.collect(toPlacements(batch))
    if (appended === null) throw new Error('nothing was appended')
    return appended
  } finally {
    reservation.close()
  }
}

/** A checkpoint with the cosignatures of these witnesses, as a coordinator sends it. */
export function cosign(
  checkpoint: string,
  signers: readonly Signer[] = witnesses.slice(0, 2),
  timestampS = NOW / 1000,
) {
  const { text } = parseNote(checkpoint)
  const note = signNote(
    text,
    signers.map((signer) => ({ ...signer, timestampS })),
  )
  return {
    checkpoint,
    cosignatures: note
      .slice(text.length + 1)
      .split('\n')
      .filter((line) => line !== ''),
  }
}

export async function release(statementLog: StatementLog, request: Partial<ReleaseRequest>, caller = coordinatorKey) {
  return (await statementLog.release({ bootId: toHex(bootId), ...request }, caller)).statements
}

/** The entries without the roots of the table, which end each checkpoint. */
export async function readEntries({ statementLog }: { statementLog: StatementLog }): Promise<LogEntry[]> {
  const { log } = await statementLog.call({})
  return (log?.entries ?? []).map((entry) => decodeLogEntry(fromHex(entry))).filter(({ kind }) => kind !== 'table')
}

export const kindsOf = async (log: TestLog) => (await readEntries(log)).map(({ kind }) => kind)

export const toVkeys = (signers: readonly Signer[]) => signers.map(({ key }) => toVkey(key))
