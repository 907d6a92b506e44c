import { createPrivateKey, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import { toEntropyMessage } from '@countersign/protocol'
import { listen } from './listen.ts'

/** Ways in which a satellite can misbehave. */
export type SatelliteFault =
  /** Resets every connection. */
  | 'down'
  /** Answers late. */
  | 'slow'
  /** Answers 500. */
  | 'error'
  /** Repeats the same samples. */
  | 'replay'
  /** Signs times ten minutes in the past. */
  | 'stale'
  /** Signs times ten minutes in the future. */
  | 'future'
  /** Flips a bit in every signature. */
  | 'wrong-signature'
  /** Signs with another key. */
  | 'foreign-key'
  /** The answer ends in the middle of the JSON. */
  | 'truncated'
  /** Returns one sample too many. */
  | 'too-many'
  /** Answers with invalid JSON. */
  | 'garbage'

export type Satellite = Awaited<ReturnType<typeof startSatellite>>

type Sample = {
  source: string
  value: string
  timestamp: string
  sequence: number
  publicKey: string
  signature: string
}

const MAX_SAMPLES = 256
const TEN_MINUTES_MS = 600_000

/**
 * Starts a satellite on loopback, `GET /v1/samples?count=N`. Its signatures are real, its key pair is public, and it can misbehave.
 *
 * @example
 * const satellite = await startSatellite()
 * satellite.setFault('replay')
 */
export async function startSatellite({
  seed,
}: {
  /** Seed of the simulated key. Default: the key that verifiers accept as mock. */
  seed?: string
} = {}) {
  const own = createSimulatedSatellite(seed)
  const foreign = createSimulatedSatellite('a foreign satellite')
  // Node's native Ed25519 is faster than the simulator's and gives the same bytes.
  const keys = new Map([own, foreign].map((satellite) => [satellite, importKey(satellite.privateKey)] as const))
  /** Delayed answers with their timers. */
  const late = new Map<() => void, NodeJS.Timeout>()
  let fault: SatelliteFault | undefined
  let delayMs = 0
  let requests = 0
  let replayed: Sample[] = []
  // Above the numbers of earlier starts.
  let sequence = Date.now()

  function createSample(): Sample {
    const satellite = fault === 'foreign-key' ? foreign : own
    const shiftMs = fault === 'stale' ? -TEN_MINUTES_MS : fault === 'future' ? TEN_MINUTES_MS : 0
    const value = randomBytes(32)
    const timestampMs = Date.now() + shiftMs
    sequence += 1
    const key = keys.get(satellite) as KeyObject
    const signature = sign(null, toEntropyMessage({ value, timestampMs, sequence }), key).toString('hex')
    return {
      source: 'simulated-satellite',
      value: value.toString('hex'),
      timestamp: new Date(timestampMs).toISOString(),
      sequence,
      publicKey: satellite.publicKey,
      signature: fault === 'wrong-signature' ? flipFirstBit(signature) : signature,
    }
  }

  function createSamples(count: number): Sample[] {
    if (fault !== 'replay') {
      replayed = Array.from({ length: count }, createSample)
      return fault === 'too-many' ? [...replayed, createSample()] : replayed
    }
    if (replayed.length === 0) replayed = [createSample()]
    return Array.from({ length: Math.min(count, replayed.length) }, (_, index) => replayed[index] as Sample)
  }

  function answer(request: IncomingMessage, response: ServerResponse) {
    requests += 1
    const count = parseCount(request)
    if (fault === 'down') return void request.socket.resetAndDestroy()
    if (fault === 'error') return send(response, 500, '{"error":"internal"}')
    if (count === 'no such path') return send(response, 404, '{"error":"not found"}')
    if (count === undefined) return send(response, 400, '{"error":"count must be 1 to 256"}')
    if (fault === 'garbage') return send(response, 200, randomBytes(512).toString('latin1'))
    const body = JSON.stringify({ samples: createSamples(count) })
    if (fault === 'truncated') return send(response, 200, body.slice(0, body.length / 2))
    if (fault !== 'slow') return send(response, 200, body)
    const answerNow = () => {
      clearTimeout(late.get(answerNow))
      late.delete(answerNow)
      send(response, 200, body)
    }
    late.set(answerNow, setTimeout(answerNow, delayMs))
  }

  const server = createServer(answer)
  const { url, stop } = await listen(server)
  return {
    url,
    /** 32 bytes, hex. */
    publicKey: own.publicKey,
    /** Sets the fault for further requests. Undefined ends it. `delayMs` applies to `slow`; delayed answers are sent immediately. */
    setFault(next?: SatelliteFault, options: { delayMs?: number } = {}) {
      fault = next
      delayMs = options.delayMs ?? 0
      for (const answerNow of [...late.keys()]) answerNow()
    },
    /** Number of requests, including failed ones. */
    get requests() {
      return requests
    },
    async stop() {
      for (const timer of late.values()) clearTimeout(timer)
      await stop()
    },
  }
}

function parseCount({ method, url = '' }: IncomingMessage): number | 'no such path' | undefined {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1')
  if (method !== 'GET' || pathname !== '/v1/samples') return 'no such path'
  const text = searchParams.get('count') ?? ''
  const count = Number(text)
  return /^[1-9]\d{0,2}$/.test(text) && count <= MAX_SAMPLES ? count : undefined
}

function send(response: ServerResponse, status: number, body: string) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

function flipFirstBit(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  bytes[0] = (bytes[0] ?? 0) ^ 0x80
  return bytes.toString('hex')
}

/** Wraps the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410 §7). */
function importKey(privateKey: string): KeyObject {
  const der = Buffer.from(`302e020100300506032b657004220420${privateKey}`, 'hex')
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
}
