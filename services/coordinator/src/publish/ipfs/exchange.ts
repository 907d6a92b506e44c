import { isBodyTooLarge, isSafeUrl, parseJson, readBounded } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { readCauseCode } from '@countersign/service'
import type { z } from 'zod'
import { assertCid, MAX_BLOCK_LENGTH, PinError, untilAborted } from './pinError.ts'
import type { ReadBlock } from './pinner.ts'

/** The fetch of the platform, injected. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

type ExchangeParameters = {
  /** For `details`: the URL is left out, because it may hold what an operator would not show. */
  step: string
  url: string
  init: RequestInit
  signal: AbortSignal
}

export type Exchanged = { step: string; status: number; body: Uint8Array<ArrayBuffer> }

/**
 * Asks a pin service, for one block at most, until the signal ends it. Redirects are refused: the block and the token are
 * for the host that was configured.
 */
export function exchange({ fetch }: { fetch: Fetch }, parameters: ExchangeParameters): Promise<Exchanged> {
  const { step, url, init, signal } = parameters
  return untilAborted(signal, async () => {
    try {
      const response = await fetch(url, { ...init, redirect: 'error', signal })
      return { step, status: response.status, body: await readBody(response, step) }
    } catch (error) {
      if (error instanceof PinError) throw error
      // Without the cause: its text can hold the URL or a header.
      throw new PinError('pin_unavailable', { details: `${step}: ${readCauseCode(error) ?? 'no answer'}` })
    }
  })
}

/** No block of ours is larger than the bound, and no answer about one. */
async function readBody(response: Response, step: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await readBounded(response.body, MAX_BLOCK_LENGTH)
  } catch (error) {
    if (!isBodyTooLarge(error)) throw error
    throw new PinError('pin_mismatch', { details: `${step}: too large` })
  }
}

/** What a status that is not a success means. */
export function toStatusError({ step, status }: Exchanged): PinError {
  const isTransient = status < 400 || status >= 500 || status === 408 || status === 425 || status === 429
  return new PinError(isTransient ? 'pin_unavailable' : 'pin_refused', { details: `${step}: ${status}` })
}

/** The JSON of a successful answer. What is no such JSON was not said by the service: a proxy, or half an answer. */
export function parseAnswer<Answer>(schema: z.ZodType<Answer>, exchanged: Exchanged): Answer {
  if (exchanged.status !== 200) throw toStatusError(exchanged)
  const parsed = schema.safeParse(parseBody(exchanged.body))
  if (!parsed.success) throw new PinError('pin_unavailable', { details: `${exchanged.step}: malformed` })
  return parsed.data
}

/** Undefined where it is not JSON. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return parseJson(body)
  } catch {
    return undefined
  }
}

/** The bytes of a successful answer, if they are those that the CID names. */
export function toBlockBytes(cid: string, exchanged: Exchanged): Uint8Array<ArrayBuffer> {
  if (exchanged.status !== 200) throw toStatusError(exchanged)
  if (toCid(exchanged.body) !== cid) throw new PinError('pin_mismatch', { details: `${exchanged.step}: other bytes` })
  return exchanged.body
}

/** The base URL of a pin service, without a slash at the end. A token travels only over https or loopback. */
export function toServiceUrl(text: string, { token }: { token?: string | undefined } = {}): string {
  if (!URL.canParse(text)) throw new TypeError('the address of the pin service is no URL')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new TypeError('a pin service speaks http or https')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('the address of a pin service has no credentials and no query')
  }
  if (token !== undefined && !isSafeUrl(url)) {
    throw new TypeError('a token goes to a pin service over https, or on loopback')
  }
  return url.href.replace(/\/+$/, '')
}

/** Checked here, because fetch quotes a header that it cannot send. */
export function toAuthorization(token: string): Record<string, string> {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError('the token of the pin service cannot stand in a header')
  return { authorization: `Bearer ${token}` }
}

/**
 * Reads blocks from a trustless gateway (specs.ipfs.tech/http-gateways/trustless-gateway), which needs no trust, since they are hashed
 * here, and gets no token.
 */
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
