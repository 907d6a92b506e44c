import { QuoteError } from '../errors.ts'
import { assertTag, type Der, DerError, parseChildren, parseDer, tags, toNumber, toTime } from './der.ts'
import {
  type SignatureAlgorithm,
  toExtensions,
  toSerial,
  toSignature,
  toSignatureAlgorithm,
} from './parseCertificate.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** A complete and direct X.509 v2 certificate revocation list (RFC 5280 §5.1; evidence.md, section 3.5). */
export type Crl = {
  tbs: Bytes
  issuer: Bytes
  thisUpdate: number
  /** RFC 5280 §5.1.2.5 requires it, but the syntax does not. A list without it would never expire. */
  nextUpdate: number | undefined
  /** Serial numbers, in the format of `Certificate.serial`. */
  revoked: ReadonlySet<string>
  signatureAlgorithm: SignatureAlgorithm
  signature: Bytes
}

const MAX_CRL_BYTES = 4_194_304

export function parseCrl(der: Bytes): Crl {
  if (der.length > MAX_CRL_BYTES) throw new QuoteError('crl_malformed', 'revocation list too large')
  try {
    return readCrl(der)
  } catch (cause) {
    if (!(cause instanceof DerError)) throw cause
    throw new QuoteError('crl_malformed', 'malformed revocation list', { details: cause.message, cause })
  }
}

function readCrl(der: Bytes): Crl {
  const [tbs, outerAlgorithm, signature, ...rest] = parseChildren(parseDer(der, tags.sequence))
  if (rest.length > 0) throw new DerError('unexpected element after the signature')
  const [version, algorithm, issuer, thisUpdate, ...optional] = parseChildren(assertTag(tbs, tags.sequence))
  if (toNumber(version, 1) !== 1) throw new DerError('not a version 2 list')
  const nextUpdate = isTime(optional[0]) ? optional.shift() : undefined
  const entries = optional[0]?.tag === tags.sequence ? optional.shift() : undefined
  const extensions = toExtensions(optional.shift(), tags.context(0))
  if (optional.length > 0) throw new DerError('unexpected element after the extensions')
  // A critical extension changes what the list covers (a delta, or one distribution point): RFC 5280 §5.2.
  for (const [oid, { critical }] of extensions) if (critical) throw new DerError(`critical extension ${oid}`)
  const revoked = new Set<string>()
  for (const entry of entries === undefined ? [] : parseChildren(entries)) {
    const [serial, date, entryExtensions, ...more] = parseChildren(assertTag(entry, tags.sequence))
    if (more.length > 0) throw new DerError('malformed entry')
    if (entryExtensions !== undefined) assertTag(entryExtensions, tags.sequence)
    toTime(date)
    revoked.add(toSerial(serial))
  }
  const signatureAlgorithm = toSignatureAlgorithm(algorithm, outerAlgorithm)
  return {
    tbs: assertTag(tbs, tags.sequence).raw,
    issuer: assertTag(issuer, tags.sequence).raw,
    thisUpdate: toTime(thisUpdate),
    nextUpdate: nextUpdate === undefined ? undefined : toTime(nextUpdate),
    revoked,
    signatureAlgorithm,
    signature: toSignature(signatureAlgorithm, signature),
  }
}

function isTime(element: Der | undefined): boolean {
  return element?.tag === tags.utcTime || element?.tag === tags.generalizedTime
}
