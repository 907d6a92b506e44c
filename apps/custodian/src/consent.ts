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

/** An FMSPC names a kind of machine. */
function nameMachine(platform: TdPlatform): string {
  return 'fmspc' in platform ? `any machine of ${toPlatformText(platform)}` : toPlatformText(platform)
}

/** The lines that are only in one of them: `-` of the old enclave, `+` of the new one. */
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
 * The protections of the old enclave that the new one drops or weakens, each as `--allow-loss` names it. With unknown settings, the
 * old enclave may have had a log and signed entropy.
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

/** With another origin, fewer of the same witnesses or a lower quorum, nobody can hold the enclave to its old log. */
function losesLog(old: EnclaveSettings | undefined, { log }: EnclaveSettings): boolean {
  if (old === undefined) return log === null
  if (old.log === null) return false
  if (log === null || log.quorum < old.log.quorum) return true
  const { origins, witnesses } = log
  return (
    !old.log.origins.every((one) => origins.includes(one)) || !old.log.witnesses.every((one) => witnesses.includes(one))
  )
}

/** A new source, signed or not, may be the operator's: the enclave takes samples of any source that it lists. */
function losesEntropy(old: EnclaveSettings | undefined, { entropy }: EnclaveSettings): boolean {
  const isUnsigned = ({ kind }: EntropySetting) => kind === 'unsigned'
  if (old === undefined) return entropy.some(isUnsigned)
  if (old.entropy.every(isUnsigned)) return false
  const known = new Set(old.entropy.map((source) => JSON.stringify(source)))
  return entropy.some((source) => !known.has(JSON.stringify(source)))
}

/** As `OIDC_ISSUERS` writes it. With another audience an issuer may name other users. */
function toLoss({ issuer, audience }: EnclaveConfig['issuers'][number]): string {
  return `issuer:${issuer}=${audience}`
}
