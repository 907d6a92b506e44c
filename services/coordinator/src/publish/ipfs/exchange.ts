import { isBodyTooLarge, isSafeUrl, parseJson, readBounded } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { readCauseCode } from '@countersign/service'
import type { z } from 'zod'
import { assertCid, MAX_BLOCK_LENGTH, PinError, untilAborted } from './pinError.ts'
import type { ReadBlock } from './pinner.ts'

/** The platform's fetch. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

type ExchangeParameters = {
  /** For `details`, instead of the URL, which may contain secrets. */
  step: string
  url: string
  init: RequestInit
  signal: AbortSignal
}

export type Exchanged = { step: string; status: number; body: Uint8Array<ArrayBuffer> }

/** Sends a request for at most one block. Follows no redirects, because block and token are only for the configured host. */
export function exchange({ fetch }: { fetch: Fetch }, parameters: ExchangeParameters): Promise<Exchanged> {
  const { step, url, init, signal } = parameters
  return untilAborted(signal, async () => {
    try {
      const response = await fetch(url, { ...init, redirect: 'error', signal })
      return { step, status: response.status, body: await readBody(response, step) }
    } catch (error) {
      if (error instanceof PinError) throw error
      // Without the cause, whose text can contain the URL or a header.
      throw new PinError('pin_unavailable', { details: `${step}: ${readCauseCode(error) ?? 'no answer'}` })
    }
  })
}

/** Larger answers can't be about one of our blocks. */
async function readBody(response: Response, step: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await readBounded(response.body, MAX_BLOCK_LENGTH)
  } catch (error) {
    if (!isBodyTooLarge(error)) throw error
    throw new PinError('pin_mismatch', { details: `${step}: too large` })
  }
}

/** Maps an error status. */
export function toStatusError({ step, status }: Exchanged): PinError {
  const isTransient = status < 400 || status >= 500 || status === 408 || status === 425 || status === 429
  return new PinError(isTransient ? 'pin_unavailable' : 'pin_refused', { details: `${step}: ${status}` })
}

/** Parses a successful JSON answer. Other text comes from a proxy or is incomplete. */
export function parseAnswer<Answer>(schema: z.ZodType<Answer>, exchanged: Exchanged): Answer {
  if (exchanged.status !== 200) throw toStatusError(exchanged)
  const parsed = schema.safeParse(parseBody(exchanged.body))
  if (!parsed.success) throw new PinError('pin_unavailable', { details: `${exchanged.step}: malformed` })
  return parsed.data
}

/** Undefined if it isn't JSON. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return parseJson(body)
  } catch {
    return undefined
  }
}

/** Returns the bytes of a successful answer if they match the CID. */
export function toBlockBytes(cid: string, exchanged: Exchanged): Uint8Array<ArrayBuffer> {
  if (exchanged.status !== 200) throw toStatusError(exchanged)
  if (toCid(exchanged.body) !== cid) throw new PinError('pin_mismatch', { details: `${exchanged.step}: other bytes` })
  return exchanged.body
}

/** The base URL of a pin service, without a slash at the end. A token travels only over https or loopback. */
export function toServiceUrl(text: string, { token }: { token?: string | undefined } = {}): string {
  if (!URL.canParse(text)) throw new TypeError('invalid pin service address: not a URL')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new TypeError('invalid pin service address: expected http or https')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('invalid pin service address: credentials and query are not allowed')
  }
  if (token !== undefined && !isSafeUrl(url)) {
    throw new TypeError('a pin service with a token needs https or loopback')
  }
  return url.href.replace(/\/+$/, '')
}

/** Checks the token, because fetch quotes invalid headers in its errors. */
export function toAuthorization(token: string): Record<string, string> {
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('invalid pin service token: expected printable ASCII without spaces')
  return { authorization: `Bearer ${token}` }
}

/** Reads blocks from a trustless gateway (specs.ipfs.tech/http-gateways/trustless-gateway). Checks their hashes, and sends no token. */
export function createGatewayReader({ gatewayUrl, fetch }: { gatewayUrl: string; fetch: Fetch }): ReadBlock {
  const gateway = toServiceUrl(gatewayUrl)
  return async (cid, { signal }) => {
    assertCid(cid)
    const url = `${gateway}/ipfs/${cid}?format=raw`
    const init = { headers: { accept: 'application/vnd.ipld.raw' } }
    const answer = await exchange({ fetch }, { step: 'gateway', url, init, signal })
    const isMissing = answer.status === 404 || answer.status === 410
    if (isMissing) throw new PinError('pin_not_found', { details: `gateway: ${answer.status}` })
    return toBlockBytes(cid, answer)
  }
}
