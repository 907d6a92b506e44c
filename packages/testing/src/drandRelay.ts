import { createServer } from 'node:http'
import type { SimulatedBeacon } from '@countersign/attestation/simulator'
import { listen } from './listen.ts'

export type DrandRelay = Awaited<ReturnType<typeof startDrandRelay>>

/**
 * Starts a relay of a simulated drand network on loopback, `GET /CHAINHASH/public/latest`. Its signatures are real.
 *
 * @example
 * const relay = await startDrandRelay(createSimulatedBeacon())
 * const env = { ENTROPY_SOURCE: 'drand', ENTROPY_URL: relay.url, ENTROPY_DRAND: relay.setting, RECEIPTS: '2' }
 */
export async function startDrandRelay(
  { beacon, getRound }: SimulatedBeacon,
  { now = Date.now }: { now?: () => number } = {},
) {
  let requests = 0
  let answer: unknown
  const server = createServer((request, response) => {
    requests += 1
    if (request.url !== `/${beacon.chainHash}/public/latest`) return response.writeHead(404).end()
    if (answer === 'down') return response.writeHead(503).end()
    const { sequence: round, signatureHex: signature, valueHex: randomness } = getRound(new Date(now()))
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify(answer ?? { round, randomness, signature }))
  })
  const { url, stop } = await listen(server)
  return {
    url,
    /** The beacon in the form of `ENTROPY_DRAND`. */
    setting: [beacon.chainHash, beacon.key, beacon.genesisS, beacon.periodS].join(':'),
    /** Sets the answer to all further requests: a JSON value, or 503 for `down`. Undefined resumes relaying. */
    setAnswer(next?: unknown) {
      answer = next
    },
    /** Number of requests, including failed ones. */
    get requests() {
      return requests
    },
    stop,
  }
}
