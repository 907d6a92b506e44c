import {
  assertConsistency,
  type Checkpoint,
  emptyRoot,
  formatNote,
  formatSignatureLines,
  LogError,
  type Note,
  type NoteSignature,
  openNote,
  parseAddCheckpoint,
  parseCheckpoint,
  parseNote,
  toNoteSignature,
  toSignedMessage,
} from '@countersign/log'
import { equalBytes } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import type { LogList } from './logList.ts'
import type { Signer } from './signers.ts'
import { type Store, toFileName } from './store.ts'
import { createVerifyByNode } from './verifyByNode.ts'

export type Reply = { status: number; body: string; type?: string }

export type Witness = {
  /** The one call of c2sp.org/tlog-witness. With `isEd25519Only` nothing else is signed: ML-DSA-44 takes ten times as long. */
  addCheckpoint(body: Uint8Array, options?: CosignOptions): Promise<Reply>
  /** The newest checkpoint of the log whose origin has this SHA-256, cosigned: for monitors. */
  getCheckpoint(originHash: string): Promise<Reply>
}

type CosignOptions = { isEd25519Only?: boolean }

export type WitnessDeps = {
  logs: LogList
  store: Store
  signers: readonly Signer[]
  clock: { now(): number }
  log: Log
}

/** Calls that may wait for one log. A log asks once at a time; whoever repeats what it signed could ask without end. */
const MAX_WAITING = 32
/** Enough of a checkpoint that forks, with its signature, to show it to others. */
const MAX_LOGGED_NOTE = 8_192

/**
 * Cosigns what continues what it has seen, and nothing else. The statuses are those of the specification as of July 2026. For each log one
 * call after the other is judged, so that between the check and the record nothing changes.
 */
export function createWitness({ logs, store, signers, clock, log }: WitnessDeps): Witness {
  const inTurn = createTurns()
  const verifyByNode = createVerifyByNode()
  /** By origin: what was cosigned last, with every kind of cosignature, for monitors. */
  const cosigned = new Map<string, Note>()

  async function addCheckpoint(body: Uint8Array, options: CosignOptions): Promise<Reply> {
    const request = parseAddCheckpoint(body)
    const note = parseNote(request.checkpoint)
    const checkpoint = parseCheckpoint(note.text)
    const keys = logs.get(checkpoint.origin)
    if (keys === undefined) return refuse(404, 'this log is not known here')
    const { verified } = openNote(note, keys, verifyByNode)
    // Lines of strangers are not kept.
    const own = { text: note.text, signatures: verified.map(({ signature }) => signature) }
    return inTurn(checkpoint.origin, () => judge({ ...request, own, checkpoint }, options))
  }

  async function judge(
    request: { oldSize: number; proof: readonly Uint8Array[]; own: Note; checkpoint: Checkpoint },
    options: CosignOptions,
  ) {
    const { oldSize, proof, own, checkpoint } = request
    const { origin, size, root } = checkpoint
    if (oldSize > size) return refuse(400, 'the old size is larger than that of the checkpoint')
    if (size === 0 && !equalBytes(root, emptyRoot)) return refuse(422, 'another root of the empty tree')
    const latest = store.latest(origin)?.checkpoint
    const latestSize = latest?.size ?? 0
    if (oldSize !== latestSize) return { status: 409, body: `${latestSize}\n`, type: 'text/x.tlog.size' }
    try {
      assertConsistency({ oldSize, oldRoot: latest?.root ?? emptyRoot, size, root, proof })
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      const evidence = formatNote(own).slice(0, MAX_LOGGED_NOTE)
      log.warn({ msg: 'Refused a checkpoint', origin, size, oldSize, reason: error.details, checkpoint: evidence })
      return refuse(422, 'the checkpoint does not continue the one before')
    }
    // First the record, then the signature: what is signed exists nowhere before the record would survive a power failure.
    if (latest === undefined || size > latest.size) store.save({ checkpoint, note: formatNote(own) })
    return { status: 200, body: formatSignatureLines(await cosign(checkpoint, own, options)) }
  }

  async function cosign(
    { origin, extensions }: Checkpoint,
    note: Note,
    { isEd25519Only = false }: CosignOptions = {},
  ): Promise<NoteSignature[]> {
    const time = { timestampS: Math.floor(clock.now() / 1000) }
    // ML-DSA-44 does not cover extension lines.
    const isWhole = !isEd25519Only && extensions.length === 0
    const able = signers.filter(({ key }) => key.type === 'cosignature-ed25519' || isWhole)
    const signatures = await Promise.all(
      able.map(async ({ key, sign }) => toNoteSignature(key, await sign(toSignedMessage(key, note.text, time)), time)),
    )
    // A monitor has the others made when it asks.
    if (isEd25519Only) cosigned.delete(origin)
    else cosigned.set(origin, { ...note, signatures: [...note.signatures, ...signatures] })
    return signatures
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
      const origin = [...logs.keys()].find((one) => toFileName(one) === originHash)
      const stored = origin === undefined ? undefined : store.latest(origin)
      if (origin === undefined || stored === undefined) return refuse(404, 'there is no checkpoint of such a log')
      return inTurn(origin, async () => {
        const { checkpoint, note } = store.latest(origin) ?? stored
        if (!cosigned.has(origin)) await cosign(checkpoint, parseNote(note))
        return { status: 200, body: formatNote(cosigned.get(origin) as Note) }
      })
    },
  }
}

function toRefusal(error: unknown): Reply {
  if (!(error instanceof LogError)) throw error
  const isOfSignature = error.code === 'note_unsigned' || error.code === 'note_signature_invalid'
  return refuse(isOfSignature ? 403 : 400, `${error.message}: ${error.details ?? error.code}`)
}

function refuse(status: number, reason: string): Reply {
  return { status, body: `${reason}\n` }
}

/** Runs what is given for one name one after the other, in the order in which it came. */
function createTurns() {
  const turns = new Map<string, { last: Promise<unknown>; waiting: number }>()
  return async (name: string, run: () => Promise<Reply>): Promise<Reply> => {
    const turn = turns.get(name) ?? { last: Promise.resolve(), waiting: 0 }
    turns.set(name, turn)
    if (turn.waiting >= MAX_WAITING) return refuse(503, 'too many calls wait for this log')
    turn.waiting += 1
    const result = turn.last.then(run)
    // The next one runs whatever became of this one.
    turn.last = result.catch(() => undefined)
    try {
      return await result
    } finally {
      turn.waiting -= 1
    }
  }
}
