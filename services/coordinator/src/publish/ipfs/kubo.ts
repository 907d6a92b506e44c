import { toCid } from '@countersign/receipt'
import { z } from 'zod'
import { createGatherer } from '../../store/gather.ts'
import {
  type Exchanged,
  exchange,
  type Fetch,
  parseAnswer,
  parseBody,
  toAuthorization,
  toBlockBytes,
  toServiceUrl,
  toStatusError,
} from './exchange.ts'
import { assertBlock, assertCid, PinError, untilAborted } from './pinError.ts'
import type { Block, ReadBlock, RemotePinner } from './pinner.ts'

type CreateKuboPinnerParameters = {
  /** Address of the RPC API without `/api/v0`, such as `http://127.0.0.1:5001`. */
  apiUrl: string
  /** A bearer token from Kubo's `API.Authorizations`. */
  token?: string | undefined
  fetch: Fetch
}

const putAnswer = z.object({ Key: z.string() })
const pins = z.object({ Keys: z.record(z.string(), z.object({ Type: z.string() })).default({}) })
const version = z.object({ Version: z.string().regex(/^[\w.+-]{1,64}$/) })
const failure = z.object({ Message: z.string() })

/** The CID of an empty block. */
const EMPTY_BLOCK = toCid(new Uint8Array())

/** Limits of one upload. A single block may be larger. */
const MAX_TOGETHER = 32
const MAX_TOGETHER_BYTES = 2_000_000
/** Concurrent uploads. */
const UPLOADS = 4

type PinCall = { block: Block; signal: AbortSignal }

/**
 * Pins with a Kubo node's RPC API (docs.ipfs.tech/reference/kubo/rpc: `block/put`, `pin/ls`, `block/get`). Kubo returns 500 for every error;
 * only the message identifies a missing block. Concurrent pins share two calls.
 */
export function createKuboPinner({ apiUrl, token, fetch }: CreateKuboPinnerParameters): RemotePinner {
  const base = toServiceUrl(apiUrl, { token })
  const headers = token === undefined ? {} : toAuthorization(token)
  const call = (step: string, query: string, options: { signal: AbortSignal; body?: FormData }) =>
    exchange(
      { fetch },
      {
        step,
        url: `${base}/api/v0/${step}?${query}`,
        // The API accepts only POST, even for reads.
        init: { method: 'POST', headers, body: options.body ?? null },
        signal: options.signal,
      },
    )

  /**
   * Throws unless each block has its own pin. If one of several has none, Kubo may name the wrong one, so one missing pin fails all of them.
   */
  async function assertPinned(cids: readonly string[], signal: AbortSignal): Promise<void> {
    const listed = await call('pin/ls', cids.map((cid) => `arg=${cid}`).join('&'), { signal })
    if (isFailure(listed, /is not pinned/)) throw new PinError('pin_not_found', { details: 'pin/ls' })
    const { Keys: found } = parseAnswer(pins, listed)
    // An indirect pin depends on another block, which may be unpinned.
    const isOwn = (cid: string) => found[cid]?.Type === 'recursive' || found[cid]?.Type === 'direct'
    if (!cids.every(isOwn)) throw new PinError('pin_not_found', { details: 'pin/ls' })
  }

  /** Each block gets its own pin. Throws if Kubo doesn't confirm all of them. */
  async function pinTogether(calls: readonly PinCall[]): Promise<void> {
    // Kubo skips a file that has the name of an earlier one.
    const blocks = new Map(calls.map(({ block }) => [block.cid, block.bytes]))
    const cids = [...blocks.keys()]
    const signal = toCommonSignal(calls)
    const body = new FormData()
    for (const [cid, bytes] of blocks) {
      body.append('file', new Blob([bytes], { type: 'application/octet-stream' }), cid)
    }
    const put = await call('block/put', 'cid-codec=raw&mhtype=sha2-256&pin=true', { signal, body })
    const keys = parseKeys(put)
    if (keys.length < cids.length) throw new PinError('pin_unavailable', { details: 'block/put: malformed' })
    if (!cids.every((cid, place) => keys[place] === cid)) throw new PinError('pin_mismatch', { details: 'block/put' })
    await assertPinned(cids, signal)
  }

  const uploads = createGatherer<PinCall, void>({
    limit: MAX_TOGETHER,
    weight: { of: ({ block }) => block.bytes.length, limit: MAX_TOGETHER_BYTES },
    slots: UPLOADS,
    async run(calls, { answer }) {
      const [batch] = await Promise.allSettled([pinTogether(calls)])
      const isFinal = batch.status === 'fulfilled' || calls.length === 1
      const retry = async (call: PinCall) => {
        const [single] = await Promise.allSettled([pinTogether([call])])
        answer(call, single)
      }
      // Retries one by one, so that only a bad block fails.
      await Promise.all(calls.map((call) => (isFinal ? answer(call, batch) : retry(call))))
    },
  })

  const read: ReadBlock = async (cid, { signal }) => {
    assertCid(cid)
    // Offline, because otherwise Kubo searches the network for a missing block without end.
    const answer = await call('block/get', `arg=${cid}&offline=true`, { signal })
    if (isFailure(answer, /not found|could not find/)) throw new PinError('pin_not_found', { details: 'block/get' })
    return toBlockBytes(cid, answer)
  }

  return {
    name: 'kubo',
    async pin(block, { signal }) {
      assertBlock(block)
      await untilAborted(signal, () => uploads.add({ block, signal }))
    },
    read,
    async readPinned(cid, { signal }) {
      assertCid(cid)
      // An unpinned block stays readable until the next garbage collection.
      await assertPinned([cid], signal)
      return read(cid, { signal })
    },
    async probe({ signal }) {
      // Uses a call that pinning needs too, because a token may allow only some calls.
      const listed = await call('pin/ls', `arg=${EMPTY_BLOCK}`, { signal })
      if (!isFailure(listed, /is not pinned/)) parseAnswer(pins, listed)
      const answered = version.safeParse(parseBody((await call('version', '', { signal })).body))
      return answered.success ? { version: answered.data.Version } : {}
    },
    async stop() {},
  }
}

/** Aborts when all callers have aborted. */
function toCommonSignal(calls: readonly PinCall[]): AbortSignal {
  const controller = new AbortController()
  let waiting = calls.length
  const leave = () => {
    waiting -= 1
    if (waiting === 0) controller.abort()
  }
  for (const { signal } of calls) {
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  }
  return controller.signal
}

/** One JSON object per line and block. */
function parseKeys(put: Exchanged): string[] {
  if (put.status !== 200) throw toStatusError(put)
  const lines = Buffer.from(put.body).toString().split('\n').filter(Boolean)
  return lines.map((line) => parseAnswer(putAnswer, { ...put, body: Buffer.from(line) }).Key)
}

function isFailure({ status, body }: Exchanged, pattern: RegExp): boolean {
  const parsed = status === 500 ? failure.safeParse(parseBody(body)) : undefined
  return parsed?.success === true && pattern.test(parsed.data.Message)
}
