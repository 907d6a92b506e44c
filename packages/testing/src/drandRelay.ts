import { createServer } from 'node:http'
import type { SimulatedBeacon } from '@countersign/attestation/simulator'
import { listen } from './listen.ts'

export type DrandRelay = Awaited<ReturnType<typeof startDrandRelay>>

/**
 * A relay of a simulated drand network on loopback, `GET /CHAINHASH/public/latest`. Its rounds are really signed.
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
    /** The beacon as `ENTROPY_DRAND` names it. */
    setting: [beacon.chainHash, beacon.key, beacon.genesisS, beacon.periodS].join(':'),
    /** From the next request on: this as JSON, or 503 for `down`. Without an answer it relays again. */
    setAnswer(next?: unknown) {
      answer = next
    },
    /** Requests so far, whatever the answer was. */
    get requests() {
      return requests
    },
    stop,
  }
}
