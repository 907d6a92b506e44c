import { createServer, type ServerResponse } from 'node:http'
import type { Collateral } from '@countersign/attestation'
import type { Simulator } from '@countersign/attestation/simulator'
import { listen } from './listen.ts'

/** Faults of Intel's service or of the connection to it. */
export type FakePcsFault =
  /** Resets connections. */
  | 'down'
  /** Never answers. */
  | 'slow'
  | 'not_found'
  | 'server_error'
  /** Expired two months ago. */
  | 'stale'
  | 'wrong_signature'
  | 'truncated'
  | 'missing_header'
  | 'garbage'

export type FakePcsDocument = 'tcb' | 'qe' | 'pckCrl' | 'rootCrl'

export type FakePcs = Awaited<ReturnType<typeof startFakePcs>>

const TWO_MONTHS_MS = 5_184_000_000

/** Starts Intel's PCS version 4 and the root list of a PCCS on loopback, with collateral for simulated hardware. */
export async function startFakePcs(deps: { simulator: Pick<Simulator, 'collateral'>; now?: () => number }) {
  const { simulator, now = Date.now } = deps
  const requests: string[] = []
  let fault: FakePcsFault | undefined
  let faultyDocument: FakePcsDocument | undefined

  // Caches collateral, since signing is slow and clients request four documents at once.
  const made = new Map<string, Collateral>()
  function collateralFor(current: FakePcsFault | undefined): Collateral {
    const kind = current === 'stale' || current === 'wrong_signature' ? current : 'good'
    const key = `${kind} ${Math.floor(now() / 1000)}`
    const known = made.get(key)
    if (known !== undefined) return known
    const collateral = issue(kind)
    if (made.size > 8) made.clear()
    made.set(key, collateral)
    return collateral
  }

  function issue(current: 'good' | 'stale' | 'wrong_signature'): Collateral {
    const at = new Date(now() - (current === 'stale' ? TWO_MONTHS_MS : 0))
    const isWrong = current === 'wrong_signature'
    return simulator.collateral({
      at,
      faults: {
        tcbInfoWrongSigner: isWrong,
        qeIdentityWrongSigner: isWrong,
        pckCrlWrongSigner: isWrong,
        rootCrlWrongSigner: isWrong,
      },
    })
  }

  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    requests.push(path)
    const document = toDocument(path)
    const current = faultyDocument === undefined || faultyDocument === document ? fault : undefined
    if (current === 'down') return void response.destroy()
    if (current === 'slow') return
    if (document === undefined || current === 'not_found') return void response.writeHead(404).end()
    if (current === 'server_error') return void response.writeHead(500).end('{"message":"no"}')
    if (current === 'garbage') return void response.writeHead(200).end('<html>hello</html>')
    answer(response, { ...toAnswer(document, collateralFor(current)), fault: current })
  })
  const { url, stop } = await listen(server)
  return {
    url,
    /** Requested paths with queries, in order. */
    requests,
    /** Sets a fault for one document or for all. Undefined ends it. */
    setFault(next: FakePcsFault | undefined, document?: FakePcsDocument) {
      fault = next
      faultyDocument = document
    },
    close: stop,
  }
}

function toDocument(path: string): FakePcsDocument | undefined {
  if (/^\/tdx\/certification\/v4\/tcb\?fmspc=[0-9A-F]{12}$/.test(path)) return 'tcb'
  if (path === '/tdx/certification/v4/qe/identity') return 'qe'
  if (/^\/sgx\/certification\/v4\/pckcrl\?ca=(?:platform|processor)&encoding=der$/.test(path)) return 'pckCrl'
  if (path === '/sgx/certification/v4/rootcacrl' || path === '/IntelSGXRootCA.der') return 'rootCrl'
  return undefined
}

type Answer = { body: string | Buffer; headers: Record<string, string> }

/** Wraps documents like Intel's service: the signed text unchanged, chains in headers, lists as DER. */
function toAnswer(document: FakePcsDocument, collateral: Collateral): Answer {
  if (document === 'tcb') {
    const body = `{"tcbInfo":${collateral.tcb_info},"signature":"${collateral.tcb_info_signature}"}`
    return { body, headers: { 'TCB-Info-Issuer-Chain': encodeURIComponent(collateral.tcb_info_issuer_chain) } }
  }
  if (document === 'qe') {
    const body = `{"enclaveIdentity":${collateral.qe_identity},"signature":"${collateral.qe_identity_signature}"}`
    const chain = encodeURIComponent(collateral.qe_identity_issuer_chain)
    return { body, headers: { 'SGX-Enclave-Identity-Issuer-Chain': chain } }
  }
  if (document === 'pckCrl') {
    const chain = encodeURIComponent(collateral.pck_crl_issuer_chain)
    return { body: Buffer.from(collateral.pck_crl, 'hex'), headers: { 'SGX-PCK-CRL-Issuer-Chain': chain } }
  }
  // A PCCS returns hex.
  return { body: collateral.root_ca_crl, headers: {} }
}

function answer(response: ServerResponse, { body, headers, fault }: Answer & { fault: FakePcsFault | undefined }) {
  response.writeHead(200, fault === 'missing_header' ? {} : headers)
  response.end(fault === 'truncated' ? body.slice(0, body.length / 2) : body)
}
