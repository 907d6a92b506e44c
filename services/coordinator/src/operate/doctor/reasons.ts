import { ServiceError } from '@countersign/protocol'
import { readCode } from '@countersign/service'

/** The code of the network, of TLS or of a library, wherever in the causes it is. Texts of others are not repeated: they quote URLs. */
export function findCode(error: unknown): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    if (cause.name === 'TimeoutError' || cause.name === 'AbortError') return 'ETIMEDOUT'
    const code = readCode(cause)
    if (code !== undefined && /^[A-Za-z0-9_]{1,64}$/.test(code)) return code
    const [inner] = cause instanceof AggregateError ? cause.errors : []
    if (inner !== undefined) return findCode(inner)
  }
  return undefined
}

/** In our own words, or by its code alone. */
export function describeError(error: unknown): string {
  if (error instanceof ServiceError)
    return error.details === undefined ? error.code : `${error.code} (${error.details})`
  const code = findCode(error)
  return explain(code)?.text ?? code ?? (error instanceof Error ? error.name : typeof error)
}

type Explanation = { text: string; mend: string }

const refused = {
  text: 'nothing listens there (ECONNREFUSED)',
  mend: 'Start it, or correct the address',
}
const unknownName = { text: 'its name is not known', mend: 'Correct the host name, or the DNS of this machine' }
const noWay = { text: 'no answer from there', mend: 'Check address, network and firewall' }
const untrusted = {
  text: 'its certificate is not of an authority that is trusted here',
  mend: 'Use a certificate of a known authority, with its whole chain',
}
const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  ECONNREFUSED: refused,
  ENOENT: { text: 'there is no such socket or file', mend: 'Start it, or correct the path' },
  ENOTFOUND: unknownName,
  EAI_AGAIN: unknownName,
  ETIMEDOUT: noWay,
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  UND_ERR_CONNECT_TIMEOUT: noWay,
  ECONNRESET: {
    text: 'the connection was cut',
    mend: 'See what is between, and whether the other side speaks this protocol',
  },
  UND_ERR_SOCKET: {
    text: 'the connection was cut',
    mend: 'See what is between, and whether the other side speaks this protocol',
  },
  CERT_HAS_EXPIRED: { text: 'its certificate has expired', mend: 'Renew the certificate' },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    text: 'its certificate is for another name',
    mend: 'Use the name of the certificate, or a certificate for this name',
  },
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  EPROTO: { text: 'it does not speak TLS', mend: 'Use http for it, or have it speak https' },
}

/** What a code of the network means, and what to do about it. */
export function explain(code: string | undefined): Explanation | undefined {
  return code !== undefined && Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined
}

/** A URL as it may be shown: an RPC's path can be its key, and a database's has its password. */
export function toShownUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'an address that cannot be read'
  return url.host === '' ? url.protocol.slice(0, -1) : `${url.protocol}//${url.host}`
}
