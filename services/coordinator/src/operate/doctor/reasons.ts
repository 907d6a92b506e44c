import { ServiceError } from '@countersign/protocol'
import { readCode } from '@countersign/service'

/** Finds the error code of the network, TLS or a library in the chain of causes. Foreign messages aren't shown, because they quote URLs. */
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

/** Describes an error with our own text, or only its code. */
export function describeError(error: unknown): string {
  if (error instanceof ServiceError)
    return error.details === undefined ? error.code : `${error.code} (${error.details})`
  const code = findCode(error)
  return explain(code)?.text ?? code ?? (error instanceof Error ? error.name : typeof error)
}

type Explanation = { text: string; fix: string }

const refused = {
  text: 'connection refused (ECONNREFUSED)',
  fix: 'Start it, or correct the address',
}
const unknownName = { text: 'unknown host name', fix: 'Correct the host name or this machine’s DNS' }
const noWay = { text: 'no answer', fix: 'Check the address, the network and the firewall' }
const untrusted = {
  text: 'its certificate is not from a trusted authority',
  fix: 'Use a certificate from a trusted authority, with its full chain',
}
const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  ECONNREFUSED: refused,
  ENOENT: { text: 'no such socket or file', fix: 'Start it, or correct the path' },
  ENOTFOUND: unknownName,
  EAI_AGAIN: unknownName,
  ETIMEDOUT: noWay,
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  UND_ERR_CONNECT_TIMEOUT: noWay,
  ECONNRESET: {
    text: 'the connection was closed',
    fix: 'Check the proxies in between, and that the other side uses this protocol',
  },
  UND_ERR_SOCKET: {
    text: 'the connection was closed',
    fix: 'Check the proxies in between, and that the other side uses this protocol',
  },
  CERT_HAS_EXPIRED: { text: 'its certificate has expired', fix: 'Renew the certificate' },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    text: 'its certificate is for another name',
    fix: 'Use the name of the certificate, or a certificate for this name',
  },
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  EPROTO: { text: 'the server does not use TLS', fix: 'Use http, or turn on TLS at the server' },
}

/** Explains a network error code. */
export function explain(code: string | undefined): Explanation | undefined {
  return code !== undefined && Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined
}

/** Removes everything from a URL that can be secret: an RPC's path can be its key, and a database URL has a password. */
export function toShownUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'an invalid address'
  return url.host === '' ? url.protocol.slice(0, -1) : `${url.protocol}//${url.host}`
}
