import {
  assertConsistency,
  type Checkpoint,
  emptyRoot,
  formatNote,
  formatSignatureLines,
  formatWitnessStatement,
  hashOrigin,
  LogError,
  type Note,
  type NoteSignature,
  openNote,
  parseAddCheckpoint,
  parseCheckpoint,
  parseNote,
  toNoteSignature,
  toSignedMessage,
  toStatementMessage,
  type WitnessStatement,
} from '@countersign/log'
import { equalBytes, toHex } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { isSignatureByOpenSsl } from '@countersign/service/ed25519ByOpenSsl'
import type { LogList } from './logList.ts'
import type { Signer } from './signers.ts'
import type { Store, Stored } from './store.ts'

export type Reply = {
  status: number
  body: string
  type?: string
  /** Whether pages of any origin may read the response. */
  isForPages?: boolean
}

export type Witness = {
  /** The `add-checkpoint` call of c2sp.org/tlog-witness. `isEd25519Only` omits ML-DSA-44, which takes ten times as long. */
  addCheckpoint(body: Uint8Array, options?: CosignOptions): Promise<Reply>
  /** Returns the newest checkpoint of the log whose origin has this SHA-256, with cosignatures, for monitors. */
  getCheckpoint(originHash: string): Promise<Reply>
  /** Returns this witness's signed statement about a log (`log-v1.md` §4), for every origin, even one that it does not accept. */
  getStatement(question: Pick<WitnessStatement, 'originHash' | 'nonce'>): Promise<Reply>
}

type CosignOptions = { isEd25519Only?: boolean }

export type WitnessDeps = {
  logs: LogList
  store: Store
  signers: readonly Signer[]
  clock: { now(): number }
  log: Log
  /** Called when a log has signed two trees of one size. */
  onFork?: (() => void) | undefined
}

/** The logged part of a forking checkpoint. It is long enough to include the signature as evidence. */
const MAX_LOGGED_NOTE = 8_192
/**
 * Remembered refusals per log, so that each is logged once. Anyone can send a signed checkpoint again, but only the log can sign a new one.
 */
const MAX_REFUSED = 64
/** Maximum age of a cosignature for monitors. */
const MAX_AGE_MS = 60_000

/**
 * Cosigns a checkpoint only if it continues the last one. The statuses follow the specification as of July 2026. Checking and recording are
 * synchronous, so no other call can come between them.
 */
export function createWitness({ logs, store, signers, clock, log, onFork = () => {} }: WitnessDeps): Witness {
  const { key, sign } = signers.find((signer) => signer.key.type === 'cosignature-ed25519') as Signer
  /** By origin: the recorded checkpoint with all kinds of cosignatures, for monitors. */
  const cosigned = new Map<string, { note: string; atMs: number; whole: Promise<Note> }>()
  /** By origin: refused checkpoints that were logged. */
  const refused = new Map<string, Set<string>>()

  async function addCheckpoint(body: Uint8Array, options: CosignOptions): Promise<Reply> {
    const request = parseAddCheckpoint(body)
    const note = parseNote(request.checkpoint)
    const checkpoint = parseCheckpoint(note.text)
    const keys = logs.get(checkpoint.origin)
    if (keys === undefined) return refuse(404, 'unknown log')
    // OpenSSL takes a tenth of the time of the protocol's own check, and needs no compiled library in addition to Node.
    const { verified } = openNote(note, keys, isSignatureByOpenSsl)
    // Drops signatures of unknown keys and duplicates.
    const own = { text: note.text, signatures: [...new Map(verified.map((one) => [one.key, one.signature])).values()] }
    const refusal = checkAndRecord({ ...request, own, checkpoint })
    if (refusal !== undefined) return refusal
    return { status: 200, body: formatSignatureLines(await cosign(checkpoint, own, options)) }
  }

  /** Checks a request and records its checkpoint. Returns undefined if it may be cosigned. */
  function checkAndRecord(request: {
    oldSize: number
    proof: readonly Uint8Array[]
    own: Note
    checkpoint: Checkpoint
  }): Reply | undefined {
    const { oldSize, proof, own, checkpoint } = request
    const { origin, size, root } = checkpoint
    if (oldSize > size) return refuse(400, 'the old size is larger than the size of the checkpoint')
    if (size === 0 && !equalBytes(root, emptyRoot)) return refuse(422, 'wrong root of the empty tree')
    const recorded = store.latest(hashOrigin(origin))
    const latest = recorded?.checkpoint
    const latestSize = latest?.size ?? 0
    if (oldSize !== latestSize) return { status: 409, body: `${latestSize}\n`, type: 'text/x.tlog.size' }
    try {
      assertConsistency({ oldSize, oldRoot: latest?.root ?? emptyRoot, size, root, proof })
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      // The log signed both roots, so this is a fork. An invalid proof is no evidence, because anyone can send one.
      const isFork = latest?.size === size && !equalBytes(latest.root, root)
      if (isFork) onFork()
      if (isNew(own, origin)) {
        const evidence = {
          checkpoint: toEvidence(formatNote(own)),
          ...(isFork && recorded && { recorded: toEvidence(recorded.note) }),
        }
        log.warn({ msg: 'Refused a checkpoint', origin, size, oldSize, isFork, reason: error.details, ...evidence })
      }
      return refuse(422, 'the checkpoint does not continue the one before')
    }
    // Records before signing, so that no cosignature exists for a checkpoint that a power failure could lose.
    if (latest === undefined || size > latest.size) store.save({ checkpoint, note: formatNote(own) })
    return undefined
  }

  function isNew({ text }: Note, origin: string): boolean {
    const known = refused.get(origin) ?? new Set()
    refused.set(origin, known)
    if (known.has(text)) return false
    if (known.size >= MAX_REFUSED) known.clear()
    known.add(text)
    return true
  }

  function cosign(
    { extensions }: Checkpoint,
    note: Note,
    { isEd25519Only = false }: CosignOptions = {},
  ): Promise<NoteSignature[]> {
    const time = { timestampS: Math.floor(clock.now() / 1000) }
    // ML-DSA-44 does not cover extension lines.
    const isWhole = !isEd25519Only && extensions.length === 0
    const usable = signers.filter(({ key }) => key.type === 'cosignature-ed25519' || isWhole)
    return Promise.all(
      usable.map(async ({ key, sign }) =>
        toNoteSignature(key, await sign(toSignedMessage(key, note.text, time)), time),
      ),
    )
  }

  /** Cosigns on request. Concurrent callers share the result. */
  function cosignForMonitors({ checkpoint, note }: Stored): Promise<Note> {
    const known = cosigned.get(checkpoint.origin)
    if (known?.note === note && clock.now() - known.atMs < MAX_AGE_MS) return known.whole
    const own = parseNote(note)
    const whole = cosign(checkpoint, own).then((signatures) => ({
      ...own,
      signatures: [...own.signatures, ...signatures],
    }))
    // The next caller retries.
    whole.catch(() => cosigned.delete(checkpoint.origin))
    cosigned.set(checkpoint.origin, { note, atMs: clock.now(), whole })
    return whole
  }

  return {
    async addCheckpoint(body, options = {}) {
      try {
        return await addCheckpoint(body, options)
      } catch (error) {
        return toRefusal(error)
      }
    },
    async getCheckpoint(originHash) {
      const stored = store.latest(originHash)
      if (stored === undefined) return refuse(404, 'no checkpoint of this log')
      return { status: 200, body: formatNote(await cosignForMonitors(stored)) }
    },
    async getStatement({ originHash, nonce }) {
      const statement = {
        witness: toHex(key.publicKey),
        originHash,
        nonce,
        timestampS: Math.floor(clock.now() / 1000),
        checkpoint: store.latest(originHash)?.note ?? null,
      }
      const body = formatWitnessStatement(statement, await sign(toStatementMessage(statement)))
      return { status: 200, body, type: 'application/json', isForPages: true }
    },
  }
}

const toEvidence = (note: string) => note.slice(0, MAX_LOGGED_NOTE)

function toRefusal(error: unknown): Reply {
  if (!(error instanceof LogError)) throw error
  const isOfSignature = error.code === 'note_unsigned' || error.code === 'note_signature_invalid'
  return refuse(isOfSignature ? 403 : 400, `${error.message}: ${error.details ?? error.code}`)
}

function refuse(status: number, reason: string): Reply {
  return { status, body: `${reason}\n` }
}
