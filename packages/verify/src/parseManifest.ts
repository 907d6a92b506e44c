import {
  codeRegisters,
  isTdPlatform,
  readSnpMeasurement,
  type SnpProduct,
  type SnpTcb,
  snpProducts,
  snpTcbParts,
  type TdMeasurement,
  type TdPlatform,
} from '@countersign/attestation'
import { assertWitnessPolicy, type WitnessPolicy } from '@countersign/log'
import { isSafeUrl, MAX_WITNESSES, parseStrictJson, ServiceError } from '@countersign/protocol'
import { DEFAULT_MAXIMUM_EVENT_DELAY_S, type LogContract } from '@countersign/receipt'
import { z } from 'zod'
import { VerifierError } from './errors.ts'

export const MAX_MANIFEST_BYTES = 1_048_576

export const MANIFEST_VERSION = 'countersign-manifest/1'

/** Trusted values from a release, an operator's `config.json`, or a reader. All hex is lower case. */
export type Manifest = {
  version: typeof MANIFEST_VERSION
  enclave: {
    measurements: readonly TdMeasurement[]
    configHashes: readonly string[]
    /** Runtime events by name, for measurements without RTMR3. */
    events?: Readonly<Record<string, readonly string[]>>
    /** Rejects collateral of an older evaluation by Intel. */
    minimumTcbEvaluationDataNumber?: number
    /** Accepted machines. Undefined accepts all. */
    platforms?: readonly TdPlatform[]
  }
  coordinator: {
    /** `MEASUREMENT:HOST_DATA`. Without HOST_DATA, the code is unknown. */
    measurements: readonly string[]
    configHashes: readonly string[]
    /** Minimum firmware versions by AMD product. Other products are rejected. Undefined skips the step. */
    minimumTcb?: MinimumTcb
    /** Accepted chip ids. A Milan must be listed. */
    chips?: readonly string[]
  }
  entropyKeys: readonly string[]
  /** Required witnesses of the log (Ed25519 keys) and their quorum, in addition to the enclave's settings. */
  log?: WitnessPolicy
  /** Addresses of witnesses, for a monitor's requests: https, or http on this machine. */
  witnessUrls?: readonly string[]
  /** At most one on each chain. */
  contracts: readonly ManifestContract[]
  /** `LogWitness` contracts, with the logs that count. At most one on each chain. */
  logContracts?: readonly ManifestLogContract[]
  /** Maximum seconds between signing and event. It can't exceed the default; only a reader can. */
  maximumEventDelayS?: number
}

export type MinimumTcb = Readonly<Partial<Record<SnpProduct, Readonly<Partial<SnpTcb>>>>>

export type ManifestContract = { chainId: number; address: string; fromBlock?: number }

/** `upTo`: the size at which the log ended. Later checkpoints don't count. */
export type ManifestLogContract = ManifestContract & LogContract

/** A fault, and its member, such as `enclave.configHashes[0]`. */
export type ManifestFault = { member: string; fault: string }

export const emptyManifest: Manifest = {
  version: MANIFEST_VERSION,
  enclave: { measurements: [], configHashes: [] },
  coordinator: { measurements: [], configHashes: [] },
  entropyKeys: [],
  contracts: [],
}

const natural = z.int({ error: 'not a natural number' }).min(0, { error: 'not a natural number' })
const chainId = z.int({ error: 'not a natural number' }).min(1, { error: 'not the number of a chain' })
const level = 'not a number from 0 to 255'
const byte = z.int({ error: level }).min(0, { error: level }).max(255, { error: level })
const hex = (bytes: number) => text(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `not ${bytes} bytes of lower-case hex`)
/** Ed25519 of a satellite, BLS of a public beacon. */
const entropyKey = text(/^(?:[0-9a-f]{64}|[0-9a-f]{192})$/, 'not 32 or 96 bytes of lower-case hex')
const snpMeasurement = z.custom<string>((value) => readSnpMeasurement(value) !== undefined, {
  error: 'not 48 bytes of lower-case hex, with or without : and the 32 bytes of HOST_DATA',
})
const payload = text(/^(?:[0-9a-f]{2})*$/, 'not lower-case hex')
const address = text(/^0x[0-9a-f]{40}$/, 'not 0x and 20 bytes of lower-case hex')

const logId = text(/^0x[0-9a-f]{64}$/, 'not 0x and 32 bytes of lower-case hex')

const witnessUrl = z.custom<string>((value) => typeof value === 'string' && isPlainUrl(value), {
  error: 'not an https URL (or http on this machine) without user, query or fragment',
})

const platform = z.custom<TdPlatform>(isTdPlatform, {
  error: 'not one of fmspc (6 bytes), ppid and platformInstanceId (16 bytes), in lower-case hex',
})

const schema = object({
  version: z.literal(MANIFEST_VERSION, { error: `not ${MANIFEST_VERSION}` }),
  enclave: object({
    measurements: list(
      object({ ...Object.fromEntries(codeRegisters.map((name) => [name, hex(48).optional()])), mrTd: hex(48) }),
    ),
    configHashes: list(hex(32)),
    events: z
      .record(z.string(), list(payload).min(1, { error: 'an empty list' }), { error: 'not an object' })
      .optional(),
    minimumTcbEvaluationDataNumber: natural.optional(),
    platforms: list(platform).min(1, { error: 'an empty list' }).optional(),
  }),
  coordinator: object({
    measurements: list(snpMeasurement),
    configHashes: list(hex(32)),
    minimumTcb: object(
      Object.fromEntries(
        snpProducts.map((product) => [
          product,
          object(Object.fromEntries(snpTcbParts.map((part) => [part, byte.optional()]))).optional(),
        ]),
      ),
    )
      // An empty object would reject every coordinator.
      .refine((products) => Object.keys(products).length > 0, { error: 'names no product' })
      .optional(),
    chips: list(hex(64)).min(1, { error: 'an empty list' }).optional(),
  }),
  entropyKeys: list(entropyKey),
  log: object({ witnesses: list(hex(32)), quorum: natural })
    .refine(isWitnessPolicy, { error: 'not 1 to 32 Ed25519 keys, each once, and a quorum of more than half of them' })
    .optional(),
  witnessUrls: list(witnessUrl)
    .max(MAX_WITNESSES, { error: `more than ${MAX_WITNESSES}` })
    .optional(),
  contracts: onePerChain(object({ chainId, address, fromBlock: natural.optional() })),
  logContracts: onePerChain(
    object({
      chainId,
      address,
      fromBlock: natural.optional(),
      logs: list(object({ id: logId, upTo: natural.optional() })).min(1, { error: 'an empty list' }),
    }),
  ).optional(),
  maximumEventDelayS: natural.max(DEFAULT_MAXIMUM_EVENT_DELAY_S, { error: 'longer than 72 hours' }).optional(),
})

/**
 * Parses a manifest strictly, because a misspelt member would silently drop an anchor. Throws `manifest_malformed`, whose details list every
 * fault.
 */
export function parseManifest(json: Uint8Array | string): Manifest {
  let value: unknown
  try {
    const bytes = typeof json === 'string' ? new TextEncoder().encode(json) : json
    value = parseStrictJson(bytes, { maxLength: MAX_MANIFEST_BYTES })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw malformed([{ member: 'manifest', fault: JSON_FAULTS[error.code] ?? 'not JSON' }])
  }
  return assertManifest(value)
}

const JSON_FAULTS: Readonly<Record<string, string>> = {
  json_too_large: 'larger than 1 MiB',
  json_duplicate_member: 'has a member twice',
}

/** Checks a parsed value, such as a member of a configuration file. */
export function assertManifest(value: unknown): Manifest {
  const faults = findManifestFaults(value)
  if (faults.length > 0) throw malformed(faults)
  return value as Manifest
}

/** Lists every fault. */
export function findManifestFaults(value: unknown): ManifestFault[] {
  const result = schema.safeParse(value)
  if (!result.success) return result.error.issues.flatMap((issue) => toFaults(issue, value))
  // zod ignores this name in a record, so its value would stay unchecked.
  const hasProto = Object.hasOwn((value as Manifest).enclave.events ?? {}, '__proto__')
  return hasProto ? [{ member: 'enclave.events.__proto__', fault: 'not a name of an event' }] : []
}

function isPlainUrl(text: string): boolean {
  if (!isSafeUrl(text)) return false
  const { username, password, search, hash } = new URL(text)
  return [username, password, search, hash].every((part) => part === '')
}

function isWitnessPolicy(policy: WitnessPolicy): boolean {
  try {
    assertWitnessPolicy(policy)
    return true
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return false
  }
}

function toFaults(issue: z.core.$ZodIssue, value: unknown): ManifestFault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ member: toMember([...issue.path, key]), fault: 'unknown member' }))
  }
  const fault = isMissing(value, issue.path) ? 'missing' : issue.message
  return [{ member: toMember(issue.path), fault }]
}

function isMissing(value: unknown, path: readonly PropertyKey[]): boolean {
  let node = value
  for (const key of path) node = (node as Record<PropertyKey, unknown>)[key]
  return node === undefined
}

function toMember(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'manifest'
  const parts = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
  return parts.join('').replace(/^\./, '')
}

function object<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: ({ code }) => (code === 'invalid_type' ? 'not an object' : undefined) })
}

function list<Item extends z.ZodType>(item: Item) {
  return z.array(item, { error: 'not a list' })
}

function onePerChain<Item extends z.ZodType<{ chainId: number }>>(item: Item) {
  return list(item).refine((items) => new Set(items.map((one) => one.chainId)).size === items.length, {
    error: 'two contracts on one chain',
  })
}

function text(pattern: RegExp, error: string) {
  return z.string({ error }).regex(pattern, { error })
}

function malformed(faults: readonly ManifestFault[]) {
  const details = faults.map(({ member, fault }) => `${member}: ${fault}`).join('; ')
  return new VerifierError('manifest_malformed', 'malformed manifest', { details })
}
