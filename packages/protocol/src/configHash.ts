import { sha256 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { hasExactMembers } from './plainObject.ts'

/** An accepted issuer of ID tokens, the client they are for, and the origin of the issuer's keys. */
export type EnclaveIssuer = { issuer: string; audience: string; jwksOrigin: string }

/** The part of the enclave's configuration that decides for whom it signs. A receipt carries it, so that anyone can read it. */
export type EnclaveConfig = {
  /** Unique pairs of issuer and audience in ascending order, so that one set of issuers has one hash. */
  issuers: readonly EnclaveIssuer[]
  /** The certificate authorities that the enclave trusts when it fetches keys. */
  caSet: string
  /** The kind of root-secret provider, with the hash of its policy if it has one. Never the secret. */
  rootSecret: string
  quoteSource: string
  callerPolicy: string
  version: string
}

const MEMBERS = ['issuers', 'caSet', 'rootSecret', 'quoteSource', 'callerPolicy', 'version'] as const
const ISSUER_MEMBERS = ['issuer', 'audience', 'jwksOrigin'] as const

/** Narrows to a configuration with exactly these members and no empty strings. */
export function assertEnclaveConfig(value: unknown): asserts value is EnclaveConfig {
  if (!hasExactMembers(value, MEMBERS)) throw malformed('not exactly the expected members')
  const { issuers, ...texts } = value
  for (const [name, text] of Object.entries(texts)) assertFilled(name, text)
  if (!Array.isArray(issuers) || issuers.length === 0) throw malformed('issuers is not a list or empty')
  for (const [index, issuer] of issuers.entries()) {
    if (!hasExactMembers(issuer, ISSUER_MEMBERS)) throw malformed(`issuers[${index}]: not exactly the expected members`)
    for (const name of ISSUER_MEMBERS) assertFilled(`issuers[${index}].${name}`, issuer[name])
    if (index > 0 && !isBefore(issuers[index - 1], issuer as EnclaveIssuer)) {
      throw malformed(`issuers[${index}] is not in ascending order`)
    }
  }
}

/** SHA-256 of the canonical JSON of a configuration. */
export function hashEnclaveConfig(config: EnclaveConfig): Uint8Array<ArrayBuffer> {
  assertEnclaveConfig(config)
  return sha256(toCanonicalJson(config))
}

/** By UTF-16 code units, as RFC 8785 orders the members of objects. */
function isBefore(left: EnclaveIssuer, right: EnclaveIssuer): boolean {
  return left.issuer === right.issuer ? left.audience < right.audience : left.issuer < right.issuer
}

function assertFilled(name: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') throw malformed(`${name} is not a string or empty`)
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('enclave_config_malformed', 'malformed enclave configuration', { details })
}
