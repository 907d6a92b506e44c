import type { Log } from '@countersign/service'
import type { CosignedNote, LogStore } from '../store/logs.ts'
import type { Clock, Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'

type NoteKeeperDeps = {
  store: Pick<LogStore, 'insertNote'>
  /** The log's name in the store. */
  hash: string
  origin: string
  clock: Clock
  schedule: Schedule
  log: Pick<Log, 'warn'>
}

/** How old the public checkpoint of a tree that does not grow may become. */
const STORE_AGAIN_MS = 600_000
/** Who waits for a note stores it with what it releases: by itself it is stored this much later. */
const STORE_MS = 250

/** Stores cosigned notes of one log, for the public and for the next start. Never throws: those who wait for a note store it too. */
export function createNoteKeeper({ store, hash, origin, clock, schedule, log }: NoteKeeperDeps) {
  /** What the database has, as far as it is known here. */
  let kept = { size: 0, at: 0 }
  const storing = new Set<Promise<void>>()
  let readLater: (() => CosignedNote) | undefined
  let cancelLater = () => {}

  function keep(note: CosignedNote): Promise<void> {
    const { size } = note
    if (kept.size === size && clock.now() - kept.at < STORE_AGAIN_MS) return Promise.resolve()
    kept = { size, at: clock.now() }
    const stored: Promise<void> = store
      .insertNote({ hash, ...note, now: clock.now() })
      .catch((error: unknown) => {
        kept = { size: 0, at: 0 }
        log.warn({ msg: 'Could not store a cosigned checkpoint', origin, ...toReason(error) })
      })
      .finally(() => storing.delete(stored))
    storing.add(stored)
    return stored
  }

  function keepLatest() {
    const read = readLater
    readLater = undefined
    if (read !== undefined) void keep(read())
  }

  return {
    keep,
    /** The same after a while, as the note is by then: more may cosign it. Unless there is a newer one. */
    keepLater(read: () => CosignedNote) {
      if (readLater === undefined) cancelLater = schedule(keepLatest, STORE_MS)
      readLater = read
    },
    /** That the database has a note of this size, of that time. */
    setKept(size: number, at: number) {
      kept = { size, at }
    },
    /** Forgets what is to be stored. */
    reset() {
      readLater = undefined
      cancelLater()
    },
    /** Stores what is still to be stored. */
    async stop() {
      cancelLater()
      keepLatest()
      await Promise.all(storing)
    },
  }
}
