import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { readBounded } from '@countersign/protocol'
import { CID } from 'multiformats/cid'
import { create as createDigest } from 'multiformats/hashes/digest'
import { listen } from './listen.ts'

/** Ways in which a pin service can misbehave. */
export type PinServiceFault =
  /** Resets every connection. */
  | 'down'
  /** Answers late. */
  | 'slow'
  /** Stores the block, but resets the connection before it answers. */
  | 'reset-after-accept'
  /** Answers 500. */
  | 'error'
  /** Answers 401. */
  | 'refused'
  /** Answers 429. */
  | 'busy'
  /** Returns a different CID. */
  | 'wrong-cid'
  /** Returns all but the last byte. */
  | 'truncated'
  /** Returns bytes with one bit flipped. */
  | 'flipped'
  /** Returns more bytes than a block may have. */
  | 'endless'
  /** Reports success without storing the block. */
  | 'forgets'
  /** Answers with invalid JSON. */
  | 'garbage'

/** Status of a pin in the Pinning Service API. */
type PinStatus = 'queued' | 'pinning' | 'pinned' | 'failed'

export type StartPinServiceParameters = {
  /** Required bearer token. Default: none. */
  token?: string
  /** Default: a free one. */
  port?: number
}

export type FakePinService = Awaited<ReturnType<typeof startFakeKubo>>

export type FakePinata = Awaited<ReturnType<typeof startFakePinata>>

const RAW = 0x55
const DAG_PB = 0x70
const SHA2_256 = 0x12
/** Larger files are split, so that their root is a node with links instead of a raw block. */
const CHUNK_LENGTH = 262_144
const ENDLESS_LENGTH = 4_194_304
const MAX_FORM_BYTES = 16_777_216

/**
 * Starts a Kubo node on loopback, with `block/put`, `block/get` and `pin/ls` of its RPC API, and its gateway. It keeps blocks in memory and
 * can misbehave.
 *
 * @example
 * const kubo = await startFakeKubo()
 * kubo.setFault('forgets')
 */
export function startFakeKubo(parameters: StartPinServiceParameters = {}) {
  return startPinService(parameters, async ({ request, url, blocks, fault, store }) => {
    const failed = (message: string) => toJson(500, { Message: message, Code: 0, Type: 'error' })
    if (request.method === 'GET' && url.pathname.startsWith('/ipfs/')) return toBlock(blocks, url, fault)
    if (parameters.token !== undefined && !isAuthorized(request, parameters.token)) return { status: 403, body: '' }
    if (request.method !== 'POST') return { status: 405, body: '' }
    const cid = url.searchParams.get('arg') ?? ''
    switch (url.pathname) {
      case '/api/v0/block/put': {
        const files = await readFiles(request)
        const isRaw = url.searchParams.get('cid-codec') === 'raw' && url.searchParams.get('mhtype') === 'sha2-256'
        if (files.length === 0) return toJson(400, { Message: 'file argument is required', Code: 1, Type: 'error' })
        const lines = files.map((bytes) => {
          const Key = store(toCid(isRaw ? RAW : DAG_PB, bytes), bytes)
          return `${JSON.stringify({ Key, Size: bytes.length })}\n`
        })
        return { status: 200, body: lines.join(''), type: 'application/json' }
      }
      case '/api/v0/pin/ls': {
        const cids = url.searchParams.getAll('arg')
        const missing = cids.find((one) => !blocks.has(one))
        if (missing !== undefined) return failed(`path '${missing}' is not pinned`)
        return toJson(200, { Keys: Object.fromEntries(cids.map((one) => [one, { Type: 'recursive', Name: '' }])) })
      }
      case '/api/v0/block/get': {
        const bytes = blocks.get(cid)
        // An online node keeps searching until the client gives up.
        if (bytes === undefined && url.searchParams.get('offline') !== 'true') return undefined
        if (bytes === undefined) return failed(`block was not found locally (offline): ipld: could not find ${cid}`)
        return { status: 200, body: corrupt(bytes, fault), type: 'text/plain' }
      }
      default:
        return { status: 404, body: '404 page not found\n' }
    }
  })
}

/**
 * Starts Pinata on loopback, at one address: uploads (`POST /v3/files`), a gateway (`GET /ipfs/CID`) and the IPFS Pinning Service API (`GET
 * /psa/pins`). It keeps blocks in memory and can misbehave.
 *
 * @example
 * const pinata = await startFakePinata({ token: 'a token' })
 * pinata.setPinStatus('queued')
 */
export async function startFakePinata(parameters: StartPinServiceParameters = {}) {
  let pinStatus: PinStatus = 'pinned'
  const service = await startPinService(parameters, async ({ request, url, blocks, fault, store }) => {
    const { pathname, searchParams } = url
    const isUnauthorized = parameters.token !== undefined && !isAuthorized(request, parameters.token)
    if (pathname.startsWith('/ipfs/') && request.method === 'GET') return toBlock(blocks, url, fault)
    if (isUnauthorized) return toJson(401, { error: { reason: 'INVALID_CREDENTIALS', details: 'token' } })
    if (pathname === '/v3/files' && request.method === 'POST') {
      const form = await readForm(request)
      const bytes = await readPart(form)
      if (bytes === undefined) return toJson(400, { error: 'no file' })
      const network = form?.get('network') === 'public' ? 'public' : 'private'
      const cid = toCid(bytes.length > CHUNK_LENGTH ? DAG_PB : RAW, bytes)
      const named = network === 'public' ? store(cid, bytes) : cid
      return toJson(200, { data: { cid: named, size: bytes.length, network, number_of_files: 1 } })
    }
    if (pathname === '/psa/pins' && request.method === 'GET') {
      const cid = searchParams.get('cid') ?? ''
      const isAsked = (searchParams.get('status') ?? 'pinned').split(',').includes(pinStatus)
      const results = blocks.has(cid) && isAsked ? [{ requestid: '1', status: pinStatus, pin: { cid } }] : []
      return toJson(200, { count: results.length, results })
    }
    return { status: 404, body: 'not found', type: 'text/plain' }
  })
  return Object.assign(service, {
    /** URL of the Pinning Service API. Uploads and the gateway are at `url`. */
    pinsUrl: `${service.url}/psa`,
    /** Sets the status that the Pinning Service API reports for stored blocks. */
    setPinStatus(status: PinStatus) {
      pinStatus = status
    },
  })
}

type Answer = { status: number; body: string | Uint8Array; type?: string }

type PinRequest = {
  request: IncomingMessage
  url: URL
  blocks: ReadonlyMap<string, Uint8Array>
  fault: PinServiceFault | undefined
  /** Stores the block and returns its CID, as the fault determines. */
  store(cid: string, bytes: Uint8Array): string
}

/** Undefined leaves the request unanswered. */
type Handle = (call: PinRequest) => Promise<Answer | undefined>

async function startPinService({ port = 0 }: StartPinServiceParameters, handle: Handle) {
  const blocks = new Map<string, Uint8Array>()
  const timers = new Set<NodeJS.Timeout>()
  let fault: PinServiceFault | undefined
  let delayMs = 0
  let requests = 0

  async function answer(request: IncomingMessage, response: ServerResponse) {
    requests += 1
    const current = fault
    if (current === 'down') return void request.socket.resetAndDestroy()
    if (current === 'error')
      return send(response, toJson(500, { Message: 'injected failure', error: 'injected failure' }))
    if (current === 'refused') return send(response, toJson(401, { error: 'unauthorized' }))
    if (current === 'busy') return send(response, toJson(429, { error: 'too many requests' }))
    let isStored = false
    const store = (cid: string, bytes: Uint8Array) => {
      isStored = true
      if (current !== 'forgets') blocks.set(cid, bytes)
      return current === 'wrong-cid' ? toCid(RAW, Buffer.from(`not ${cid}`)) : cid
    }
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    const result = await handle({ request, url, blocks, fault: current, store })
    if (isStored && current === 'reset-after-accept') return void request.socket.resetAndDestroy()
    if (result === undefined) return
    if (current === 'garbage') return send(response, { status: 200, body: '<!doctype html>', type: 'text/html' })
    if (current !== 'slow') return send(response, result)
    const timer = setTimeout(() => {
      timers.delete(timer)
      send(response, result)
    }, delayMs)
    timers.add(timer)
  }

  const server = createServer((request, response) => {
    // The caller may disconnect at any point.
    answer(request, response).catch(() => request.socket.destroy())
  })
  const { url, stop } = await listen(server, port)
  return {
    url,
    /** Sets the fault for further requests. Undefined ends it. `delayMs` applies to `slow`. */
    setFault(next?: PinServiceFault, options: { delayMs?: number } = {}) {
      fault = next
      delayMs = options.delayMs ?? 0
    },
    /** Number of requests, including failed ones. */
    get requests() {
      return requests
    },
    /** Stored blocks by CID. */
    blocks: blocks as ReadonlyMap<string, Uint8Array>,
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      await stop()
    },
  }
}

function toCid(codec: number, bytes: Uint8Array): string {
  return CID.createV1(codec, createDigest(SHA2_256, createHash('sha256').update(bytes).digest())).toString()
}

/** A gateway's answer to `GET /ipfs/CID`. */
function toBlock(blocks: PinRequest['blocks'], { pathname }: URL, fault: PinServiceFault | undefined): Answer {
  const bytes = blocks.get(pathname.slice('/ipfs/'.length))
  if (bytes === undefined) return { status: 404, body: 'not found', type: 'text/plain' }
  return { status: 200, body: corrupt(bytes, fault), type: 'application/vnd.ipld.raw' }
}

function corrupt(bytes: Uint8Array, fault: PinServiceFault | undefined): Uint8Array {
  if (fault === 'truncated') return bytes.subarray(0, -1)
  if (fault === 'endless') return new Uint8Array(ENDLESS_LENGTH)
  if (fault !== 'flipped') return bytes
  const copy = Uint8Array.from(bytes)
  copy[0] = (copy[0] ?? 0) ^ 0x80
  return copy
}

function isAuthorized({ headers }: IncomingMessage, token: string): boolean {
  return headers.authorization === `Bearer ${token}`
}

async function readForm(request: IncomingMessage): Promise<FormData | undefined> {
  const bytes = await readBounded(request, MAX_FORM_BYTES)
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  return await new Response(bytes, { headers }).formData().catch(() => undefined)
}

async function readPart(form: FormData | undefined): Promise<Uint8Array | undefined> {
  const part = form?.get('file')
  return part instanceof Blob ? new Uint8Array(await part.arrayBuffer()) : undefined
}

/** If several files have one name, Kubo reads the first. */
async function readFiles(request: IncomingMessage): Promise<Uint8Array[]> {
  const files = (await readForm(request))?.getAll('file').filter((part) => part instanceof Blob) ?? []
  const firsts = files.filter(({ name }, place) => files.findIndex((other) => other.name === name) === place)
  return Promise.all(firsts.map(async (file) => new Uint8Array(await file.arrayBuffer())))
}

function toJson(status: number, body: object): Answer {
  return { status, body: JSON.stringify(body), type: 'application/json' }
}

function send(response: ServerResponse, { status, body, type = 'text/plain' }: Answer) {
  response.writeHead(status, { 'content-type': type }).end(body)
}
