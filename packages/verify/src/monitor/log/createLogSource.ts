import {
  type EntryBundle,
  hashOrigin,
  LOG_ENTRY_BYTES,
  MAX_NOTE_BYTES,
  TILE_WIDTH,
  type Tile,
  toBundlePath,
  toTilePath,
} from '@countersign/log'
import { isBodyTooLarge, isNatural, isPlainObject, parseJson } from '@countersign/protocol'
import { VerifierError } from '../../errors.ts'
import type { FetchBytes } from '../../fetchBytes.ts'
import type { LogsMemory } from './logMemory.ts'

/** Why a log was not fully read: it contradicts itself or another log, withholds entries, is unavailable, or its witnesses are unknown. */
export type LogFaultKind = 'log-lies' | 'log-withholds' | 'log-unavailable' | 'log-not-checked'

export class LogFault extends Error {
  override name = 'LogFault'
  readonly kind: LogFaultKind
  constructor(kind: LogFaultKind, message: string) {
    super(message)
    this.kind = kind
  }
}

export function lies(message: string) {
  return new LogFault('log-lies', message)
}

export function withholds(message: string) {
  return new LogFault('log-withholds', message)
}

/** A log as the service lists it. */
export type ListedLog = { origin: string; key: string; size: number }

export type LogSourceDeps = {
  fetchBytes: FetchBytes
  memory: Pick<LogsMemory, 'bundles'>
  /** Resolves after this time; false if the run should end. */
  wait?: (ms: number) => Promise<boolean>
  /** Whether the time for logs is over. Then no more requests are made. */
  isOver: () => boolean
}

/** The base URL of the logs: c2sp.org/tlog-tiles below `/log/<SHA-256 of the origin>`. */
export type LogSource = ReturnType<typeof createLogSource>

const MAX_LIST_BYTES = 1_048_576
/** Settings have at most 16, and change rarely. */
const MAX_LOGS = 256
/** Each entry has a length prefix. */
const BUNDLE_BYTES = TILE_WIDTH * (2 + LOG_ENTRY_BYTES)
/** The number of cached bundles, of some 15 kB each. */
const MAX_KEPT = 4_096
const PAUSE_MS = 10_000
/** Longer than the service's rate limit window. */
const MAX_TURNS = 12

export function createLogSource(deps: LogSourceDeps, base: string) {
  const { fetchBytes, memory, wait = async () => false, isOver } = deps
  const { host } = new URL(base)
  const { bundles: kept } = memory

  /** A service limits the requests of each caller per minute. */
  async function ask(url: string, bounds: { maxBytes: number; accept: string }) {
    for (let turn = 1; ; turn++) {
      if (isOver()) throw new LogFault('log-unavailable', 'the time for reading logs was over')
      try {
        return await fetchBytes({ url, ...bounds })
      } catch (error) {
        const isTooFast = error instanceof VerifierError && error.status === 429 && turn < MAX_TURNS
        if (!isTooFast || !(await wait(PAUSE_MS))) throw error
      }
    }
  }

  async function get(path: string, { maxBytes, accept }: { maxBytes: number; accept: string }) {
    try {
      return await ask(`${base}/log${path}`, { maxBytes, accept })
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error
      const detail = `${path || '/log'}: ${error.details ?? error.message}`
      if (error.status === 404 || error.status === 410) throw withholds(detail)
      // All parts of a log have a maximum size. Only the list of logs has none.
      if (path !== '' && isBodyTooLarge(error.cause)) throw lies(detail)
      throw new LogFault('log-unavailable', detail)
    }
  }
  const getTilePart = (origin: string, path: string, maxBytes: number) =>
    get(`/${hashOrigin(origin)}/${path}`, { maxBytes, accept: 'application/octet-stream' })

  return {
    host,

    async list(): Promise<ListedLog[]> {
      return readList(await get('', { maxBytes: MAX_LIST_BYTES, accept: 'application/json' }), host)
    },

    /** The newest cosigned checkpoint, a note. */
    async getCheckpoint(origin: string): Promise<string> {
      const path = `/${hashOrigin(origin)}/checkpoint`
      return new TextDecoder().decode(await get(path, { maxBytes: MAX_NOTE_BYTES, accept: 'text/plain' }))
    },

    getTile: (origin: string, tile: Tile) => getTilePart(origin, toTilePath(tile), TILE_WIDTH * 32),

    getBundle(origin: string, bundle: EntryBundle): Promise<Uint8Array<ArrayBuffer>> {
      const path = toBundlePath(bundle)
      const name = `${toPrefix(origin)}${path}`
      const known = kept.get(name)
      if (known !== undefined) return known
      const fetched = getTilePart(origin, path, BUNDLE_BYTES)
      if (bundle.width < TILE_WIDTH || kept.size >= MAX_KEPT) return fetched
      kept.set(name, fetched)
      fetched.catch(() => kept.delete(name))
      return fetched
    },

    /** Drops the cached parts of a faulty log, so that the next run fetches them again. */
    forgetBundles(origin: string): void {
      for (const name of kept.keys()) if (name.startsWith(toPrefix(origin))) kept.delete(name)
    },
  }
}

/** An origin has no spaces. */
const toPrefix = (origin: string) => `${origin} `

function readList(bytes: Uint8Array, host: string): ListedLog[] {
  const malformed = () => new LogFault('log-unavailable', `${host} returned no list of logs at /log`)
  let value: unknown
  try {
    value = parseJson(bytes)
  } catch {
    throw malformed()
  }
  if (!isPlainObject(value) || !Array.isArray(value.logs) || value.logs.length > MAX_LOGS) throw malformed()
  const logs = value.logs.map((item: unknown): ListedLog => {
    if (!isPlainObject(item)) throw malformed()
    const { origin, hash, key, size } = item
    if (typeof origin !== 'string' || typeof key !== 'string' || !isNatural(size)) throw malformed()
    if (hash !== hashOrigin(origin)) throw malformed()
    return { origin, key, size }
  })
  if (new Set(logs.map(({ origin }) => origin)).size !== logs.length) throw malformed()
  return logs
}
