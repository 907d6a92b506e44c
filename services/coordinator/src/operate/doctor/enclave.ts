import { vendorRoots } from '@countersign/attestation'
import type { Platform } from '@countersign/evidence'
import { hashEnclaveConfig, ServiceError, toHex } from '@countersign/protocol'
import type { LogLine } from '@countersign/service'
import type { Config } from '../../config.ts'
import { checkCollateral } from '../../sign/enclave/collateral/checkCollateral.ts'
import { createEnclaveEndpoint, type EnclaveEndpoint, EndpointError } from '../../sign/enclave/enclaveEndpoint.ts'
import type { EnclaveTerms } from '../../sign/enclave/keyEnclave.ts'
import { createRootSecrets } from '../../sign/enclave/rootSecrets.ts'
import type { CollateralCache } from '../../store/collateralCache.ts'
import { systemRandom } from '../../system.ts'
import { type Attestation, createAttestation } from '../attest.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'
import { explain, findCode, toShownUrl } from './reasons.ts'

/** The terms that the enclaves attested, for other checks. */
export type EnclaveView = { terms(): readonly EnclaveTerms[] }

/** Settings that affect quotes and reports. */
const SETTINGS =
  /^(OIDC_.*|ENCLAVE_.*|ENTROPY_.*|MOCK_ATTESTATION|REPORT_SOURCE|RECEIPTS|SNP_CERTS_FILE|COLLATERAL_URL)$/
const DAY_MS = 86_400_000
/** Quotes per enclave. The first one is slower, because it also loads code and collateral. */
const QUOTES = 2
const SLOW_QUOTE_MS = 200
/** The polling interval of a stock kernel's guest driver. */
const DRIVER_POLL_MS = 1_000

/** Checks the coordinator's own report, then every enclave, with the coordinator's own client. */
export function createEnclaveChecks(
  context: Context,
  { collateralCache }: { collateralCache: CollateralCache },
): { checks: Check[]; view: EnclaveView } {
  const { subject, clock, timeoutMs } = context
  const config = subject.coordinator as Config
  const lines: LogLine[] = []
  const note = (line: LogLine) => void lines.push(line)
  const log = { info() {}, warn: note, error: note }
  const platforms = new Map<string, Platform>()
  const rootSecrets = createRootSecrets(log)
  const attested: EnclaveTerms[] = []
  let parts: Attestation | undefined

  async function checkReport(): Promise<Finding> {
    try {
      parts = await createAttestation(
        { clock, random: systemRandom, log, warnOf: async () => {}, collateralCache },
        config,
      )
    } catch (error) {
      if (error instanceof TypeError) return fault(`COLLATERAL_URL: ${error.message}`, 'Write it as https://HOST.')
      if (config.snpCertsFile === undefined || findCode(error) === undefined) throw error
      return fault('SNP_CERTS_FILE cannot be read', 'Make the file readable for this process, or remove the setting.')
    }
    const { selfReport, collateral } = parts
    context.onEnd(() => Promise.all([selfReport.stop(), collateral.stop()]))
    try {
      const { selfAttestation, revocations } = selfReport.current()
      const list = revocations === undefined && !config.isMock ? ', without AMD’s revocation list' : ''
      return ok(`${selfReport.mode}, measurement ${selfAttestation.measurement.slice(0, 16)}…${list}`)
    } catch {
      const { code = 'unknown', reason } = (lines.find(({ msg }) => msg === 'Could not attest the coordinator') ??
        {}) as {
        code?: string
        reason?: string
      }
      return fault(`no report: ${[code, reason].filter(Boolean).join(', ')}`, toReportMend(code))
    }
  }

  async function checkEnclave(url: string): Promise<Finding> {
    if (parts === undefined) return skipped('needs: report')
    const where = url.startsWith('unix:') ? url : toShownUrl(url)
    const { collateral, endpointDeps } = parts
    const watched = {
      current(platform: Platform) {
        platforms.set(`${platform.fmspc} ${platform.ca}`, platform)
        return collateral.current(platform)
      },
    }
    const endpoints: EnclaveEndpoint[] = []
    try {
      for (let time = 0; time < QUOTES; time++) {
        endpoints.push(createEnclaveEndpoint({ ...endpointDeps, rootSecrets, collateral: watched, timeoutMs }, url))
      }
    } catch {
      return fault(`${where} is not an enclave address`, 'Write ENCLAVE_URL as https://HOST:PORT, without a path.')
    }
    context.onEnd(() => Promise.all(endpoints.map((endpoint) => endpoint.stop())))
    try {
      const answers: { terms: EnclaveTerms; ms: number }[] = []
      for (const endpoint of endpoints) {
        const startedAt = performance.now()
        const terms = await endpoint.getTerms()
        answers.push({ terms, ms: performance.now() - startedAt })
      }
      const [{ terms }] = answers as [(typeof answers)[0]]
      attested.push(terms)
      const text = `${where}: attested, configuration ${toHex(hashEnclaveConfig(terms.config))}`
      return evaluateQuoteTime(text, { ms: Math.min(...answers.map(({ ms }) => ms)), isMock: config.isMock })
    } catch (error) {
      return describeError(error, where)
    }
  }

  async function checkPlatforms(): Promise<Finding[]> {
    if (parts === undefined || platforms.size === 0) return [skipped('no enclave returned a quote')]
    const roots = config.isMock ? (await import('@countersign/attestation/simulator')).simulatedRoots() : vendorRoots
    const { collateral } = parts
    return Promise.all(
      [...platforms.values()].map(async (platform) => {
        try {
          const { collateral: current } = await collateral.current(platform)
          const { notBefore, notAfter } = checkCollateral(current, { platform, roots })
          return evaluateDates({ notBefore, notAfter, now: clock.now() })
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error
          const { code, reason } = (lines.findLast(({ msg }) => msg === 'Could not fetch collateral') ?? {}) as {
            code?: string
            reason?: string
          }
          const why = [code ?? error.code, reason].filter(Boolean).join(', ')
          return fault(
            `no valid collateral for platform ${platform.fmspc}: ${why}`,
            'Give this machine access to COLLATERAL_URL, or set it to a cache (PCCS), and check the clock.',
          )
        }
      }),
    )
  }

  return {
    checks: [
      { name: 'report', settings: SETTINGS, after: ['schema'], run: checkReport },
      {
        name: 'enclave',
        settings: SETTINGS,
        needs: ['report'],
        run: () => Promise.all(config.enclaveUrls.map(checkEnclave)),
      },
      {
        name: 'enclave-settings',
        settings: SETTINGS,
        uses: ['enclave'],
        run: async () => (attested.length === 0 ? skipped('no enclave is attested') : compareTerms(attested, config)),
      },
      { name: 'collateral', settings: SETTINGS, uses: ['enclave'], run: checkPlatforms },
    ],
    view: { terms: () => attested },
  }
}

/** Every signature waits for one or two quotes. The duration of a simulated quote is a setting. */
export function evaluateQuoteTime(text: string, { ms, isMock }: { ms: number; isMock: boolean }): Finding {
  const timed = `${text}, quote in ${Math.round(ms)} ms`
  if (isMock || ms <= SLOW_QUOTE_MS) return ok(timed)
  const cause =
    ms < DRIVER_POLL_MS ? 'The network may be slow, or the enclave busy' : 'Its guest driver may poll once a second'
  return warning(timed, `${cause}: see docs/run/deploy.md#quote-times.`)
}

export function evaluateDates({
  notBefore,
  notAfter,
  now,
}: {
  notBefore: number
  notAfter: number
  now: number
}): Finding {
  const days = (ms: number) => Math.floor(ms / DAY_MS)
  const until = new Date(notAfter).toISOString().slice(0, 10)
  const text = `${days(now - notBefore)} day(s) old, expires ${until}`
  const fix = 'Give this machine access to COLLATERAL_URL. The coordinator renews collateral a week before it expires.'
  return notAfter - now < 5 * DAY_MS ? warning(text, fix) : ok(text)
}

/** Compares settings that must match. If they differ, both sides start, but sign-in and signing fail. */
export function compareTerms(
  all: readonly EnclaveTerms[],
  {
    providers,
    entropy,
    witnesses,
    receiptVersion,
  }: Pick<Config, 'providers' | 'entropy' | 'witnesses' | 'receiptVersion'>,
): Finding[] {
  const found: Finding[] = []
  const hashes = new Set(all.map(({ config }) => toHex(hashEnclaveConfig(config))))
  if (hashes.size > 1) {
    found.push(
      fault(
        `the enclaves in ENCLAVE_URL have ${hashes.size} configurations, so sessions of one fail at another`,
        'Give them the same version, OIDC_ISSUERS, policies and settings.',
      ),
    )
  }
  for (const { config, settings } of all.slice(0, hashes.size > 1 ? all.length : 1)) {
    for (const { id, issuer, clientId } of providers) {
      if (config.issuers.some((known) => known.issuer === issuer && known.audience === clientId)) continue
      found.push(
        fault(
          `the enclave does not accept ${id}, so users can’t sign in there`,
          `Add ${issuer}=${clientId} to the enclave’s OIDC_ISSUERS. This changes its configuration hash.`,
        ),
      )
    }
    found.push(...compareEntropy(settings.entropy, entropy))
    if (settings.log !== null) {
      if (receiptVersion !== 2 || witnesses.length === 0) {
        const fix = 'Set RECEIPTS=2, DATABASE_URL and LOG_WITNESSES for the coordinator.'
        found.push(fault('the enclave requires a log, but this coordinator has none', fix))
      }
    } else if (witnesses.length > 0) {
      const fix = 'Set LOG_ORIGINS and LOG_WITNESSES for the enclave, or remove LOG_WITNESSES here.'
      found.push(warning('LOG_WITNESSES is set, but the enclave has no log', fix))
    }
  }
  return found.length > 0 ? found : [ok('providers, entropy and log agree')]
}

function compareEntropy(accepted: EnclaveTerms['settings']['entropy'], entropy: Config['entropy']): Finding[] {
  const fix = (setting: string) =>
    `Set the same ${setting} for enclave and coordinator. This changes the enclave’s configuration hash.`
  if (entropy.kind === 'drand') {
    const isKnown = accepted.some((one) => one.kind === 'drand' && one.chainHash === entropy.beacon.chainHash)
    return isKnown ? [] : [fault('the enclave does not accept this beacon', fix('ENTROPY_DRAND'))]
  }
  if (entropy.kind === 'orbitport' || entropy.allowUnsigned) {
    const isKnown = accepted.some(({ kind }) => kind === 'unsigned')
    if (!isKnown) return [fault('the enclave does not accept unsigned samples', fix('ENTROPY_ALLOW_UNSIGNED'))]
  }
  if (entropy.kind !== 'satellite') return []
  const unknown = entropy.publicKeys.filter(
    (key) => !accepted.some((one) => one.kind === 'satellite' && one.key === key),
  )
  return unknown.map((key) =>
    fault(`the enclave does not accept samples signed by ${key.slice(0, 16)}…`, fix('ENTROPY_PUBLIC_KEY')),
  )
}

function describeError(error: unknown, where: string): Finding {
  if (!(error instanceof EndpointError)) {
    if (error instanceof ServiceError && error.code === 'collateral_stale') {
      return fault(`${where}: its quote can’t be verified without collateral`, 'Fix the check collateral.')
    }
    if (error instanceof ServiceError) {
      return fault(`${where}: ${error.code}, ${error.details ?? error.message}`, 'Read the enclave’s log.')
    }
    throw error
  }
  const { code, details = '' } = error
  const [text, fix] = toWords(code, details)
  return fault(`${where}: ${text}`, fix)
}

function toWords(code: EndpointError['code'], details: string): readonly [text: string, fix: string] {
  switch (code) {
    case 'unreachable': {
      const known = explain(details)
      return [known?.text ?? `unreachable (${details})`, `${known?.fix ?? 'Check the network'}, in ENCLAVE_URL.`]
    }
    case 'timed_out':
      return ['no answer', 'Check that it is not frozen, and that no proxy delays the call.']
    case 'cut_off':
      return ['the connection was closed', 'Use http or https in ENCLAVE_URL as in the enclave’s LISTEN.']
    case 'key_changed':
      return ['its key differs from the key that it attested', 'Remove the proxy: only the enclave may end TLS.']
    case 'answer_malformed':
      return [`not an enclave’s answer (${details})`, 'Check that ENCLAVE_URL is an enclave of this release.']
    case 'refused':
      return REFUSALS[details] ?? [`it rejects the call: ${details}`, 'Read the enclave’s log.']
    default:
      return toQuoteFault(details)
  }
}

/** Answers to callers that an enclave rejects. */
const REFUSALS: Readonly<Record<string, readonly [text: string, fix: string]>> = {
  caller_clock_skew: ['its clock and ours differ by more than 30 s', 'Synchronize both clocks (NTP).'],
  caller_not_allowed: [
    'its caller policy does not accept this coordinator',
    'Add this coordinator’s configuration hash and measurement to caller-policy.json, and restart the enclave.',
  ],
  'status 404': ['not an enclave (404)', 'Correct ENCLAVE_URL.'],
}

/** Why a coordinator rejects a quote. */
function toQuoteFault(details: string): readonly [text: string, fix: string] {
  if (details.startsWith('configuration ')) {
    return [
      `the policy does not list its ${details}`,
      'If this is your enclave, add the hash to configHashes in the enclave policy. Otherwise don’t trust it.',
    ]
  }
  if (details.startsWith('root secret ')) {
    return [
      `the policy does not list its ${details}`,
      'If users’ wallets use that secret, add it to commitments in the enclave policy. Otherwise don’t trust the enclave.',
    ]
  }
  if (details.startsWith('another root secret')) {
    return [
      `it has ${details}, so users would get other addresses there`,
      'The commitment in the backup shows which secret is right. Restart the other enclave so that it joins.',
    ]
  }
  if (details.startsWith('a mock quote') || details === 'root_not_trusted') {
    return ['one side uses real hardware, the other doesn’t', 'Use the same MOCK_ATTESTATION on both sides.']
  }
  if (details.includes('not_in_date'))
    return [`its evidence is expired or not yet valid (${details})`, 'Check the clocks and the collateral.']
  return [
    `its quote was rejected: ${details}`,
    'Compare it with the enclave policy (npm run verify -- explain QUOTE). If you didn’t change the enclave, don’t trust it.',
  ]
}

function toReportMend(code: string): string {
  if (code === 'configfs_unavailable') {
    return 'Run it in an SEV-SNP guest, as root, with /sys/kernel/config writable (docs/run/deploy.md#hardware).'
  }
  if (code === 'certificates_missing' || code.startsWith('vendor_')) {
    return 'Let this machine reach AMD’s service, or put the certificates into SNP_CERTS_FILE.'
  }
  if (code === 'certificate_revoked') return 'AMD has revoked this machine’s certificates: move to another machine.'
  return 'See docs/run/deploy.md#hardware for what the guest needs.'
}
