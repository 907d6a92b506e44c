import {
  assertCollateral,
  assertQuotePolicy,
  codeEvents,
  findOpenEvents,
  findOpenRegisters,
  findPlatform,
  isMeasuredAs,
  PolicyError,
  parseCollateral,
  type QuotePolicy,
  type TrustedRoot,
  type VerifiedQuote,
  type Verifier,
} from '@countersign/attestation'
import {
  assertEnclaveConfig,
  assertSettingsOf,
  computeRoot,
  computeTdxReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  hashLeaf,
  MAX_BLOCK_BYTES,
  parseCanonicalJson,
  toHex,
} from '@countersign/protocol'
import { toCid } from '../cid.ts'
import type { ReceiptView } from '../receiptView.ts'
import type { Anchors } from './anchors.ts'
import { failIf, NOT_IN_MANIFEST, needs, StepFailure, StepSkip, type Transcript } from './steps.ts'

export type SignerPolicy = Omit<QuotePolicy, 'measurements' | 'events' | 'platforms' | 'reportData'>

export type SignerContext = {
  verifier: Verifier
  collateral: Uint8Array | undefined
  at: Date
  anchors: Anchors
  policy: SignerPolicy
}

/** A limit for this implementation: version 1 specifies none. */
export const MAX_COLLATERAL_BYTES = 8_388_608

/** inclusion → collateral → quote → report-data → policy → platform → measurement → config: the enclave and its hardware. */
export async function checkSigner(
  { run }: Transcript,
  receipt: ReceiptView,
  context: SignerContext,
): Promise<VerifiedQuote | undefined> {
  const { signer } = receipt
  const { anchors, policy } = context

  const root = await run('inclusion', () => {
    const { leafIndex, treeSize, path } = signer.inclusion
    const leaf = hashLeaf(signer.statement)
    const computed = computeRoot({ leaf, leafIndex, treeSize, path: path.map(fromHex) })
    return [`Leaf ${leafIndex + 1} of ${treeSize} leads to the root ${toHex(computed)}.`, computed]
  })

  const collateral = await run('collateral', () => {
    const bytes = needs(context.collateral, 'the collateral block was not given')
    const cid = toCid(bytes)
    failIf(cid !== signer.collateral, `The collateral block has the CID ${cid}, but the receipt names another.`)
    // In version 2 the limit of all blocks applies. Version 1 has none.
    failIf(receipt.kind !== undefined && bytes.length > MAX_BLOCK_BYTES, 'The collateral block is larger than 256 KiB.')
    const value = parseCanonicalJson(bytes, { maxBytes: MAX_COLLATERAL_BYTES })
    assertCollateral(value)
    return [`The block ${cid} is the one the service verified with.`, value]
  })

  const verified = await run('quote', async () => {
    const evidence = needs(collateral, 'there is no collateral for the quote')
    const quote = await context.verifier.verifyQuote({
      quote: fromHex(signer.quoteHex),
      collateral: evidence,
      ...(signer.eventLog === undefined ? {} : { eventLog: signer.eventLog }),
      at: context.at,
    })
    assertStated(signer, quote)
    return [describeQuote(quote, context.at), quote]
  })

  const configHash = hashStatedConfig(signer)
  await run('report-data', () => {
    const quote = needs(verified, 'the quote is not genuine')
    const covered = computeTdxReportData({
      treeSize: signer.inclusion.treeSize,
      root: needs(root, 'the statement is in no batch'),
      bootId: fromHex(signer.batch.bootId),
      batchSequence: signer.batch.sequence,
      previousBatchHash: fromHex(signer.batch.previous),
      configHash: configHash ?? new Uint8Array(32),
    })
    failIf(!equalBytes(covered, quote.body.reportData), 'The quote does not cover this batch.')
    return [`The quote covers batch ${signer.batch.sequence} of boot ${signer.batch.bootId}.`, undefined]
  })

  await run('quote-policy', () => {
    const quote = needs(verified, 'the quote is not genuine')
    assertQuotePolicy(quote, policy)
    return [`Not debuggable, not migratable, TCB status ${quote.tcb.status}.`, undefined]
  })

  await run('platform', () => {
    const { platform } = needs(verified, 'the quote is not genuine')
    const { fmspc, ppid, platformInstanceId } = platform
    const instance = platformInstanceId === undefined ? '' : `, platform instance id ${platformInstanceId}`
    const identity = `FMSPC ${fmspc}, PPID ${ppid}${instance}`
    if (!anchors.platforms?.length) throw new StepSkip(`No machines to compare ${identity} with.`)
    const listed = findPlatform(platform, anchors.platforms)
    if (listed === undefined) {
      throw new PolicyError('platform_not_allowed', 'not among the machines that the anchors name', {
        details: identity,
      })
    }
    const [[name, id]] = Object.entries(listed) as [[string, string]]
    return [`The machine is among the anchors, by its ${name} ${id}.`, undefined]
  })

  await run('measurement', () => {
    const quote = needs(verified, 'the quote is not genuine')
    return [checkMeasurement(quote, anchors, signer.config), undefined]
  })

  await run('config', () => {
    if (configHash === undefined) throw new StepFailure('The configuration in the receipt is malformed.')
    if (signer.settings !== undefined) assertSettingsOf(signer.config, signer.settings)
    const hash = toHex(configHash)
    if (!anchors.configHashes?.length) throw new StepSkip(`No configuration hashes to compare ${hash} with.`)
    failIf(!anchors.configHashes.includes(hash), `The configuration ${hash} is not among the anchors.`, NOT_IN_MANIFEST)
    return [`The configuration ${hash} is among the anchors.`, undefined]
  })

  return verified
}

function hashStatedConfig({ config }: ReceiptView['signer']): Uint8Array | undefined {
  try {
    assertEnclaveConfig(config)
    return hashEnclaveConfig(config)
  } catch {
    return undefined
  }
}

/** Version 1 repeats values of the quote, which must match it. */
function assertStated(signer: ReceiptView['signer'], { body, tcb }: VerifiedQuote) {
  const { measurement, tcbStatus } = signer
  if (measurement === undefined) return
  const [rtmr0, rtmr1, rtmr2, rtmr3] = body.rtmrs
  const measured = { mrTd: body.mrTd, rtmr0, rtmr1, rtmr2, rtmr3 }
  for (const [name, value] of Object.entries(measured)) {
    const stated = measurement[name as keyof typeof measured]
    failIf(stated !== toHex(value), `The receipt states another ${name} than its quote.`)
  }
  failIf(tcbStatus !== tcb.status, `The receipt states TCB status ${tcbStatus}; it was ${tcb.status}.`)
}

function describeQuote({ root, tcb, platform }: VerifiedQuote, at: Date): string {
  const advisories = tcb.advisoryIds.length === 0 ? '' : `, advisories ${tcb.advisoryIds.join(', ')}`
  const kind = describeRoot(root)
  return `${kind} at ${at.toISOString()}: platform ${platform.fmspc}, TCB ${tcb.status}${advisories}.`
}

/** The simulator's root has the vendor's name too, so the text names a root only for genuine evidence. */
export function describeRoot({ mode, name }: TrustedRoot): string {
  return mode === 'hardware' ? `Genuine under ${name}` : 'MOCK evidence, consistent under a simulated root'
}

/** Verifies the quote again, at another time and with collateral of that time. */
export async function checkReevaluation(
  { run }: Transcript,
  receipt: ReceiptView,
  context: SignerContext & { reevaluation: { at: Date; collateral: Uint8Array } },
): Promise<void> {
  const { at, collateral } = context.reevaluation
  await run('reevaluation', async () => {
    const quote = await context.verifier.verifyQuote({
      quote: fromHex(receipt.signer.quoteHex),
      collateral: parseCollateral(decodeUtf8(collateral)),
      at,
    })
    const { tcbStatus } = receipt.signer
    const then = tcbStatus === undefined ? '' : ` (${tcbStatus} when issued)`
    const advisories = quote.tcb.advisoryIds.length === 0 ? 'none' : quote.tcb.advisoryIds.join(', ')
    const now = `At ${at.toISOString()} the TCB status is ${quote.tcb.status}${then}; advisories: ${advisories}.`
    const { statuses = ['UpToDate'] } = context.policy
    failIf(!statuses.includes(quote.tcb.status), now)
    assertQuotePolicy(quote, context.policy)
    return [now, undefined]
  })
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new StepFailure('The collateral is not UTF-8 text.')
  }
}

/** A limit of known code with dstack: the root secret belongs to an application, not to a measurement. */
export const DSTACK_SECRET =
  'The root secret comes from dstack: the owner of the app’s contract can admit other code to the same secret.'

/**
 * Describes whether the enclave ran code that the reader knows. The step is skipped if the reader leaves a register open that can hold code,
 * because it could hold anyone's code.
 */
function checkMeasurement(
  quote: VerifiedQuote,
  { measurements, events = {} }: Pick<Anchors, 'measurements' | 'events'>,
  { rootSecret }: { rootSecret: string },
): string {
  const mrTd = `MRTD ${toHex(quote.body.mrTd)}`
  if (!measurements?.length) throw new StepSkip(`No measurements to compare ${mrTd} with.`)
  assertQuotePolicy(quote, { ...acceptAnyState(quote), measurements })
  const isDstack = rootSecret === 'dstack'
  const matching = measurements.filter((measurement) => isMeasuredAs(quote.body, measurement))
  const isWhole = matching.some((measurement) => findOpenRegisters(measurement).length === 0)
  // RTMR3 covers all events. So the reader's events, which may belong to another release on dstack, are not required.
  if (isDstack || !isWhole) assertQuotePolicy(quote, { ...acceptAnyState(quote), events })
  const [open = []] = matching
    .map((measurement) => findOpenRegisters(measurement, events))
    .toSorted((one, other) => one.length - other.length)
  if (open.length > 0) {
    throw new StepSkip(`${mrTd} is among the anchors, but they do not name ${describeRegisters(open)}.`)
  }
  const openEvents = findOpenEvents(events)
  // RTMR3 doesn't show which application it was and which key provider it used. Simulated hardware records no events.
  if (isDstack && openEvents.length > 0 && quote.root.mode === 'hardware') {
    const names = joinWords(openEvents)
    throw new StepSkip(`All registers are among the anchors, but they do not name dstack’s events ${names}.`)
  }
  const known = `${mrTd} and all other code registers are among the anchors.`
  return isDstack ? `${known} ${DSTACK_SECRET}` : known
}

function describeRegisters(registers: readonly string[]): string {
  const names = registers.map((name) => name.toUpperCase())
  const alternative = registers.includes('rtmr3') ? ` (for RTMR3, the events ${joinWords(codeEvents)} are enough)` : ''
  return `${joinWords(names)}${alternative}`
}

function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** For steps that check only the code. Another step checks the state. */
function acceptAnyState({ tcb }: VerifiedQuote): QuotePolicy {
  return { statuses: [tcb.status], allowSeptVe: true, allowMigratable: true, allowPerfmon: true, allowTpa: true }
}
