import { isSafeUrl } from '@countersign/protocol'
import { emptyManifest, type Manifest } from '@countersign/verify'
import { invalid, parseFlags, toAddressOption, toBaseUrl, toNumber, toUrl, toWitnesses } from '../optionValues.ts'

export type MonitorOptions = {
  addresses: readonly string[]
  rpc: string
  eventsRpc: string | undefined
  contract: string | undefined
  gateways: readonly string[]
  api: string | undefined
  log: string | undefined
  witnessUrls: readonly string[]
  /** The reader's own witnesses. */
  anchors: Manifest
  stateFile: string | undefined
  maxLogEntries: number | undefined
  logTimeS: number | undefined
  manifestFile: string | undefined
  isMockAllowed: boolean
  from: { nonce: number } | { block: number } | undefined
  graceS: number | undefined
  isFollowing: boolean
  intervalS: number
  webhook: string | undefined
}

const FLAGS = {
  rpc: { type: 'string' },
  'events-rpc': { type: 'string' },
  contract: { type: 'string' },
  ipfs: { type: 'string', multiple: true },
  api: { type: 'string' },
  log: { type: 'string' },
  'witness-url': { type: 'string', multiple: true },
  witness: { type: 'string', multiple: true },
  quorum: { type: 'string' },
  state: { type: 'string' },
  'max-log-entries': { type: 'string' },
  'log-time': { type: 'string' },
  manifest: { type: 'string' },
  'allow-mock': { type: 'boolean' },
  'from-nonce': { type: 'string' },
  'from-block': { type: 'string' },
  grace: { type: 'string' },
  follow: { type: 'boolean' },
  interval: { type: 'string' },
  webhook: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

const DEFAULT_INTERVAL_S = 60
const MAX_ADDRESSES = 100

/** Parses the command line. Returns undefined for help. */
export function parseMonitorOptions(argv: readonly string[]): MonitorOptions | undefined {
  const { values, positionals } = parseFlags(FLAGS, argv)
  if (values.help === true) {
    if (argv.length === 1) return undefined
    throw invalid('no wallet was checked', 'use --help without other arguments')
  }
  const addresses = [...new Set(positionals.map((text) => toAddressOption('an address', text)))]
  if (addresses.length === 0) throw invalid('missing wallet address', 'see --help')
  if (addresses.length > MAX_ADDRESSES) throw invalid('too many wallets', `expected at most ${MAX_ADDRESSES}`)
  if (values.rpc === undefined) throw invalid('missing option', '--rpc')
  if (values.interval !== undefined && values.follow !== true) throw invalid('--interval requires --follow', 'add it')
  const [nonce, block] = [
    toNumber('--from-nonce', values['from-nonce']),
    toNumber('--from-block', values['from-block']),
  ]
  if (nonce !== undefined && block !== undefined)
    throw invalid('--from-nonce and --from-block exclude each other', 'use one of them')
  if (nonce !== undefined && addresses.length > 1)
    throw invalid('--from-nonce supports only one wallet', 'check one wallet per run')
  const api = values.api === undefined ? undefined : toBaseUrl('--api', values.api)
  const log = values.log === undefined ? api : toBaseUrl('--log', values.log)
  const witnessUrls = [...new Set((values['witness-url'] ?? []).map(toWitnessUrl))]
  for (const name of ['witness-url', 'witness', 'state', 'max-log-entries', 'log-time'] as const) {
    if (log === undefined && values[name] !== undefined) throw invalid(`--${name} requires a log`, 'add --log or --api')
  }
  return {
    addresses,
    rpc: toUrl('--rpc', values.rpc).href,
    eventsRpc: values['events-rpc'] === undefined ? undefined : toUrl('--events-rpc', values['events-rpc']).href,
    contract: values.contract === undefined ? undefined : toAddressOption('--contract', values.contract),
    gateways: (values.ipfs ?? []).map((url) => toBaseUrl('--ipfs', url)),
    api,
    log,
    witnessUrls,
    anchors: { ...emptyManifest, ...toWitnesses(values) },
    stateFile: values.state,
    maxLogEntries: toNumber('--max-log-entries', values['max-log-entries']),
    logTimeS: toNumber('--log-time', values['log-time']),
    manifestFile: values.manifest,
    isMockAllowed: values['allow-mock'] === true,
    from: nonce !== undefined ? { nonce } : block !== undefined ? { block } : undefined,
    graceS: toNumber('--grace', values.grace),
    isFollowing: values.follow === true,
    intervalS: toNumber('--interval', values.interval) ?? DEFAULT_INTERVAL_S,
    webhook: values.webhook === undefined ? undefined : toUrl('--webhook', values.webhook).href,
  }
}

/** A witness signs its answers. https keeps others from suppressing them unnoticed and from seeing which log a reader asks about. */
function toWitnessUrl(text: string): string {
  const url = toBaseUrl('--witness-url', text)
  if (isSafeUrl(url)) return url
  throw invalid('--witness-url requires https', 'http works only on this machine')
}
