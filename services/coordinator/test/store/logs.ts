import { generateKeyPairSync, hash, sign } from 'node:crypto'
import {
  computeTreeRoot,
  createLeafReader,
  createNoteKey,
  encodeLogEntry,
  formatCheckpoint,
  type LogEntry,
  signNote,
  toVkey,
} from '@countersign/log'
import { hashTreeLeaf } from '@countersign/protocol'
import type { Claim, LogStore } from '../../src/store/logs.ts'
import { NOW, randomHex } from './store.ts'

type AppendParameters = Parameters<LogStore['appendLog']>[0]

/** A log in memory like an enclave's, to compare with the store's rows. */
export type TestLog = {
  readonly origin: string
  /** Its id in the store. */
  readonly hash: string
  readonly key: string
  bootId: string
  readonly entries: Uint8Array[]
  /** Appends the entry of a boot, which becomes the current one. */
  boot(): void
  /** Appends this many signature entries. */
  fill(count: number): void
  add(entry: Partial<LogEntry>): void
  /** The stored part of a range, by default up to the end. */
  toAppend(
    parameters?: Partial<Pick<AppendParameters, 'from' | 'claims' | 'states' | 'now'>> & { to?: number },
  ): AppendParameters
  /** Signed by the log and this many witnesses. */
  toNote(size: number, witnesses?: number): string
  toRoot(size: number): Uint8Array
}

export const CLAIM_MS = 90_000

export function createTestLog(origin = `log.example/${randomHex(8)}`): TestLog {
  const signer = createSigner(origin, 'ed25519')
  const witnesses = ['w1.example', 'w2.example', 'w3.example'].map((name) => createSigner(name, 'cosignature-ed25519'))
  const entries: Uint8Array[] = []
  const log: TestLog = {
    origin,
    hash: hash('sha256', origin),
    key: toVkey(signer.key),
    bootId: '',
    entries,
    boot() {
      log.bootId = randomHex(16)
      const { bootId } = log
      entries.push(encodeLogEntry({ kind: 'boot', bootId, configHash: randomHex(32), timeMs: NOW }))
    },
    fill(count) {
      for (let index = 0; index < count; index++) log.add({})
    },
    add(entry) {
      const made = { kind: 'signature', keyId: randomHex(16), leaf: randomHex(32), timeMs: NOW, ...entry }
      entries.push(encodeLogEntry(made as LogEntry))
    },
    toAppend({ from = 0, to = entries.length, claims = [], states = [], now = NOW } = {}) {
      const { key, bootId } = log
      const checkpoint = { size: to, root: log.toRoot(to), note: log.toNote(to) }
      const rest = { claims, states, claimMs: CLAIM_MS, now }
      return { origin, key, bootId, from, entries: entries.slice(from, to), checkpoint, ...rest }
    },
    toNote(size, count = 0) {
      const text = formatCheckpoint({ origin, size, root: log.toRoot(size), extensions: [] })
      const cosigners = witnesses.slice(0, count).map((witness) => ({ ...witness, timestampS: Math.floor(NOW / 1000) }))
      return signNote(text, [signer, ...cosigners])
    },
    toRoot(size) {
      return computeTreeRoot(createLeafReader(entries.slice(0, size).map(hashTreeLeaf)), size)
    },
  }
  log.boot()
  return log
}

export function createTestClaim(walletId: string, changes: Partial<Claim> = {}): Claim {
  return { walletId, digest: `0x${randomHex(32)}`, leaf: randomHex(32), ...changes }
}

function createSigner(name: string, type: 'ed25519' | 'cosignature-ed25519') {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const key = createNoteKey({
    name,
    type,
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32),
  })
  return { key, sign: (message: Uint8Array) => sign(null, message, privateKey) }
}
