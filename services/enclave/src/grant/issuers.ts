import { type EnclaveIssuer, isSafeUrl } from '@countersign/protocol/core'

/** An issuer of accepted ID tokens, the client they must be for, and the source of its signing keys. */
export type Issuer = EnclaveIssuer

export type ParseIssuersReturnType = {
  /** In ascending order of issuer and audience, as the configuration hash requires. */
  issuers: Issuer[]
  /** Names an entry by number and never by its text, because an operator may have pasted a password into it. */
  faults: string[]
}

/** Google signs as one host and publishes its keys on another. */
const KNOWN_JWKS_ORIGINS: ReadonlyMap<string, string> = new Map([
  ['https://accounts.google.com', 'https://www.googleapis.com'],
])

/**
 * Reads `OIDC_ISSUERS`: `issuer=audience` or `issuer=audience=jwksOrigin`, separated by commas. Keeps the issuer exactly as written, because
 * `iss` is compared exactly (OpenID Connect Core §3.1.3.7).
 *
 * @example
 * const { issuers, faults } = parseIssuers('https://accounts.google.com=1234.apps.googleusercontent.com')
 */
export function parseIssuers(text: string): ParseIssuersReturnType {
  const issuers: Issuer[] = []
  const faults: string[] = []
  if (text.trim() === '') return { issuers, faults: ['expected at least one issuer'] }

  for (const [index, entry] of text.split(',').entries()) {
    const fail = (fault: string) => void faults.push(`entry ${index + 1}: ${fault}`)
    const [issuer, audience, jwksOrigin, ...rest] = entry.trim().split('=')
    if (issuer === undefined || audience === undefined || rest.length > 0) {
      fail('expected issuer=audience or issuer=audience=jwksOrigin')
      continue
    }
    const issuerFault = findIssuerFault(issuer)
    if (issuerFault) fail(`the issuer ${issuerFault}`)
    const audienceFault = isVisible(audience) ? undefined : 'is empty or contains spaces'
    if (audienceFault) fail(`the audience ${audienceFault}`)
    const originFault = jwksOrigin === undefined ? undefined : findOriginFault(jwksOrigin, issuer)
    if (originFault) fail(`the JWKS origin ${originFault}`)
    if (issuerFault || audienceFault || originFault) continue

    const parsed: Issuer = { issuer, audience, jwksOrigin: jwksOrigin ?? defaultJwksOrigin(issuer) }
    const earlier = issuers.filter((other) => other.issuer === issuer)
    if (earlier.some((other) => other.audience === audience)) fail('duplicate issuer and audience')
    // An issuer has one set of keys. With two origins, the result would depend on the order of entries.
    else if (earlier.some((other) => other.jwksOrigin !== parsed.jwksOrigin)) {
      fail('expected the JWKS origin of the earlier entry with this issuer')
    } else issuers.push(parsed)
  }
  issuers.sort((left, right) => compare(left.issuer, right.issuer) || compare(left.audience, right.audience))
  return { issuers, faults }
}

function defaultJwksOrigin(issuer: string): string {
  return KNOWN_JWKS_ORIGINS.get(issuer) ?? new URL(issuer).origin
}

/** OpenID Connect Core §2, `iss`: an https URL without query or fragment. */
function findIssuerFault(issuer: string): string | undefined {
  // `URL` drops tabs and line ends and reads `\` as `/`, but the comparison with `iss` doesn't.
  if (!isVisible(issuer) || issuer.includes('\\')) return 'is not a URL'
  if (issuer.includes('?') || issuer.includes('#')) return 'has a query or a fragment'
  return findUrlFault(issuer)
}

function findOriginFault(origin: string, issuer: string): string | undefined {
  const fault = findUrlFault(origin)
  if (fault) return fault
  // An attacker who can change the keys in transit can act as the issuer.
  if (issuer.startsWith('https:') && origin.startsWith('http:')) return 'is plain http for an https issuer'
  return new URL(origin).origin === origin ? undefined : 'is not exactly a scheme, a host and a port'
}

function findUrlFault(text: string): string | undefined {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return 'is not an http(s) URL'
  const url = new URL(text)
  // The parsed URL doesn't show an empty name before the `@`.
  if (url.username !== '' || url.password !== '' || text.includes('@')) return 'has credentials'
  if (!isSafeUrl(url)) return 'is plain http on a host other than loopback'
  return undefined
}

function isVisible(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

/** By UTF-16 code units, like the configuration hash. */
function compare(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}
