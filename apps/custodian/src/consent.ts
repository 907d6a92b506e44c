import type { TdPlatform } from '@countersign/attestation'
import type { EnclaveConfig, EnclaveSettings } from '@countersign/protocol'
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
 * The protections of the old enclave that the new one drops, each as `--allow-loss` names it. With unknown settings, the old enclave
 * may have had a log and signed entropy.
 */
export function findLosses(from: Enclave, to: Enclave & { settings: EnclaveSettings }): string[] {
  const { settings: old } = from
  const { settings: fresh } = to
  const isUnsigned = ({ kind }: { kind: string }) => kind === 'unsigned'
  const losesSigned = !old?.entropy.some(isUnsigned) && fresh.entropy.some(isUnsigned)
  const losesAllSigned = !old?.entropy.every(isUnsigned) && fresh.entropy.every(isUnsigned)
  const issuers = new Set(to.config.issuers.map(toLoss))
  return [
    ...(old?.log !== null && fresh.log === null ? ['log'] : []),
    ...(losesSigned || losesAllSigned ? ['entropy'] : []),
    ...from.config.issuers.map(toLoss).filter((loss) => !issuers.has(loss)),
  ]
}

/** As `OIDC_ISSUERS` writes it. With another audience an issuer may name other users. */
function toLoss({ issuer, audience }: EnclaveConfig['issuers'][number]): string {
  return `issuer:${issuer}=${audience}`
}
