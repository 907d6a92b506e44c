import { X509Certificate } from 'node:crypto'
import {
  assertCollateral,
  type Collateral,
  parsePckPlatform,
  parsePem,
  parseQuote,
  QuoteError,
} from '@countersign/attestation/core'
import { parseJson, toHex } from '@countersign/protocol/core'
import { type Fetch, getBounded, malformed, toVendorUrl } from './getBounded.ts'

export type PcsClientDeps = {
  /** Intel's PCS, `https://api.trustedservices.intel.com`, or a PCCS. */
  url: string
  fetch?: Fetch
  /** The time limit of each of the four requests. */
  timeoutMs?: number
}

export type PcsClient = { fetchCollateral(platform: Platform): Promise<Collateral> }

const INTEL_PCS_HOST = 'api.trustedservices.intel.com'
const INTEL_ROOT_CRL = 'https://certificates.trustedservices.intel.com/IntelSGXRootCA.der'
const MAX_BYTES = 2_097_152

/** Intel's Provisioning Certification Service, API version 4, or a PCCS in its place. It fetches and parses. The caller verifies. */
export function createPcsClient({ url, fetch = globalThis.fetch, timeoutMs = 10_000 }: PcsClientDeps): PcsClient {
  const base = toVendorUrl(url)
  const isIntel = new URL(base).hostname === INTEL_PCS_HOST
  const rootCrl = isIntel ? INTEL_ROOT_CRL : `${base}/sgx/certification/v4/rootcacrl`
  const get = (address: string, name: string) =>
    getBounded({ fetch, timeoutMs }, { url: address, name, maxBytes: MAX_BYTES })

  return {
    async fetchCollateral({ fmspc, ca }) {
      const [tcb, qe, pckCrl, rootCrlAnswer] = await Promise.all([
        get(`${base}/tdx/certification/v4/tcb?fmspc=${fmspc.toUpperCase()}`, 'tcb'),
        get(`${base}/tdx/certification/v4/qe/identity`, 'qe identity'),
        get(`${base}/sgx/certification/v4/pckcrl?ca=${ca}&encoding=der`, 'pck crl'),
        get(rootCrl, 'root crl'),
      ])
      const tcbInfo = readSigned(tcb.body, 'tcbInfo')
      const qeIdentity = readSigned(qe.body, 'enclaveIdentity')
      const collateral: Collateral = {
        pck_crl_issuer_chain: readChain(pckCrl.headers, ['SGX-PCK-CRL-Issuer-Chain']),
        root_ca_crl: readCrl(rootCrlAnswer.body, 'root crl'),
        pck_crl: readCrl(pckCrl.body, 'pck crl'),
        // The first name is from version 4. A PCCS may still use the older one.
        tcb_info_issuer_chain: readChain(tcb.headers, ['TCB-Info-Issuer-Chain', 'SGX-TCB-Info-Issuer-Chain']),
        tcb_info: tcbInfo.text,
        tcb_info_signature: tcbInfo.signature,
        qe_identity_issuer_chain: readChain(qe.headers, ['SGX-Enclave-Identity-Issuer-Chain']),
        qe_identity: qeIdentity.text,
        qe_identity_signature: qeIdentity.signature,
      }
      assertCollateral(collateral)
      return collateral
    },
  }
}

/** `{ "<name>": { … }, "signature": "…" }`: the member's original text, because Intel signed its bytes. */
function readSigned(body: Uint8Array, name: 'tcbInfo' | 'enclaveIdentity'): { text: string; signature: string } {
  const members = cutMembers(body, name)
  const text = members.get(name)
  const signature = members.get('signature')
  if (!text?.startsWith('{') || signature === undefined || !/^"[0-9a-fA-F]{128}"$/.test(signature)) {
    throw malformed(name, 'no signed document')
  }
  return { text, signature: signature.slice(1, -1).toLowerCase() }
}

/** The members of a JSON object, each as its original text. */
export function cutMembers(body: Uint8Array, name: string): Map<string, string> {
  try {
    parseJson(body)
  } catch (cause) {
    throw malformed(name, 'not JSON', cause)
  }
  // The text is valid JSON in UTF-8, so it is enough to find the end of each value.
  const text = new TextDecoder().decode(body)
  const members = new Map<string, string>()
  let offset = skipSpace(text, 0)
  if (text[offset] !== '{') throw malformed(name, 'not an object')
  offset = skipSpace(text, offset + 1)
  while (text[offset] !== '}') {
    if (text[offset] === ',') offset = skipSpace(text, offset + 1)
    const keyEnd = skipValue(text, offset)
    const key = JSON.parse(text.slice(offset, keyEnd)) as string
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = skipValue(text, start)
    // With a duplicate name, one could be signed and the other read.
    if (members.has(key)) throw malformed(name, 'duplicate member')
    members.set(key, text.slice(start, end))
    offset = skipSpace(text, end)
  }
  return members
}

function skipSpace(text: string, offset: number): number {
  let end = offset
  while (/[ \t\r\n]/.test(text[end] ?? '')) end += 1
  return end
}

/** The end of the JSON value at `start`. */
function skipValue(text: string, start: number): number {
  const token = /\s*("(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+)/gy
  token.lastIndex = start
  let depth = 0
  for (;;) {
    const found = token.exec(text)?.[1]
    if (found === undefined) throw malformed('json', 'unexpected end')
    if (found === '{' || found === '[') depth += 1
    if (found === '}' || found === ']') depth -= 1
    if (depth === 0) return token.lastIndex
  }
}

/** Issuer chains are in headers, as URL-encoded PEM. */
function readChain(headers: Headers, names: readonly string[]): string {
  const value = names.map((name) => headers.get(name)).find((header) => header !== null && header !== '')
  if (value === undefined || value === null) throw malformed(names[0] ?? '', 'header missing')
  try {
    return decodeURIComponent(value).replaceAll('\r\n', '\n')
  } catch (cause) {
    throw malformed(names[0] ?? '', 'header not URL-encoded', cause)
  }
}

/** Converts raw DER, hex (as from a PCCS) or PEM to hex. */
function readCrl(body: Uint8Array, name: string): string {
  if (body[0] === 0x30) return toHex(body)
  const text = Buffer.from(body).toString('latin1').trim()
  if (/^(?:[0-9a-fA-F]{2})+$/.test(text)) return text.toLowerCase()
  const [, base64] = /^-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]+)-----END X509 CRL-----$/.exec(text) ?? []
  if (base64 === undefined) throw malformed(name, 'not a revocation list')
  return Buffer.from(base64, 'base64').toString('hex')
}

/** Selects the collateral for a quote: Intel has one for each kind of processor, and revocations for each certificate authority. */
export type Platform = { fmspc: string; ca: 'platform' | 'processor' }

/**
 * The platform that a quote claims. Not verified: a quote that names another platform fails against that platform's collateral. Throws
 * `QuoteError` if there is none.
 */
export function readPlatform(quote: Uint8Array): Platform {
  return parsePlatform(parseQuote(new Uint8Array(quote)).pckChain)
}

/** `readPlatform` with a cache, because all quotes of one enclave have the same certificate chain. */
export function createPlatformReader(): typeof readPlatform {
  let latest: { pckChain: string; platform: Platform } | undefined
  return (quote) => {
    const { pckChain } = parseQuote(new Uint8Array(quote))
    if (latest?.pckChain !== pckChain) latest = { pckChain, platform: parsePlatform(pckChain) }
    return latest.platform
  }
}

function parsePlatform(pckChain: string): Platform {
  const { fmspc } = parsePckPlatform(pckChain)
  const [pck = new Uint8Array()] = parsePem(pckChain)
  const [, ca] = /^CN=Intel SGX PCK (Platform|Processor) CA$/m.exec(new X509Certificate(pck).issuer) ?? []
  if (ca === undefined) throw new QuoteError('certificate_chain_invalid', 'not a PCK certificate')
  return { fmspc, ca: ca === 'Platform' ? 'platform' : 'processor' }
}
