import { z } from 'zod'
import {
  createGatewayReader,
  exchange,
  type Fetch,
  parseAnswer,
  toAuthorization,
  toServiceUrl,
  toStatusError,
} from './exchange.ts'
import { assertBlock, assertCid, PinError } from './pinError.ts'
import type { RemotePinner } from './pinner.ts'

type CreatePinataPinnerParameters = {
  /** Upload address without `/v3/files`. */
  apiUrl?: string | undefined
  /** The account's public gateway, without `/ipfs/CID`. Gets no token. */
  gatewayUrl: string
  /** An IPFS Pinning Service API that must list the block as pinned too, such as `https://api.pinata.cloud/psa`. */
  pinsUrl?: string | undefined
  token: string
  fetch: Fetch
}

const uploaded = z.object({ data: z.object({ cid: z.string(), network: z.string().optional() }) })
const listed = z.object({
  results: z.array(z.object({ status: z.string(), pin: z.object({ cid: z.string() }) })),
})

/**
 * Pins with Pinata (docs.pinata.cloud, file upload v3). Pinata chunks files itself, so the CID matches only if the file fits one chunk (a
 * raw leaf). The Pinning Service API (ipfs.github.io/pinning-services-api-spec) accepts CIDs but no bytes, so it can confirm a pin but not
 * create one.
 */
export function createPinataPinner(parameters: CreatePinataPinnerParameters): RemotePinner {
  const { apiUrl = 'https://uploads.pinata.cloud', gatewayUrl, pinsUrl, token, fetch } = parameters
  const uploads = `${toServiceUrl(apiUrl, { token })}/v3/files`
  const pins = pinsUrl === undefined ? undefined : `${toServiceUrl(pinsUrl, { token })}/pins`
  const headers = toAuthorization(token)
  const read = createGatewayReader({ gatewayUrl, fetch })

  async function confirm(url: string, cid: string, signal: AbortSignal): Promise<void> {
    // Without a status the API lists only pinned blocks.
    const query = `cid=${cid}&status=queued,pinning,pinned,failed`
    const answer = await exchange({ fetch }, { step: 'pins', url: `${url}?${query}`, init: { headers }, signal })
    const { results } = parseAnswer(listed, answer)
    const statuses = results.filter(({ pin }) => pin.cid === cid).map(({ status }) => status)
    if (statuses.includes('pinned')) return
    if (statuses.length === 0) throw new PinError('pin_not_found', { details: 'pins' })
    const isUnderWay = statuses.some((status) => status === 'queued' || status === 'pinning')
    throw new PinError(isUnderWay ? 'pin_unavailable' : 'pin_refused', { details: 'pins: not pinned' })
  }

  return {
    name: 'pinata',
    async pin(block, { signal }) {
      assertBlock(block)
      const body = new FormData()
      body.append('network', 'public')
      body.append('file', new Blob([block.bytes], { type: 'application/json' }), `${block.cid}.json`)
      const init = { method: 'POST', headers, body }
      const { data } = parseAnswer(uploaded, await exchange({ fetch }, { step: 'upload', url: uploads, init, signal }))
      if (data.cid !== block.cid) throw new PinError('pin_mismatch', { details: 'upload' })
      // On the private network only the account can read it.
      if ((data.network ?? 'public') !== 'public') throw new PinError('pin_refused', { details: 'upload: not public' })
      if (pins !== undefined) await confirm(pins, block.cid, signal)
    },
    read,
    async readPinned(cid, { signal }) {
      assertCid(cid)
      // A gateway also returns cached, unpinned blocks.
      if (pins === undefined) throw new PinError('pin_refused', { details: 'pins: no address' })
      await confirm(pins, cid, signal)
      return read(cid, { signal })
    },
    async probe({ signal }) {
      // An upload without a file: with valid credentials, Pinata reports the missing file.
      const init = { method: 'POST', headers, body: new FormData() }
      const answer = await exchange({ fetch }, { step: 'upload', url: uploads, init, signal })
      const isKnown = answer.status === 400 || answer.status === 422
      if (!isKnown) throw toStatusError(answer)
      return {}
    },
    async stop() {},
  }
}
