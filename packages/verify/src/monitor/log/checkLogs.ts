import { findCosignatures, LogError, parseNote, type WitnessPolicy } from '@countersign/log'
import { equalBytes, toPrefixedHex } from '@countersign/protocol'
import type { FetchBytes } from '../../fetchBytes.ts'
import type { AnchoredTree } from '../../findAnchors.ts'
import type { ReceiptFacts } from '../checkReceipts.ts'
import type { CheckedFacts } from '../checkSteps.ts'
import type { Finding } from '../findings.ts'
import type { LogReport } from '../report.ts'
import type { ListedLog, LogSource } from './createLogSource.ts'
import { LogFault, lies, withholds } from './createLogSource.ts'
import { type KnownLog, type LogsMemory, listEntries } from './logMemory.ts'
import { matchEntries } from './matchEntries.ts'
import { type PlannedLog, planLogs } from './planLogs.ts'
import { readLog, type SeenLog } from './readLog.ts'
import { computeRoots } from './readTree.ts'
import {
  type AwaitShownDeps,
  askWitnesses,
  awaitShown,
  type CosignedSize,
  compareWitnesses,
  findSilent,
  type WitnessAnswer,
} from './witnesses.ts'

export type CheckLogsDeps = AwaitShownDeps & { fetchBytes: FetchBytes; now: () => Date; memory: LogsMemory }

export type CheckLogsParameters = {
  source: LogSource
  /** The reader's policies, in addition to those in settings. */
  policies: readonly WitnessPolicy[]
  /** Configurations that the reader's manifests list. */
  configHashes: readonly string[]
  /** The witnesses' addresses, for direct requests. */
  witnessUrls: readonly string[]
  /** All readable receipts of the wallet. */
  receipts: readonly CheckedFacts[]
  /** How many receipts could not be read. */
  unread: number
  /** Hashes mined on the monitored chain. */
  mined: ReadonlySet<string>
  /** The time on the chain with the events. */
  headTime: Date
  graceS: number
  maxEntries: number
  /** The trees on the chain. */
  trees: readonly AnchoredTree[]
}

export type CheckedLogs = { logs: readonly LogReport[]; findings: readonly Finding[] }

type CurrentLog = SeenLog & { isStale: boolean }

/** Witnesses cosign at least this often on request, and their clocks differ from the reader's by less. */
const STALE_MS = 3_600_000

/**
 * Reads the logs that may include a wallet's key, and compares their entries with its receipts. Faults of a log are findings. Undefined if
 * there is no log.
 */
export async function checkLogs(
  deps: CheckLogsDeps,
  parameters: CheckLogsParameters,
): Promise<CheckedLogs | undefined> {
  const { source, policies, receipts } = parameters
  const listed = await listLogs(source)
  const accepted = receipts.filter(({ isAccepted }) => isAccepted)
  const isListed = !(listed instanceof LogFault)
  const plan = planLogs({ receipts: accepted, listed: isListed ? listed : [], memory: deps.memory, policies })
  // Only a 404 says that the service has no log.
  if (!isListed && (plan.length > 0 || policies.length > 0 || listed.kind === 'log-unavailable')) {
    return { logs: [], findings: [{ kind: listed.kind, detail: listed.message }] }
  }
  if (plan.length === 0) return undefined

  const keyIds = new Set(receipts.map(({ keyId }) => keyId))
  const findings: Finding[] = []
  const seen: CurrentLog[] = []
  /** Whether every log that has entries, according to the service, was read to its end. */
  let isWhole = true
  for (const planned of plan) {
    try {
      const found = await checkLog(deps, { ...parameters, planned, keyIds, accepted })
      findings.push(...found.findings)
      if (found.log === undefined) {
        if ((planned.listed?.size ?? 0) > 0) isWhole = false
        continue
      }
      seen.push(found.log)
      deps.memory.known.set(planned.origin, found.log)
    } catch (error) {
      if (!(error instanceof LogFault)) throw error
      isWhole = false
      // After `log-unavailable`, the bundles are valid and the next run can use them.
      if (error.kind !== 'log-unavailable') source.forgetBundles(planned.origin)
      findings.push({ kind: error.kind, origin: planned.origin, detail: error.message })
    }
  }
  const isKeyKnown = accepted.length > 0
  const matched = matchEntries({
    isWhole,
    logs: seen,
    keyIds,
    unread: parameters.unread,
    mined: parameters.mined,
    receipts: new Map(receipts.map((receipt) => [receipt.leaf, receipt])),
    isDue: (timeMs) => parameters.headTime.getTime() - timeMs >= parameters.graceS * 1000,
  })
  return {
    logs: seen.map(({ origin, size, cosignedAt }) => {
      const counts = matched.counts.get(origin) ?? { entries: 0, proven: 0, dropped: 0 }
      return { origin, size, cosignedAt, ...counts, ...(isKeyKnown ? {} : { entries: undefined }) }
    }),
    findings: [
      ...findings,
      ...findUnlistedBoots(seen, parameters.configHashes),
      ...matched.findings,
      ...findUnlogged(
        seen,
        receipts.filter(({ isAccepted, isNotListed }) => isAccepted || isNotListed),
      ),
      ...findUnknown(seen, accepted),
    ],
  }
}

async function listLogs(source: LogSource): Promise<readonly ListedLog[] | LogFault> {
  try {
    return await source.list()
  } catch (error) {
    if (error instanceof LogFault) return error
    throw error
  }
}

async function checkLog(
  deps: CheckLogsDeps,
  parameters: CheckLogsParameters & {
    planned: PlannedLog
    keyIds: ReadonlySet<string>
    accepted: readonly ReceiptFacts[]
  },
): Promise<{ log?: CurrentLog; findings: readonly Finding[] }> {
  const { source, planned, keyIds, maxEntries, witnessUrls: urls, accepted } = parameters
  const { origin, key, policies, releasePolicies, isGuessed, listed, isExpected } = planned
  const witnesses = [...new Set([...policies, ...releasePolicies].flatMap((policy) => policy.witnesses))]
  const answers = await askWitnesses(deps, { urls, origin, key, witnesses })
  const findings = answers.flatMap((answer): Finding[] =>
    'fault' in answer ? [{ kind: answer.kind, origin, detail: `${answer.host}: ${answer.fault}` }] : [],
  )
  if (listed === undefined || listed.size === 0 || key === undefined) {
    const sizes = answers.flatMap((answer) => ('size' in answer ? [answer.size] : []))
    const cosigned = Math.max(0, ...sizes)
    if (cosigned > 0) throw withholds(`the service does not show it, and its witnesses cosigned ${cosigned} entries`)
    if (isExpected) throw withholds('the service does not show it, but it is in use')
    return { findings: [...findings, checkUnused(answers, planned)] }
  }
  if (listed.key !== key) throw lies('the service and its receipts name different keys for it')
  if (policies.length === 0) {
    const detail = 'no receipt of this wallet names its witnesses'
    return { findings: [...findings, { kind: 'log-not-checked', origin, detail }] }
  }
  const wanted = { origin, key, policies, isGuessed, keyIds: [...keyIds], maxEntries }
  const readOn = (known: KnownLog | undefined) => readLog(source, { ...wanted, known, now: deps.now() })
  const check = async (log: SeenLog) => {
    await checkProofs(source, log, accepted)
    return compareWitnesses(source, { log, answers, policies })
  }
  const first = await readOn(deps.memory.known.get(origin))
  // Checked before waiting, so that contradictions are reported at once.
  const checked = await check(first)
  const log = await awaitShown(deps, { log: first, answers, policies, readOn })
  const { isFresh } = log === first ? checked : await check(log)
  findings.push(...(await compareTrees(source, log, parameters.trees)))
  const now = deps.now()
  findings.push(...findUnshown(answers, { log, policies }), ...findOtherReleases(answers, { log, planned, now }))
  const isStale = !isFresh && now.getTime() - log.cosignedAt.getTime() > STALE_MS
  const detail = log.cosignedAt.toISOString()
  if (isStale) findings.push({ kind: 'log-stale', origin, detail })
  if (log.cosignedAt.getTime() - now.getTime() > STALE_MS) findings.push({ kind: 'log-ahead', origin, detail })
  return { log: { ...log, isStale }, findings }
}

/**
 * An enclave may write to a log that the service does not show, and witnesses may cosign it. If enough witnesses state that they cosigned
 * nothing, the rest can't form a quorum, and the enclave released nothing under this origin.
 */
function checkUnused(answers: readonly WitnessAnswer[], { origin, releasePolicies: policies }: PlannedLog): Finding {
  const unchecked = (why: string) =>
    ({ kind: 'log-not-checked', origin, detail: `the service does not show it, and ${why}` }) as const
  if (policies.length === 0) return unchecked('its witnesses are not known')
  const witnesses = findSilent(answers, { policies, size: 0 })
  if (witnesses.length === 0) return { kind: 'log-unused', origin }
  const why =
    answers.length === 0 ? 'no witness address is given' : 'too few witnesses state that they cosigned nothing in it'
  return { ...unchecked(why), witnesses }
}

/** A witness cosigned more than the log shows, and the others of a policy don't show that fewer than a quorum did. */
function findUnshown(
  answers: readonly WitnessAnswer[],
  { log: { origin, size }, policies }: { log: SeenLog; policies: readonly WitnessPolicy[] },
): Finding[] {
  const cosigned = Math.max(0, ...answers.map((answer) => ('size' in answer ? answer.size : 0)))
  if (cosigned <= size) return []
  const witnesses = findSilent(answers, { policies, size })
  const detail = `it shows ${size} entries, a witness cosigned ${cosigned}, and too few others state that they cosigned no more`
  return witnesses.length === 0 ? [] : [{ kind: 'log-not-checked', origin, witnesses, detail }]
}

/**
 * An enclave with other settings that name this log may have released more under its origin, with a quorum of other witnesses. Those
 * witnesses rule that out if they recently cosigned the log as shown, or state that they cosigned no more.
 */
function findOtherReleases(
  answers: readonly WitnessAnswer[],
  { log, planned, now }: { log: SeenLog; planned: PlannedLog; now: Date },
): Finding[] {
  const { origin, size } = log
  const met = new Set(planned.policies.map(toPolicyText))
  const policies = planned.releasePolicies.filter((policy) => !met.has(toPolicyText(policy)))
  const witnesses = findSilent([...answers, ...readCosigners(log, { policies, now })], { policies, size })
  const detail = 'a receipt names other witnesses of it, and too few of them state that they cosigned no more'
  return witnesses.length === 0 ? [] : [{ kind: 'log-not-checked', origin, witnesses, detail }]
}

function toPolicyText({ witnesses, quorum }: WitnessPolicy): string {
  return `${quorum} ${witnesses.join()}`
}

/** Witnesses of these policies that cosigned the log recently. */
function readCosigners(
  { size, note }: SeenLog,
  { policies, now }: { policies: readonly WitnessPolicy[]; now: Date },
): CosignedSize[] {
  const witnesses = [...new Set(policies.flatMap((policy) => policy.witnesses))]
  try {
    return findCosignatures(parseNote(note), witnesses)
      .filter(({ timestampS }) => Math.abs(now.getTime() - 1000 * timestampS) <= STALE_MS)
      .map(({ witness }) => ({ witness, size }))
  } catch (error) {
    if (error instanceof LogError) return []
    throw error
  }
}

/** Without an accepted receipt, the wallet's key and the logs of its enclave are unknown: any signature in a log may belong to it. */
function findUnknown(logs: readonly SeenLog[], receipts: readonly ReceiptFacts[]): Finding[] {
  const isNamed = receipts.some(({ log }) => log !== undefined)
  return [
    ...(logs.length === 0 || isNamed ? [] : [{ kind: 'logs-unknown' } as const]),
    ...(receipts.length > 0 ? [] : logs).flatMap(({ origin, size, tables, entries }): Finding[] => {
      const boots = [...entries.values()].filter(({ kind }) => kind === 'boot').length
      const count = size - boots - tables
      return count === 0 ? [] : [{ kind: 'key-unknown', origin, count }]
    }),
  ]
}

/** Each receipt has a position in a tree that a quorum cosigned. Both must match this log. */
async function checkProofs(source: LogSource, log: SeenLog, receipts: readonly ReceiptFacts[]): Promise<void> {
  const { origin } = log
  const own = receipts.flatMap((receipt) => (receipt.log?.origin === origin ? [{ ...receipt, log: receipt.log }] : []))
  const largest = own.reduce((size, receipt) => Math.max(size, receipt.log.size), 0)
  const inside = own.filter((receipt) => receipt.log.size <= log.size)
  const sizes = inside.map((receipt) => receipt.log.size)
  const roots = await computeRoots(source, { origin, tree: log, sizes })
  for (const { log: logged, txHash, leaf, keyId, signedAtMs } of inside) {
    if (!equalBytes(roots.get(logged.size) as Uint8Array, logged.root)) {
      throw lies(`it shows two histories: the receipt of ${txHash} is in another tree of ${logged.size} entries`)
    }
    const entry = log.entries.get(logged.index)
    const isIt = entry?.kind === 'signature' && entry.leaf === leaf && entry.keyId === keyId
    if (!isIt || entry.timeMs !== signedAtMs)
      throw lies(`its entry ${logged.index} differs from the receipt of ${txHash}`)
  }
  if (largest > log.size) throw withholds(`it shows ${log.size} entries, but a receipt is in a tree of ${largest}`)
}

/** The chain accepts only one history of a log, so the newest tree stands for all earlier ones. */
async function compareTrees(source: LogSource, log: SeenLog, trees: readonly AnchoredTree[]): Promise<Finding[]> {
  const { origin, size } = log
  const own = trees.filter((tree) => tree.origin === origin)
  const inside = own.filter((tree) => tree.size <= size)
  const roots = await computeRoots(source, { origin, tree: log, sizes: inside.map((tree) => tree.size) })
  const other = inside.find((tree) => toPrefixedHex(roots.get(tree.size) as Uint8Array) !== tree.root)
  if (other !== undefined) {
    return [{ kind: 'anchor-contradicts', origin, detail: `it has another root at ${other.size} entries` }]
  }
  const largest = Math.max(0, ...own.map((tree) => tree.size))
  if (largest > size) throw withholds(`it shows ${size} entries, but the chain has a checkpoint of ${largest}`)
  return []
}

/** Configurations of enclave starts that the manifests don't list, once per log. */
function findUnlistedBoots(logs: readonly SeenLog[], configHashes: readonly string[]): Finding[] {
  // Without listed configurations, the reader accepts no receipt either.
  if (configHashes.length === 0) return []
  const found = new Map<string, Finding & { count: number }>()
  for (const { origin, ...log } of logs) {
    for (const { index, entry } of listEntries(log)) {
      if (entry.kind !== 'boot' || configHashes.includes(entry.configHash)) continue
      const { configHash } = entry
      const name = `${origin} ${configHash}`
      const known = found.get(name) ?? { kind: 'boot-not-listed', origin, index, configHash, count: 0 }
      found.set(name, { ...known, count: known.count + 1 })
    }
  }
  return [...found.values()]
}

/** Receipts in no log: from before there was one, or from an enclave without a log. */
function findUnlogged(logs: readonly SeenLog[], receipts: readonly ReceiptFacts[]): Finding[] {
  const boots = logs.flatMap(listEntries).filter(({ entry }) => entry.kind === 'boot')
  const firstMs = boots.reduce((first, { timeMs }) => Math.min(first, timeMs), Number.POSITIVE_INFINITY)
  const unlogged = receipts.filter(({ log }) => log === undefined)
  const before = unlogged.filter(({ signedAtMs }) => signedAtMs < firstMs)
  return [
    ...(before.length === 0 || logs.length === 0 ? [] : [{ kind: 'before-log', count: before.length } as const]),
    ...unlogged
      .filter(({ signedAtMs }) => signedAtMs >= firstMs)
      .map(({ txHash, leaf }): Finding => ({ kind: 'not-logged', txHash, leaf })),
  ]
}
