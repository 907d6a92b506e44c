import { toCid } from '@countersign/receipt'
import { z } from 'zod'
import {
  type Exchanged,
  exchange,
  type Fetch,
  parseAnswer,
  parseBody,
  toAuthorization,
  toBlockBytes,
  toServiceUrl,
} from './exchange.ts'
import { assertBlock, assertCid, PinError } from './pinError.ts'
import type { ReadBlock, RemotePinner } from './pinner.ts'

type CreateKuboPinnerParameters = {
  /** Where the RPC API listens, such as `http://127.0.0.1:5001`; `/api/v0` is added to it. */
  apiUrl: string
  /** A bearer token of Kubo's `API.Authorizations`. */
  token?: string | undefined
  fetch: Fetch
}

const putAnswer = z.object({ Key: z.string() })
const pins = z.object({ Keys: z.record(z.string(), z.object({ Type: z.string() })).default({}) })
const version = z.object({ Version: z.string().regex(/^[\w.+-]{1,64}$/) })
const failure = z.object({ Message: z.string() })

/** The CID of no bytes. */
const EMPTY_BLOCK = toCid(new Uint8Array())

/**
 * A Kubo node by its RPC API (docs.ipfs.tech/reference/kubo/rpc: `block/put`, `pin/ls`, `block/get`). It answers 500 for
 * everything that goes wrong inside, a missing block too, which only its message shows.
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
        // The API takes only POST, also for reading.
        init: { method: 'POST', headers, body: options.body ?? null },
        signal: options.signal,
      },
    )

  async function assertPinned(cid: string, signal: AbortSignal): Promise<void> {
    const listed = await call('pin/ls', `arg=${cid}`, { signal })
    if (isFailure(listed, /is not pinned/)) throw new PinError('pin_not_found', { details: 'pin/ls' })
    const type = parseAnswer(pins, listed).Keys[cid]?.Type
    // An indirect pin hangs on another block, which its owner may unpin.
    if (type !== 'recursive' && type !== 'direct') throw new PinError('pin_not_found', { details: 'pin/ls' })
  }

  const read: ReadBlock = async (cid, { signal }) => {
    assertCid(cid)
    // Offline: what this node has. Online it would look for a missing block all over the network, without an end.
    const answer = await call('block/get', `arg=${cid}&offline=true`, { signal })
    if (isFailure(answer, /not found|could not find/)) throw new PinError('pin_not_found', { details: 'block/get' })
    return toBlockBytes(cid, answer)
  }

  return {
    name: 'kubo',
    async pin(block, { signal }) {
      assertBlock(block)
      const body = new FormData()
      body.append('file', new Blob([block.bytes], { type: 'application/octet-stream' }), 'block')
      const put = await call('block/put', 'cid-codec=raw&mhtype=sha2-256&pin=true', { signal, body })
      if (parseAnswer(putAnswer, put).Key !== block.cid) throw new PinError('pin_mismatch', { details: 'block/put' })
      await assertPinned(block.cid, signal)
    },
    read,
    async readPinned(cid, { signal }) {
      assertCid(cid)
      // A block without a pin can be read until the node next collects garbage.
      await assertPinned(cid, signal)
      return read(cid, { signal })
    },
    async probe({ signal }) {
      // What pinning asks as well: a token may be for some calls only.
      const listed = await call('pin/ls', `arg=${EMPTY_BLOCK}`, { signal })
      if (!isFailure(listed, /is not pinned/)) parseAnswer(pins, listed)
      const told = version.safeParse(parseBody((await call('version', '', { signal })).body))
      return told.success ? { version: told.data.Version } : {}
    },
    async stop() {},
  }
}

function isFailure({ status, body }: Exchanged, pattern: RegExp): boolean {
  const parsed = status === 500 ? failure.safeParse(parseBody(body)) : undefined
  return parsed?.success === true && pattern.test(parsed.data.Message)
}
