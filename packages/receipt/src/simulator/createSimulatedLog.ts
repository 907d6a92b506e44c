import {
  createNoteKey,
  formatCheckpoint,
  formatTlogProof,
  hashLogEntry,
  type LogEntry,
  type NoteKeyType,
  signNote,
  toVkey,
} from '@countersign/log'
import { createInclusionPath, hashTree, hashTreeLeaf, type LogSetting, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'

export type SimulatedLogOptions = {
  origin?: string
  /** The number of witnesses in the settings, and the quorum. */
  witnesses?: number
  quorum?: number
  /** The cosigners, by their positions in the settings. Default: all. */
  cosigners?: readonly number[]
  /** The size of the tree, and the index of the signature's entry. */
  size?: number
  index?: number
  /** The other entries of the tree, by index. Default: random leaves. */
  entries?: readonly Uint8Array[]
  /** When each cosigned, in seconds. Default: a second after the signing. */
  timestampS?: number | readonly number[]
}

export type SimulatedLog = {
  setting: LogSetting
  /** The log's verifier key, as in the batch block. */
  logKey: string
  /** The proof that the log has this entry, as in a receipt. */
  prove(entry: LogEntry): string
  /** A note of this checkpoint by the log and its cosigners, a second after this time. */
  sign(text: string, timeMs: number): string
}

/** A log with its witnesses: real keys, signatures and a tree. */
export function createSimulatedLog(seed: string, options: SimulatedLogOptions = {}): SimulatedLog {
  const { origin = 'log.example/enclave-a', witnesses: count = 3, quorum = Math.floor(count / 2) + 1 } = options
  const log = createSigner(seed, origin, 'ed25519')
  const witnesses = Array.from({ length: count }, (_, place) =>
    createSigner(seed, `w${place + 1}.example`, 'cosignature-ed25519'),
  ).toSorted((left, right) => (left.hex < right.hex ? -1 : 1))
  const simulated: SimulatedLog = {
    setting: { origins: [origin], witnesses: witnesses.map(({ hex }) => hex), quorum },
    logKey: toVkey(log.key),
    prove(entry) {
      const { size = 9, index = 5, entries = [] } = options
      const leaves = Array.from({ length: size }, (_, place) =>
        place === index
          ? hashLogEntry(entry)
          : hashTreeLeaf(entries[place] ?? new TextEncoder().encode(`${seed} entry ${place}`)),
      )
      const text = formatCheckpoint({ origin, size, root: hashTree(leaves), extensions: [] })
      return formatTlogProof({
        index,
        proof: createInclusionPath(leaves, index),
        checkpoint: simulated.sign(text, entry.timeMs),
      })
    },
    sign(text, timeMs) {
      const { cosigners = [...witnesses.keys()] } = options
      const times = options.timestampS ?? Math.floor(timeMs / 1000) + 1
      const signers = cosigners.map((place, turn) => {
        const signer = witnesses[place]
        const timestampS = typeof times === 'number' ? times : times[turn]
        if (signer === undefined || timestampS === undefined) throw new Error(`no witness ${place}, or no time of it`)
        return { ...signer, timestampS }
      })
      return signNote(text, [log, ...signers])
    },
  }
  return simulated
}

function createSigner(seed: string, name: string, type: NoteKeyType) {
  const secret = sha256(new TextEncoder().encode(`${seed} ${type} ${name}`))
  const publicKey = ed25519.getPublicKey(secret)
  return {
    key: createNoteKey({ name, type, publicKey }),
    hex: toHex(publicKey),
    sign: (message: Uint8Array) => ed25519.sign(message, secret),
  }
}
