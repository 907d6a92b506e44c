import { createHash, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createVerifier,
  parseCollateral,
  QuoteError,
  type TrustedRoot,
  type VerifiedQuote,
  type VerifiedReport,
  vendorRoots,
} from '@countersign/attestation'
import { toHex } from '@countersign/protocol'

/** The expected outcome of a case. Every member must match. */
type Expectation = {
  result: 'verified' | 'rejected'
  reason?: string
  flags?: string[]
  [field: string]: unknown
}

type TdxCase = {
  id: string
  quote: string
  collateral: string
  trustRoot: string
  verifyAt: string
  expect: Expectation
}
type SnpCase = {
  id: string
  report: string
  endorsementKeyCert: string
  chain: string
  trustRoot?: string
  verifyAt: string
  expect: Expectation
}

export type CaseOutcome = {
  id: string
  /** The expectation, in a few words. */
  expected: string
  /** The verifier's answer. */
  actual: string
  /** Empty when the case passed. */
  faults: string[]
  /** Expected fields that this runner does not know. */
  unknown: string[]
}

/** Runs every case of `<directory>/cases.json` (format 1). An unreadable case fails without stopping the others. */
export async function runCases(directory: string): Promise<CaseOutcome[]> {
  const cases = JSON.parse(await readFile(join(directory, 'cases.json'), 'utf8')) as {
    format: number
    tdx?: TdxCase[]
    snp?: SnpCase[]
  }
  if (cases.format !== 1) throw new Error(`cases.json has format ${cases.format}; this runner knows 1`)
  const outcomes: CaseOutcome[] = []
  for (const testCase of cases.tdx ?? [])
    outcomes.push(await checkCase(testCase, () => runTdxCase(directory, testCase)))
  for (const testCase of cases.snp ?? [])
    outcomes.push(await checkCase(testCase, () => runSnpCase(directory, testCase)))
  return outcomes
}

async function runTdxCase(directory: string, testCase: TdxCase): Promise<Record<string, unknown>> {
  const verifier = createVerifier({ roots: [await readRoot(directory, testCase.trustRoot, 'intel')] })
  const [quote, collateral] = await Promise.all([
    readFile(join(directory, testCase.quote)),
    readFile(join(directory, testCase.collateral), 'utf8'),
  ])
  const verified = await verifier.verifyQuote({
    quote,
    collateral: parseCollateral(collateral.trim()),
    at: new Date(testCase.verifyAt),
  })
  return {
    tcbStatus: verified.tcb.status,
    advisoryIDs: verified.tcb.advisoryIds,
    fmspc: verified.platform.fmspc,
    quoteVersion: verified.version,
    mrtd: toHex(verified.body.mrTd),
    reportData: toHex(verified.body.reportData),
    flags: toTdxFlags(verified),
  }
}

async function runSnpCase(directory: string, testCase: SnpCase): Promise<Record<string, unknown>> {
  const roots = testCase.trustRoot ? [await readRoot(directory, testCase.trustRoot, 'amd')] : vendorRoots
  const verifier = createVerifier({ roots })
  const [ek] = await readCertificates(join(directory, testCase.endorsementKeyCert))
  const [ask, ark] = await readCertificates(join(directory, testCase.chain))
  if (ek === undefined || ask === undefined || ark === undefined) throw new Error('certificates are missing')
  const verified = await verifier.verifyReport({
    report: await readFile(join(directory, testCase.report)),
    certificates: { ek, ask, ark },
    at: new Date(testCase.verifyAt),
  })
  const { fmc, ...reportedTcb } = verified.tcb.reported
  return {
    reportVersion: verified.body.version,
    signingKey: verified.body.signingKey,
    product: verified.productName,
    reportedTcb: verified.product === 'Turin' ? { fmc, ...reportedTcb } : reportedTcb,
    measurement: toHex(verified.body.measurement),
    reportData: toHex(verified.body.reportData),
    chipId: toHex(verified.body.chipId),
    policy: `0x${verified.body.policy.toString(16)}`,
    flags: toSnpFlags(verified),
  }
}

async function readRoot(directory: string, path: string, vendor: TrustedRoot['vendor']): Promise<TrustedRoot> {
  const [certificate] = await readCertificates(join(directory, path))
  if (certificate === undefined) throw new Error(`no certificate in ${path}`)
  return toTrustedRoot(certificate, vendor)
}

/** DER, or certificates in any PEM: the format of a set's files is not under test. */
async function readCertificates(path: string): Promise<Uint8Array[]> {
  const bytes = await readFile(path)
  if (bytes[0] === 0x30) return [bytes]
  const blocks = bytes.toString('latin1').match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? []
  return blocks.map((block) => new X509Certificate(block).raw)
}

/** The fixtures' names of states that a policy decides on. A flag with a number has it after a colon. */
function toTdxFlags({ flags }: VerifiedQuote): string[] {
  const words: [string, boolean][] = [
    ['DEBUG', flags.debug],
    ['no-SEPT_VE_DISABLE', !flags.septVeDisable],
    [`zero-trailing:${flags.trailingBytes}`, flags.trailingBytes > 0 && flags.trailingZero],
    [`NONZERO-trailing:${flags.trailingBytes}`, !flags.trailingZero],
  ]
  return words.filter(([, isSet]) => isSet).map(([word]) => word)
}

function toSnpFlags({ flags, body }: VerifiedReport): string[] {
  const tcb = {
    current: toHex(body.currentTcb),
    reported: toHex(body.reportedTcb),
    committed: toHex(body.committedTcb),
    launch: toHex(body.launchTcb),
  }
  const words: [string, boolean][] = [
    ['DEBUG', flags.debug],
    ['SMT', flags.smt],
    [`vmpl${body.vmpl}`, body.vmpl > 0],
    ['cur!=reported', tcb.current !== tcb.reported],
    ['committed!=cur', tcb.committed !== tcb.current],
    ['launch!=cur', tcb.launch !== tcb.current],
  ]
  return words.filter(([, isSet]) => isSet).map(([word]) => word)
}

const KNOWN_FLAG =
  /^(DEBUG|no-SEPT_VE_DISABLE|(zero|NONZERO)-trailing:\d+|SMT|vmpl\d|cur!=reported|committed!=cur|launch!=cur)$/

async function checkCase(
  { id, expect }: { id: string; expect: Expectation },
  run: () => Promise<Record<string, unknown>>,
): Promise<CaseOutcome> {
  const expected = expect.result === 'rejected' ? `rejected: ${expect.reason ?? ''}` : 'verified'
  try {
    const actual = await run()
    if (expect.result === 'rejected') {
      return { id, expected, actual: 'verified', faults: ['verified, must be rejected'], unknown: [] }
    }
    return { id, expected, actual: 'verified', ...compare(expect, actual) }
  } catch (error) {
    const isTyped = error instanceof QuoteError
    const actual = isTyped
      ? `rejected: ${error.code} (${error.message}${error.details === undefined ? '' : `: ${error.details}`})`
      : `could not run: ${error instanceof Error ? error.message : String(error)}`
    const passed = isTyped && expect.result === 'rejected'
    return { id, expected, actual, faults: passed ? [] : [actual], unknown: [] }
  }
}

function compare(expect: Expectation, actual: Record<string, unknown>) {
  const faults: string[] = []
  const unknown: string[] = []
  for (const [field, wanted] of Object.entries(expect)) {
    if (field === 'result' || field === 'reason') continue
    if (!(field in actual)) {
      unknown.push(field)
    } else if (field === 'flags') {
      const flags = wanted as string[]
      unknown.push(...flags.filter((flag) => !KNOWN_FLAG.test(flag)).map((flag) => `flag ${flag}`))
      const known = flags.filter((flag) => KNOWN_FLAG.test(flag))
      if (!isEqual(known.toSorted(), (actual.flags as string[]).toSorted())) {
        faults.push(`flags are ${JSON.stringify(actual.flags)}, expected ${JSON.stringify(flags)}`)
      }
    } else if (!isEqual(wanted, actual[field])) {
      faults.push(`${field} is ${JSON.stringify(actual[field])}, expected ${JSON.stringify(wanted)}`)
    }
  }
  return { faults, unknown }
}

/** Equal, where lists are sets, objects compare by member, and a text that ends in `...` is a prefix. */
function isEqual(wanted: unknown, actual: unknown): boolean {
  if (Array.isArray(wanted) && Array.isArray(actual)) {
    return wanted.length === actual.length && wanted.every((item) => actual.includes(item))
  }
  if (typeof wanted === 'object' && wanted !== null && typeof actual === 'object' && actual !== null) {
    const members = new Map(Object.entries(actual))
    const entries = Object.entries(wanted)
    return entries.length === members.size && entries.every(([name, value]) => isEqual(value, members.get(name)))
  }
  if (typeof wanted === 'string' && typeof actual === 'string' && wanted.endsWith('...')) {
    return actual.startsWith(wanted.slice(0, -3))
  }
  return wanted === actual
}

/** Pins the root certificate of a case, read by Node's X.509 code. */
function toTrustedRoot(certificate: Uint8Array, vendor: TrustedRoot['vendor']): TrustedRoot {
  const parsed = new X509Certificate(certificate)
  const name = /^CN=(.*)$/m.exec(parsed.subject)?.[1] ?? parsed.subject
  return {
    vendor,
    name,
    mode: 'mock',
    certificateSha256: createHash('sha256').update(certificate).digest('hex'),
    publicKey: parsed.publicKey.export({ type: 'spki', format: 'der' }).toString('hex'),
  }
}
