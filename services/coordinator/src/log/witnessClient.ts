import {
  COSIGNATURES_HEADER,
  type Cosignature,
  formatAddCheckpoint,
  LogError,
  type NoteKey,
  parseVkey,
} from '@countersign/log'
import { isSafeUrl, MAX_WITNESSES } from '@countersign/protocol'
import { type Env, type Fault, readCode, readList } from '@countersign/service'
import { Pool } from 'undici'
import { readCosignature } from './collection.ts'

export type WitnessAnswer =
  | { outcome: 'cosigned'; cosignature: Cosignature }
  /** The witness has a larger tree than the requested one. Only the database can tell whether it is a tree of this log. */
  | { outcome: 'ahead'; size: number }
  /** `contradicts`: our tree doesn't continue the witness's. `lies`: the response is impossible. */
  | { outcome: 'contradicts' | 'unknown_log' | 'forbidden' | 'lies' | 'unavailable'; reason: string }

type CheckpointRequest = {
  origin: string
  size: number
  /** The checkpoint without signatures. */
  text: string
  /** The checkpoint with the log's signature. */
  note: string
  /** The size that the witness probably has. Used for its first request. */
  likelySize: number
  prove(oldSize: number): Promise<readonly Uint8Array[]>
}

/** A client of one witness (c2sp.org/tlog-witness, as of July 2026). It never throws. */
export type WitnessClient = {
  readonly key: NoteKey
  addCheckpoint(request: CheckpointRequest): Promise<WitnessAnswer>
  stop(): Promise<void>
}

/**
 * Requests per checkpoint: with the expected size, with the size that the witness returns, and one more in case another coordinator was
 * faster.
 */
const MAX_CALLS = 3
const MAX_ANSWER_BYTES = 65_536
const CONNECTIONS = 8
/** Policies name only Ed25519 keys. */
const HEADERS = { [COSIGNATURES_HEADER]: 'ed25519' }

export function createWitnessClient(
  { key, url }: WitnessSite,
  { timeoutMs = 5_000 }: { timeoutMs?: number } = {},
): WitnessClient {
  const { origin: server, pathname } = new URL(url)
  const path = `${pathname.replace(/\/+$/, '')}/add-checkpoint`
  const pool = new Pool(server, {
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: 60_000,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: { timeout: timeoutMs },
  })
  /** Last known size by origin. */
  const sizes = new Map<string, number>()

  async function ask(request: CheckpointRequest, signal: AbortSignal): Promise<WitnessAnswer> {
    const { origin, size, text, note } = request
    let oldSize = Math.min(sizes.get(origin) ?? request.likelySize, size)
    for (let call = 0; call < MAX_CALLS; call++) {
      const proof = await request.prove(oldSize)
      const body = formatAddCheckpoint({ oldSize, proof, checkpoint: note })
      const response = await pool.request({ method: 'POST', path, headers: HEADERS, body, signal })
      const status = response.statusCode
      // Bounded by `maxResponseSize`.
      const answer = await response.body.text()
      if (status === 200) {
        const cosignature = readCosignature(answer, { key, text })
        if (cosignature === undefined) return { outcome: 'lies', reason: 'its cosignature is invalid' }
        sizes.set(origin, size)
        return { outcome: 'cosigned', cosignature }
      }
      if (status !== 409) return toRefusal(status)
      const named = parseSize(answer)
      if (named === undefined || named === oldSize) return { outcome: 'lies', reason: 'it returned no new size' }
      sizes.set(origin, named)
      if (named > size) return { outcome: 'ahead', size: named }
      oldSize = named
    }
    return { outcome: 'unavailable', reason: 'its size changes with every call' }
  }

  return {
    key,
    async addCheckpoint(request) {
      try {
        return await ask(request, AbortSignal.timeout(timeoutMs))
      } catch (error) {
        return { outcome: 'unavailable', reason: toShortReason(error) }
      }
    },
    stop: () => pool.destroy(),
  }
}

function toRefusal(status: number): WitnessAnswer {
  if (status === 404) return { outcome: 'unknown_log', reason: 'it does not know this log' }
  if (status === 403) return { outcome: 'forbidden', reason: 'it knows another key of this log' }
  if (status === 422) return { outcome: 'contradicts', reason: 'it has seen another history of this log' }
  return { outcome: 'unavailable', reason: `it answered with status ${status}` }
}

function parseSize(answer: string): number | undefined {
  const [, digits] = /^(0|[1-9][0-9]{0,15})\n?$/.exec(answer) ?? []
  const size = Number(digits ?? Number.NaN)
  return Number.isSafeInteger(size) ? size : undefined
}

/** Only the code or name: the message could contain the URL, which may contain secrets. */
function toShortReason(error: unknown): string {
  return readCode(error) ?? (error instanceof Error ? error.name : 'unknown')
}

/** A witness's key and URL. */
export type WitnessSite = { key: NoteKey; url: string }

/**
 * Reads `LOG_WITNESSES`: items of a verifier key and a URL, separated by `@`. It only tells where the witnesses are. The enclave's settings
 * say which of them count and how many are needed.
 */
export function readWitnesses(env: Env, fault: Fault): WitnessSite[] {
  const items = readList(env.LOG_WITNESSES)
  const sites = items.flatMap((item) => readSite(item) ?? [])
  if (sites.length < items.length) {
    fault('LOG_WITNESSES', 'expected VERIFIER-KEY@URL items with Ed25519 keys, and https or http on loopback')
  }
  if (items.length > MAX_WITNESSES)
    fault('LOG_WITNESSES', `expected at most ${MAX_WITNESSES} witnesses, got ${items.length}`)
  const keys = new Set(sites.map(({ key }) => Buffer.from(key.publicKey).toString('hex')))
  if (keys.size < sites.length) fault('LOG_WITNESSES', 'duplicate key')
  return sites
}

function readSite(item: string): WitnessSite | undefined {
  // The last one, because a name can contain an `@`, too.
  const split = Math.max(item.lastIndexOf('@http://'), item.lastIndexOf('@https://'))
  const url = item.slice(split + 1)
  if (split < 0 || !isWitnessUrl(url)) return undefined
  try {
    const key = parseVkey(item.slice(0, split))
    return key.type === 'cosignature-ed25519' ? { key, url } : undefined
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

function isWitnessUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  return isPlain && isSafeUrl(url)
}
