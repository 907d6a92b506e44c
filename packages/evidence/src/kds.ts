import { X509Certificate } from 'node:crypto'
import type { SnpProduct, SnpTcb } from '@countersign/attestation/core'
import { toHex } from '@countersign/protocol/core'
import { type Fetch, getBounded, malformed, toVendorUrl } from './getBounded.ts'

export type KdsClientDeps = {
  /** Default: AMD's service. */
  url?: string
  fetch?: Fetch
  timeoutMs?: number
}

export type KdsClient = {
  /** The certificate (DER) of one chip's key at one TCB. */
  getVcek(parameters: { product: SnpProduct; chipId: Uint8Array; tcb: SnpTcb }): Promise<Uint8Array>
  /** The issuers of a VCEK or VLEK: ASK or ASVK, and ARK. */
  getChain(parameters: { product: SnpProduct; kind: 'VCEK' | 'VLEK' }): Promise<{ ask: Uint8Array; ark: Uint8Array }>
  /** The product's revocation list (DER), signed by its ARK. Not verified here. */
  getRevocations(parameters: { product: SnpProduct; kind: 'VCEK' | 'VLEK' }): Promise<Uint8Array>
}

const MAX_BYTES = 65_536

/** AMD's Key Distribution Service ("VCEK Certificate and KDS Interface Specification", 57230). It allows few requests. */
export function createKdsClient(deps: KdsClientDeps = {}): KdsClient {
  const { url = 'https://kdsintf.amd.com', fetch = globalThis.fetch, timeoutMs = 10_000 } = deps
  const base = toVendorUrl(url)
  const get = (path: string, name: string) =>
    getBounded({ fetch, timeoutMs }, { url: base + path, name, maxBytes: MAX_BYTES })

  return {
    async getVcek({ product, chipId, tcb }) {
      // From Turin on, a chip ID has 8 bytes, and the firmware version one more part.
      const hwId = toHex(product === 'Turin' ? chipId.subarray(0, 8) : chipId)
      const fmc = product === 'Turin' ? `fmcSPL=${tcb.fmc}&` : ''
      const levels = `${fmc}blSPL=${tcb.bl}&teeSPL=${tcb.tee}&snpSPL=${tcb.snp}&ucodeSPL=${tcb.ucode}`
      const { body } = await get(`/vcek/v1/${product}/${hwId}?${levels}`, 'vcek')
      return toDer(body, 'vcek')
    },

    async getChain({ product, kind }) {
      const { body } = await get(`/${kind.toLowerCase()}/v1/${product}/cert_chain`, 'cert_chain')
      const [ask, ark, ...rest] = readPemBundle(Buffer.from(body).toString('latin1'))
      if (ask === undefined || ark === undefined || rest.length > 0)
        throw malformed('cert_chain', 'not two certificates')
      return { ask: toDer(ask, 'ask'), ark: toDer(ark, 'ark') }
    },

    async getRevocations({ product, kind }) {
      const { body } = await get(`/${kind.toLowerCase()}/v1/${product}/crl`, 'crl')
      return body
    },
  }
}

/** The certificates of a PEM text as DER, with any line lengths. Only the DER is used, and verified later. */
export function readPemBundle(text: string): Uint8Array[] {
  const blocks = text.matchAll(/-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g)
  return [...blocks].map(([, base64 = '']) => new Uint8Array(Buffer.from(base64, 'base64')))
}

function toDer(der: Uint8Array, name: string): Uint8Array {
  try {
    return new Uint8Array(new X509Certificate(der).raw)
  } catch (cause) {
    throw malformed(name, 'not a certificate', cause)
  }
}
