import type { TdPlatform } from '@countersign/attestation'
import {
  type EnclaveConfig,
  type EnclaveSettings,
  type EntropySetting,
  toCanonicalJson,
  toHex,
} from '@countersign/protocol'
import type { RootSecretPolicy } from '@countersign/root-secret'
import {
  type ConfigLine,
  describeConfig,
  describeSettings,
  toMeasurementText,
  toPlatformText,
} from '@countersign/verify'

/** Everything that decides what an enclave does with the root secret. A backup of version 0.1.0 has no settings. */
export type Enclave = { config: EnclaveConfig; settings: EnclaveSettings | undefined; policy: RootSecretPolicy }

export function describeEnclave({ config, settings, policy }: Enclave): ConfigLine[] {
  const { measurements, platforms = [], statuses = [], minimumTcbEvaluationDataNumber, custodians } = policy
  return [
    ...describeConfig(config),
    ...(settings === undefined ? [['  settings', 'unknown'] satisfies ConfigLine] : describeSettings(settings)),
    ...measurements.map((measurement): ConfigLine => ['  code', toMeasurementText(measurement)]),
    ...(platforms.length === 0
      ? [['  machine', 'any TDX machine'] satisfies ConfigLine]
      : platforms.map((platform): ConfigLine => ['  machine', nameMachine(platform)])),
    ['  TCB statuses', statuses.join(', ') || 'UpToDate'],
    ['  TCB evaluation from', String(minimumTcbEvaluationDataNumber ?? 'any')],
    ['  custodians', `${custodians.threshold} of ${custodians.keys.length}`],
    ...custodians.keys.map((key): ConfigLine => ['  custodian', key]),
  ]
}

/** An FMSPC identifies a model of machine, not a single machine. */
function nameMachine(platform: TdPlatform): string {
  return 'fmspc' in platform ? `any machine of ${toPlatformText(platform)}` : toPlatformText(platform)
}

/** The differing lines: `-` marks lines of the old enclave, `+` lines of the new one. */
export function describeDifference(from: Enclave, to: Enclave): ConfigLine[] {
  const [old, fresh] = [describeEnclave(from), describeEnclave(to)]
  const without = (lines: ConfigLine[], others: ConfigLine[]) => {
    const known = new Set(others.map((line) => line.join('\n')))
    return lines.filter((line) => !known.has(line.join('\n')))
  }
  const mark = (sign: string) => (line: ConfigLine) => [`${sign} ${line[0].trim()}`, line[1]] satisfies ConfigLine
  return [...without(old, fresh).map(mark('-')), ...without(fresh, old).map(mark('+'))]
}

/**
 * Lists the protections that the new enclave drops or weakens, in the format of `--allow-loss`. If the old enclave's settings are unknown,
 * only an equal hash shows that they are the same. Otherwise the old enclave may have had a log and signed entropy.
 */
export function findLosses(from: Enclave, to: Enclave & { settings: EnclaveSettings }): string[] {
  const { settings: fresh } = to
  const old = from.settings ?? (hashSettings(from) === hashSettings(to) ? fresh : undefined)
  const kept = new Set(to.config.issuers.map(toText))
  return [
    ...(old === undefined || losesLog(old, fresh) ? ['log'] : []),
    ...(old === undefined || losesEntropy(old, fresh) ? ['entropy'] : []),
    // Version 0.1.0 had no bound sessions.
    ...(old?.sessions === 'bound' && fresh.sessions !== 'bound' ? ['sessions'] : []),
    ...from.config.issuers.filter((issuer) => !kept.has(toText(issuer))).map(toLoss),
  ]
}

/** The version of a configuration ends in the hash of its settings. */
function hashSettings({ config }: Enclave): string | undefined {
  return config.version.split('+')[1]
}

/**
 * With another origin or fewer of the same witnesses, the enclave isn't bound to its old log. New witnesses may belong to the operator, so
 * every new quorum must contain an old one.
 */
function losesLog(old: EnclaveSettings, { log }: EnclaveSettings): boolean {
  if (old.log === null) return false
  if (log === null) return true
  const { origins, witnesses } = old.log
  const added = log.witnesses.filter((one) => !witnesses.includes(one)).length
  if (log.quorum - added < old.log.quorum) return true
  return !origins.every((one) => log.origins.includes(one)) || !witnesses.every((one) => log.witnesses.includes(one))
}

/** A new source may belong to the operator, even if it signs its samples: the enclave accepts samples from every source that it lists. */
function losesEntropy(old: EnclaveSettings, { entropy }: EnclaveSettings): boolean {
  const isUnsigned = ({ kind }: EntropySetting) => kind === 'unsigned'
  if (old.entropy.every(isUnsigned)) return false
  const known = new Set(old.entropy.map(toText))
  return entropy.every(isUnsigned) || entropy.some((source) => !known.has(toText(source)))
}

/** A unique text for each value, whatever the order of its members. */
function toText(value: unknown): string {
  return toHex(toCanonicalJson(value))
}

/**
 * In the format of `OIDC_ISSUERS`. With another audience, an issuer may authenticate other users. Keys of another origin may belong to
 * someone else.
 */
function toLoss({ issuer, audience }: EnclaveConfig['issuers'][number]): string {
  return `issuer:${issuer}=${audience}`
}
