import type { TdPlatform } from '@countersign/attestation'
import type { EnclaveConfig, EnclaveSettings, EntropySetting } from '@countersign/protocol'
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

/** The lines that differ: `-` marks those of the old enclave, `+` those of the new one. */
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
 * The protections of the old enclave that the new one drops or weakens, each as an argument of `--allow-loss`. If the settings of the
 * old enclave are unknown, it is assumed to have had a log and signed entropy.
 */
export function findLosses(from: Enclave, to: Enclave & { settings: EnclaveSettings }): string[] {
  const { settings: old } = from
  const { settings: fresh } = to
  const issuers = new Set(to.config.issuers.map(toLoss))
  return [
    ...(losesLog(old, fresh) ? ['log'] : []),
    ...(losesEntropy(old, fresh) ? ['entropy'] : []),
    ...from.config.issuers.map(toLoss).filter((loss) => !issuers.has(loss)),
  ]
}

/** If an old origin or witness is missing, or the quorum is lower, the old log no longer binds the enclave. */
function losesLog(old: EnclaveSettings | undefined, { log }: EnclaveSettings): boolean {
  if (old === undefined) return log === null
  if (old.log === null) return false
  if (log === null || log.quorum < old.log.quorum) return true
  const { origins, witnesses } = log
  return (
    !old.log.origins.every((one) => origins.includes(one)) || !old.log.witnesses.every((one) => witnesses.includes(one))
  )
}

/** The operator may control a new source, even one that signs. The enclave accepts samples from every source in its settings. */
function losesEntropy(old: EnclaveSettings | undefined, { entropy }: EnclaveSettings): boolean {
  const isUnsigned = ({ kind }: EntropySetting) => kind === 'unsigned'
  if (old === undefined) return entropy.some(isUnsigned)
  if (old.entropy.every(isUnsigned)) return false
  const known = new Set(old.entropy.map((source) => JSON.stringify(source)))
  return entropy.some((source) => !known.has(JSON.stringify(source)))
}

/** In the form of `OIDC_ISSUERS`. An issuer may identify users differently for another audience. */
function toLoss({ issuer, audience }: EnclaveConfig['issuers'][number]): string {
  return `issuer:${issuer}=${audience}`
}
