import { createServer } from 'node:http'
import type { SimulatedCertificates, Simulator } from '@countersign/attestation/simulator'
import { listen } from './listen.ts'

/** Faults of AMD's service or of the connection to it. */
export type FakeKdsFault =
  /** Resets connections. */
  | 'down'
  /** Never answers. */
  | 'slow'
  | 'not_found'
  /** AMD's service has a low rate limit. */
  | 'too_many'
  | 'server_error'
  /** Certificates of another chip. */
  | 'wrong_chip'
  /** Certificates with a root that isn't pinned. */
  | 'wrong_signature'
  | 'expired'
  | 'truncated'
  | 'garbage'

export type FakeKds = Awaited<ReturnType<typeof startFakeKds>>

type KdsSimulator = Pick<Simulator, 'certificates' | 'revocations'>

const STATUS: Partial<Record<FakeKdsFault, number>> = { not_found: 404, too_many: 429, server_error: 500 }

/** Starts AMD's Key Distribution Service on loopback, with certificates and a revocation list for simulated Milan chips. */
export async function startFakeKds({ simulator }: { simulator: KdsSimulator }) {
  const requests: string[] = []
  let fault: FakeKdsFault | undefined

  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    requests.push(path)
    if (fault === 'down') return void response.destroy()
    if (fault === 'slow') return
    const status = fault === undefined ? undefined : STATUS[fault]
    if (status !== undefined) return void response.writeHead(status).end()
    if (fault === 'garbage') return void response.writeHead(200).end('<html>hello</html>')
    const body = toBody(simulator, path, fault)
    if (body === undefined) return void response.writeHead(404).end()
    response.writeHead(200).end(fault === 'truncated' ? body.subarray(0, body.length / 2) : body)
  })
  const { url, stop } = await listen(server)
  return {
    url,
    /** Requested paths with queries, in order. */
    requests,
    setFault(next: FakeKdsFault | undefined) {
      fault = next
    },
    close: stop,
  }
}

function toBody(simulator: KdsSimulator, path: string, fault: FakeKdsFault | undefined) {
  const faults = {
    otherChip: fault === 'wrong_chip',
    foreignArk: fault === 'wrong_signature',
    ekExpired: fault === 'expired',
  }
  const [, kind] = /^\/(vcek|vlek)\/v1\/Milan\/cert_chain$/.exec(path) ?? []
  if (kind !== undefined) return toBundle(simulator.certificates({ signingKey: kind as 'vcek' | 'vlek', faults }))
  if (/^\/(vcek|vlek)\/v1\/Milan\/crl$/.test(path)) {
    const isExpired = fault === 'expired'
    const isForeign = fault === 'wrong_signature'
    return Buffer.from(simulator.revocations({ faults: { expired: isExpired, wrongSigner: isForeign } }))
  }
  const [, hwId, bl, tee, snp, ucode] =
    /^\/vcek\/v1\/Milan\/([0-9a-f]{128})\?blSPL=(\d+)&teeSPL=(\d+)&snpSPL=(\d+)&ucodeSPL=(\d+)$/.exec(path) ?? []
  if (hwId === undefined) return undefined
  const tcb = { bootLoader: Number(bl), tee: Number(tee), snp: Number(snp), microcode: Number(ucode) }
  return Buffer.from(simulator.certificates({ tcb, chipId: Buffer.from(hwId, 'hex'), faults }).ek)
}

/** ASK before ARK, as AMD's service returns them. */
function toBundle({ ask, ark }: SimulatedCertificates): Buffer {
  const pem = [ask, ark].map((der) => {
    const lines =
      Buffer.from(der)
        .toString('base64')
        .match(/.{1,64}/g) ?? []
    return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
  })
  return Buffer.from(pem.join(''))
}
