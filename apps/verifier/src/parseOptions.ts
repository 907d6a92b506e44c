import { type TcbStatus, type TdMeasurement, type TdPlatform, tcbStatuses } from '@countersign/attestation'
import { isSlug } from '@countersign/protocol'
import type { LogContract } from '@countersign/receipt'
import {
  emptyManifest,
  LOG_CONTRACT_FORM,
  type Manifest,
  MEASUREMENT_FORM,
  MINIMUM_TCB_FORM,
  normaliseHex,
  PLATFORM_FORM,
  parseLogContractText,
  parseMeasurementText,
  parseMinimumTcbTexts,
  parsePlatformText,
} from '@countersign/verify'
import {
  invalid,
  parseFlags,
  toAddressOption,
  toBaseUrl,
  toHexOption,
  toLogKey,
  toNumber,
  toUrl,
  toWitnesses,
  toWitnessKey,
} from './optionValues.ts'

export type VerifyOptions = {
  subject: string
  api: string | undefined
  gateways: readonly string[]
  rpc: string | undefined
  contract: string | undefined
  logContracts: readonly LogContract[]
  collateralFiles: readonly string[]
  at: Date | undefined
  /** AMD's revocation list. */
  revocationsFile: string | undefined
  /** The opening of an off-chain signature. */
  openingFile: string | undefined
  /** The file for all of the receipt's blocks. */
  carFile: string | undefined
  /** Accepted besides `UpToDate`. */
  statuses: readonly TcbStatus[]
  /** Undefined for the default. */
  maximumEventDelayS: number | undefined
  manifestFile: string | undefined
  /** Anchors from options. They add to the manifests. */
  anchors: Manifest
  isMockAllowed: boolean
  /** A new receipt may have no event yet. */
  isMissingEventAllowed: boolean
  isOffline: boolean
  /** Undefined without `--source`. */
  source: SourceOptions | undefined
}

type SourceOptions = {
  /** A folder or URL. Default: the folder of this checkout. */
  releases: string | undefined
  /** A verifier key. */
  releaseKey: string | undefined
  /** Ed25519 keys, in hex. */
  releaseWitnesses: readonly string[]
  composeFile: string | undefined
}

export type Options =
  | { command: 'help' | 'version' }
  /** Help among other arguments prints the help but isn't a success. */
  | { command: 'misplaced-help' }
  | { command: 'explain'; file: string }
  | ({ command: 'verify' } & VerifyOptions)

const FLAGS = {
  api: { type: 'string' },
  ipfs: { type: 'string', multiple: true },
  rpc: { type: 'string' },
  contract: { type: 'string' },
  'log-contract': { type: 'string', multiple: true },
  collateral: { type: 'string', multiple: true },
  at: { type: 'string' },
  revocations: { type: 'string' },
  opening: { type: 'string' },
  car: { type: 'string' },
  measurement: { type: 'string', multiple: true },
  platform: { type: 'string', multiple: true },
  'coordinator-measurement': { type: 'string', multiple: true },
  'config-hash': { type: 'string', multiple: true },
  'coordinator-config-hash': { type: 'string', multiple: true },
  'coordinator-tcb': { type: 'string', multiple: true },
  'coordinator-chip': { type: 'string', multiple: true },
  'entropy-key': { type: 'string', multiple: true },
  witness: { type: 'string', multiple: true },
  quorum: { type: 'string' },
  'tcb-status': { type: 'string', multiple: true },
  'maximum-event-delay': { type: 'string' },
  manifest: { type: 'string' },
  source: { type: 'boolean' },
  releases: { type: 'string' },
  'release-key': { type: 'string' },
  'release-witness': { type: 'string', multiple: true },
  compose: { type: 'string' },
  json: { type: 'boolean' },
  'allow-mock': { type: 'boolean' },
  'allow-missing-event': { type: 'boolean' },
  offline: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

type Values = ReturnType<typeof parseFlags<typeof FLAGS>>['values']

/** One slug in 64 starts with a hyphen, or with two. No option has a slug's length and last character. */
function isHyphenSlug(argument: string): boolean {
  return argument.startsWith('-') && isSlug(argument)
}

/** Parses the command line. `verify` is optional. */
export function parseOptions({ now }: { now: () => Date }, argv: readonly string[]): Options {
  const slugs = argv.filter(isHyphenSlug)
  const { values, positionals } = parseFlags(
    FLAGS,
    argv.filter((argument) => !slugs.includes(argument)),
  )
  if (values.help === true || values.version === true) {
    // A script that passes an untrusted receipt name must not mistake printed help for a verified receipt.
    if (argv.length > 1) return { command: 'misplaced-help' }
    return { command: values.help === true ? 'help' : 'version' }
  }

  const words = [...positionals, ...slugs]
  const isNamed = words[0] === 'verify' || words[0] === 'explain'
  const command = words[0] === 'explain' ? 'explain' : 'verify'
  const [subject, ...more] = isNamed ? words.slice(1) : words
  if (subject === undefined) throw invalid('missing receipt', 'see --help')
  if (more.length > 0) throw invalid('expected one receipt', `got ${subject} and ${more.join(' ')}`)
  if (command === 'verify') return { command, ...toVerifyOptions({ now }, values, subject) }
  const option = Object.keys(values).find((name) => name !== 'json')
  if (option !== undefined) throw invalid('explain accepts no options', `--${option}`)
  return { command, file: subject }
}

function toVerifyOptions({ now }: { now: () => Date }, values: Values, subject: string): VerifyOptions {
  const isOffline = values.offline === true
  for (const name of ['api', 'ipfs', 'rpc'] as const) {
    if (isOffline && values[name] !== undefined) throw invalid('--offline excludes network options', `--${name}`)
  }
  for (const name of ['contract', 'log-contract'] as const) {
    if (values[name] !== undefined && values.rpc === undefined) throw invalid(`--${name} requires --rpc`, 'name a node')
  }
  for (const name of ['allow-missing-event', 'maximum-event-delay'] as const) {
    if (values[name] !== undefined && values.rpc === undefined) {
      throw invalid(`--${name} requires a chain`, 'name a node with --rpc')
    }
  }
  if (values.at !== undefined && values.collateral === undefined) {
    throw invalid('--at requires the collateral of that time', 'pass it with --collateral')
  }
  return {
    subject,
    api: values.api === undefined ? undefined : toBaseUrl('--api', values.api),
    gateways: (values.ipfs ?? []).map((url) => toBaseUrl('--ipfs', url)),
    rpc: values.rpc === undefined ? undefined : toUrl('--rpc', values.rpc).href,
    contract: values.contract === undefined ? undefined : toAddressOption('--contract', values.contract),
    logContracts: (values['log-contract'] ?? []).map(toLogContract),
    collateralFiles: values.collateral ?? [],
    at: values.at === undefined ? undefined : toTime(values.at, now),
    revocationsFile: values.revocations,
    openingFile: values.opening,
    carFile: values.car,
    statuses: (values['tcb-status'] ?? []).map(toStatus),
    maximumEventDelayS: toNumber('--maximum-event-delay', values['maximum-event-delay']),
    manifestFile: values.manifest,
    anchors: toAnchorManifest(values),
    isMockAllowed: values['allow-mock'] === true,
    isMissingEventAllowed: values['allow-missing-event'] === true,
    isOffline,
    source: toSourceOptions(values),
  }
}

function toSourceOptions(values: Values): SourceOptions | undefined {
  if (values.source !== true) {
    const without = (['releases', 'release-key', 'release-witness', 'compose'] as const).find((name) => values[name])
    if (without !== undefined) throw invalid(`--${without} requires --source`, 'see --help')
    return undefined
  }
  const { releases } = values
  const isUrl = releases !== undefined && /^https?:/i.test(releases)
  if (isUrl && values.offline === true) throw invalid('--offline excludes network options', '--releases with a URL')
  return {
    releases: isUrl ? toBaseUrl('--releases', releases) : releases,
    releaseKey: values['release-key'] === undefined ? undefined : toLogKey(values['release-key']),
    releaseWitnesses: [
      ...new Set((values['release-witness'] ?? []).map((text) => toWitnessKey(text, '--release-witness'))),
    ],
    composeFile: values.compose,
  }
}

function toAnchorManifest(values: Values): Manifest {
  return {
    ...emptyManifest,
    enclave: {
      measurements: (values.measurement ?? []).map(toMeasurement),
      configHashes: toHexOptions('--config-hash', values['config-hash'], 32),
      ...(values.platform === undefined ? {} : { platforms: values.platform.map(toPlatform) }),
    },
    coordinator: {
      measurements: (values['coordinator-measurement'] ?? []).map(toCoordinatorMeasurement),
      configHashes: toHexOptions('--coordinator-config-hash', values['coordinator-config-hash'], 32),
      ...(values['coordinator-tcb'] === undefined ? {} : { minimumTcb: toMinimumTcb(values['coordinator-tcb']) }),
      ...(values['coordinator-chip'] === undefined
        ? {}
        : { chips: toHexOptions('--coordinator-chip', values['coordinator-chip'], 64) }),
    },
    entropyKeys: (values['entropy-key'] ?? []).map(toEntropyKey),
    ...toWitnesses(values),
  }
}

function toHexOptions(flag: string, texts: readonly string[] = [], bytes: number): string[] {
  return texts.map((text) => toHexOption(flag, text, bytes))
}

/** A satellite's key has 32 bytes, a public beacon's 96. */
function toEntropyKey(text: string): string {
  const isBeacon = normaliseHex(text)?.length === 2 * 96
  return toHexOption('--entropy-key', text, isBeacon ? 96 : 32)
}

function toMeasurement(text: string): TdMeasurement {
  const measurement = parseMeasurementText(text, (part) => toHexOption('--measurement', part, 48))
  if (measurement === undefined) {
    throw invalid('--measurement has a wrong number of registers', `${text.split(':').length} (${MEASUREMENT_FORM})`)
  }
  return measurement
}

function toPlatform(text: string): TdPlatform {
  const platform = parsePlatformText(text)
  if (platform === undefined) throw invalid('invalid --platform', `${text} (${PLATFORM_FORM})`)
  return platform
}

function toLogContract(text: string): LogContract {
  const contract = parseLogContractText(text)
  if (contract === undefined) throw invalid('invalid --log-contract', `${text} (${LOG_CONTRACT_FORM})`)
  return contract
}

function toCoordinatorMeasurement(text: string): string {
  const [measurement = '', hostData, ...more] = text.split(':')
  if (more.length > 0) throw invalid('--coordinator-measurement has too many parts', 'MEASUREMENT:HOST_DATA')
  const parts = [
    toHexOption('--coordinator-measurement', measurement, 48),
    ...(hostData === undefined ? [] : [toHexOption('HOST_DATA of --coordinator-measurement', hostData, 32)]),
  ]
  return parts.join(':')
}

function toMinimumTcb(texts: readonly string[]) {
  const minimumTcb = parseMinimumTcbTexts(texts)
  if (minimumTcb === undefined) {
    throw invalid('invalid --coordinator-tcb', `${texts.join(' ')} (${MINIMUM_TCB_FORM})`)
  }
  return minimumTcb
}

/** Parses `now`, a day, or a UTC time. Rejects dates that don't exist. */
function toTime(text: string, now: () => Date): Date {
  if (text === 'now') return now()
  const match = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{3}))?)?Z)?$/.exec(text)
  const iso = match && `${match[1]}T${match[2] ?? '00:00'}:${match[3] ?? '00'}.${match[4] ?? '000'}Z`
  const time = new Date(iso ?? Number.NaN)
  if (Number.isNaN(time.getTime()) || time.toISOString() !== iso) {
    throw invalid('invalid --at', `${text}, expected now, 2026-01-31 or 2026-01-31T12:00:00Z`)
  }
  return time
}

function toStatus(text: string): TcbStatus {
  const status = tcbStatuses.find((name) => name === text)
  if (status === undefined) throw invalid('unknown --tcb-status', `${text}, expected ${tcbStatuses.join(', ')}`)
  return status
}
