import type { Log } from '@countersign/service'
import type { CosignedNote, LogStore } from '../store/logs.ts'
import type { Clock, Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'

type NoteSaverDeps = {
  store: Pick<LogStore, 'insertNote'>
  /** The log's id in the store. */
  hash: string
  origin: string
  clock: Clock
  schedule: Schedule
  log: Pick<Log, 'warn'>
}

/** Maximum age of the public checkpoint while the tree doesn't grow. */
const STORE_AGAIN_MS = 600_000
/** Callers that wait for a note store it with what they release. Otherwise it is stored after this delay. */
const STORE_MS = 250

/**
 * Stores the cosigned notes of one log, for the public and for the next start. Never throws, because callers that wait for a note also store
 * it.
 */
export function createNoteSaver({ store, hash, origin, clock, schedule, log }: NoteSaverDeps) {
  /** The newest note that is known to be stored. */
  let saved = { size: 0, at: 0 }
  const storing = new Set<Promise<void>>()
  let readLater: (() => CosignedNote) | undefined
  let cancelLater = () => {}

  function save(note: CosignedNote): Promise<void> {
    const { size } = note
    if (saved.size === size && clock.now() - saved.at < STORE_AGAIN_MS) return Promise.resolve()
    saved = { size, at: clock.now() }
    const stored: Promise<void> = store
      .insertNote({ hash, ...note, now: clock.now() })
      .catch((error: unknown) => {
        saved = { size: 0, at: 0 }
        log.warn({ msg: 'Could not store a cosigned checkpoint', origin, ...toReason(error) })
      })
      .finally(() => storing.delete(stored))
    storing.add(stored)
    return stored
  }

  function saveLatest() {
    const read = readLater
    readLater = undefined
    if (read !== undefined) void save(read())
  }

  return {
    save,
    /** Saves a note after a delay, with the cosignatures that have arrived by then. A later call replaces it. */
    saveLater(read: () => CosignedNote) {
      if (readLater === undefined) cancelLater = schedule(saveLatest, STORE_MS)
      readLater = read
    },
    /** Records that the database has a note of this size and time. */
    setSaved(size: number, at: number) {
      saved = { size, at }
    },
    /** Drops the pending note. */
    reset() {
      readLater = undefined
      cancelLater()
    },
    /** Stores the pending note. */
    async stop() {
      cancelLater()
      saveLatest()
      await Promise.all(storing)
    },
  }
}
