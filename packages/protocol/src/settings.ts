import { sha256 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import type { EnclaveConfig } from './configHash.ts'
import { type DrandBeacon, isDrandKey } from './drand.ts'
import { isEd25519Key } from './ed25519.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { isMajority, isNatural } from './fields.ts'
import { fromHex, type Hex, isHex, isLowerPrefixedHex, toHex } from './hex.ts'
import { hasExactMembers } from './plainObject.ts'

/** A source of entropy: one that signs its samples with this Ed25519 key, a public beacon, or a source that doesn't sign. */
export type EntropySetting =
  | { kind: 'satellite'; key: string }
  | ({ kind: 'drand' } & DrandBeacon)
  | { kind: 'unsigned' }

/** The logs of signatures, and how many of the witnesses must cosign before a signature is released. */
export type LogSetting = {
  /** Of all enclaves of the service, unique and in ascending order. */
  origins: readonly string[]
  /** Ed25519 keys, 32 bytes of hex, unique and in ascending order. */
  witnesses: readonly string[]
  /** A majority of the witnesses. */
  quorum: number
}

/** Settings that quotes cover too: the version in the configuration ends in their hash. */
export type EnclaveSettings = {
  /** Unique, in ascending order of their canonical JSON, so that one set of sources has one hash. */
  entropy: readonly EntropySetting[]
  /** Null: no log. */
  log: LogSetting | null
  /** The code that a wallet may delegate to by EIP-7702: addresses in lower case, unique and in ascending order. */
  implementations: readonly Hex[]
  /** Whether sessions without a client key can be opened. */
  sessions: 'any' | 'bound'
}

/** Creates settings with sorted lists. */
export function createEnclaveSettings(
  entropy: readonly EntropySetting[],
  implementations: readonly Hex[] = [],
  log: LogSetting | null = null,
  sessions: EnclaveSettings['sessions'] = 'any',
): EnclaveSettings {
  const sorted = entropy.toSorted((left, right) => (toText(left) < toText(right) ? -1 : 1))
  return {
    entropy: sorted,
    log: log && { ...log, origins: log.origins.toSorted(), witnesses: log.witnesses.toSorted() },
    implementations: implementations.toSorted(),
    sessions,
  }
}

/** Narrows to settings with exactly these members. */
export function assertEnclaveSettings(value: unknown): asserts value is EnclaveSettings {
  if (!hasExactMembers(value, ['entropy', 'log', 'implementations', 'sessions']))
    throw malformed('not exactly the expected members')
  const { entropy, log, implementations, sessions } = value
  if (sessions !== 'any' && sessions !== 'bound') throw malformed('sessions')
  if (log !== null) assertLogSetting(log)
  if (!Array.isArray(implementations)) throw malformed('implementations is not a list')
  for (const [index, address] of implementations.entries()) {
    if (!isLowerPrefixedHex(address, 20)) throw malformed(`implementations[${index}] is not an address in lower case`)
    if (index > 0 && implementations[index - 1] >= address) {
      throw malformed(`implementations[${index}] is not in ascending order`)
    }
  }
  if (!Array.isArray(entropy) || entropy.length === 0) throw malformed('entropy is not a list or empty')
  for (const [index, source] of entropy.entries()) {
    if (!isEntropySetting(source)) throw malformed(`entropy[${index}] is unknown`)
    if (index > 0 && toText(entropy[index - 1]) >= toText(source)) {
      throw malformed(`entropy[${index}] is not in ascending order`)
    }
  }
}

/** `<semver>+<hex SHA-256 of the settings' canonical JSON>`: the version in the configuration. */
export function toEnclaveVersion(version: string, settings: EnclaveSettings): string {
  assertEnclaveSettings(settings)
  return `${version}+${toHex(sha256(toCanonicalJson(settings)))}`
}

/** Throws unless the configuration's version has the hash of these settings. */
export function assertSettingsOf(config: Pick<EnclaveConfig, 'version'>, settings: EnclaveSettings): void {
  const [version = ''] = config.version.split('+')
  if (config.version !== toEnclaveVersion(version, settings)) throw malformed('hash differs from the configuration')
}

/** Whether a value is an entropy source with exactly the members of its kind and a valid key. */
export function isEntropySetting(value: unknown): value is EntropySetting {
  if (!isEntropyForm(value)) return false
  return value.kind === 'satellite' ? isEd25519Key(fromHex(value.key)) : value.kind !== 'drand' || isDrandKey(value.key)
}

/** Without the key check, which takes up to 20 milliseconds. */
export function isEntropyForm(value: unknown): value is EntropySetting {
  if (hasExactMembers(value, ['kind'])) return value.kind === 'unsigned'
  if (hasExactMembers(value, ['kind', 'key'])) return value.kind === 'satellite' && isHex(value.key, 32)
  if (!hasExactMembers(value, ['kind', 'key', 'chainHash', 'genesisS', 'periodS']) || value.kind !== 'drand')
    return false
  const { key, chainHash, genesisS, periodS } = value
  const isTimed = isNatural(genesisS) && isNatural(periodS) && periodS > 0
  return isTimed && isHex(chainHash, 32) && isHex(key, 96)
}

const MAX_ORIGINS = 16

/** The members of one log. */
export const MAX_WITNESSES = 32

function assertLogSetting(value: unknown): asserts value is LogSetting {
  if (!hasExactMembers(value, ['origins', 'witnesses', 'quorum']))
    throw malformed('log: not exactly the expected members')
  const { origins, witnesses, quorum } = value
  assertAscending('log.origins', origins, MAX_ORIGINS, isOrigin)
  assertAscending('log.witnesses', witnesses, MAX_WITNESSES, (key) => isHex(key, 32) && isEd25519Key(fromHex(key)))
  if (!isMajority(quorum, witnesses.length)) throw malformed('log.quorum is not a majority of the witnesses')
}

/** The origin of a log is also the name of its key: 1 to 255 bytes without spaces and plus signs (c2sp.org/signed-note). */
export function isOrigin(value: unknown): value is string {
  if (typeof value !== 'string' || !/^[^\s+\p{Cc}\p{Cs}]+$/u.test(value)) return false
  return new TextEncoder().encode(value).length <= 255
}

function assertAscending(
  name: string,
  value: unknown,
  most: number,
  isOne: (item: unknown) => boolean,
): asserts value is readonly string[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > most)
    throw malformed(`${name}: expected 1 to ${most} items`)
  for (const [index, item] of value.entries()) {
    if (!isOne(item)) throw malformed(`${name}[${index}] is not valid`)
    if (index > 0 && value[index - 1] >= item) throw malformed(`${name}[${index}] is not in ascending order`)
  }
}

function toText(value: unknown): string {
  return new TextDecoder().decode(toCanonicalJson(value))
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('enclave_config_malformed', 'malformed enclave settings', { details })
}
