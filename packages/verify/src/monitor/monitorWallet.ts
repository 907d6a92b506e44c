import { createVerifier } from '@countersign/attestation'
import { assertChain, chooseContract } from '../createChain.ts'
import { createRpc, limitRpc, unavailable } from '../createRpc.ts'
import { VerifierError } from '../errors.ts'
import { trustedRoots } from '../verify.ts'
import { checkReceipts, findNamed } from './checkReceipts.ts'
import { checkSteps, type MonitorMemory, type Step } from './checkSteps.ts'
import { type AccountReader, createAccountReader, type Head, type MinedTransaction } from './createAccountReader.ts'
import type { Finding } from './findings.ts'
import { findNonceUse, type NonceUse } from './findNonceUse.ts'
import { listEvents, type WalletEvent } from './listEvents.ts'
import { mapConcurrently } from './mapConcurrently.ts'
import { type MonitorDeps, type MonitorRequest, monitorLogs } from './monitorLogs.ts'
import { readAnchors } from './readAnchors.ts'
import { concludeReport, findCompleteTo, type MonitorReport } from './report.ts'

const DEFAULT_GRACE_S = 600
/** A whole block of a busy chain, with all calldata. */
const MAX_ANSWER_BYTES = 33_554_432
/** The number of small requests to a node in one run. */
const MAX_QUESTIONS = 100_000
/** The number of nonces without a receipt that are searched for, each with some twenty requests. More wouldn't change the conclusion. */
const MAX_SEARCHES = 16
/** Recent blocks that may still be replaced. */
const UNSETTLED_BLOCKS = 64

export function createMonitorMemory(): MonitorMemory {
  return {
    settled: new Map(),
    accepted: new Map(),
    verifier: createVerifier({ roots: trustedRoots() }),
    anchors: new Map(),
  }
}

/**
 * Checks whether everything that a wallet did on a chain has a valid receipt. Each used nonce must belong to a transaction or authorization
 * that an event or an anchor names and whose receipt verifies. With a log, each entry of the wallet's key must also have a receipt, or be
 * erased. Rejects with a `VerifierError` if the node is unavailable or contradicts itself. All other problems are in the report.
 *
 * @example
 * const { conclusion, findings } = await monitorWallet({ fetchBytes, now }, { address, rpc, manifests, gateways })
 */
export async function monitorWallet(deps: MonitorDeps, request: MonitorRequest): Promise<MonitorReport> {
  const { address, rpc: url, eventsRpc: eventsUrl = url, contract, manifests, graceS = DEFAULT_GRACE_S } = request
  const { memory = createMonitorMemory() } = deps
  const rpc = limitRpc(createRpc(deps, { url, maxAnswerBytes: MAX_ANSWER_BYTES }), MAX_QUESTIONS)
  const eventsRpc = eventsUrl === url ? rpc : limitRpc(createRpc(deps, { url: eventsUrl }), MAX_QUESTIONS)
  await assertChain(rpc, request.chainId)
  const chainId = await rpc.getChainId()
  const reader = createAccountReader(rpc, { address, chainId })
  const source = await chooseContract(eventsRpc, { contract, manifests })
  await assertChain(eventsRpc, source.chainId)

  const head = await reader.getHead()
  const nonce = await reader.getCount(head.number)
  const fromNonce = await readFromNonce(reader, { from: request.from, nonce })
  const code = await reader.getCode(head.number)
  // An event after the head block may still be about something before it.
  const eventsHead = await createAccountReader(eventsRpc, { address, chainId: 0 }).getHead()
  const range = { fromBlock: source.fromBlock, toBlock: eventsHead.number }
  const listed = await listEvents(eventsRpc, { contract: source.contract, wallet: address, ...range })
  const { logContracts: contracts } = source
  const anchors = await readAnchors(deps, { rpc: eventsRpc, contracts, request, memories: memory.anchors })
  const events = groupEvents([...listed, ...anchors.events])

  const { known, otherReceipts } = await readKnown(reader, { hashes: [...events.keys()], head, nonce, memory })
  // The chain that is behind determines what is recent: its later events can't exist yet, and only final checkpoints count.
  const publishedTime = anchors.finalTime ?? eventsHead.time
  const aged = { ...head, time: new Date(Math.min(head.time.getTime(), publishedTime.getTime())) }
  const { steps, findings } = await findRest(reader, {
    known,
    head: aged,
    nonce,
    fromNonce,
    graceS,
    events,
    otherReceipts,
    isWhole: anchors.isWhole,
  })
  const { maxReceipts = Number.POSITIVE_INFINITY } = request
  const check = ({ hash, use }: Step) =>
    checkReceipts(
      { ...deps, rpc: eventsRpc, verifier: memory.verifier },
      {
        txHash: hash,
        isMined: use !== undefined,
        events: events.get(hash) ?? [],
        contract: source.contract,
        logContracts: contracts,
        request,
      },
    )
  const countNamed = ({ hash }: Step) => findNamed(events.get(hash) ?? []).length
  const checks = { memory, check, countNamed }
  const onChain = await checkSteps(deps, { ...checks, steps: steps.toSorted(compareNonces), maxReceipts })
  await assertSameHead(reader, head)
  const names = new Set(steps.map(({ hash }) => hash))
  const logged = await monitorLogs(deps, {
    request,
    onChain,
    headTime: publishedTime,
    graceS,
    mined: names,
    trees: [...anchors.trees.values()],
    isWhole: anchors.isWhole,
    checkRest: async () => {
      const hashes = [...events.keys()].filter((hash) => !names.has(hash))
      const rest = await checkSteps(deps, {
        ...checks,
        steps: hashes.map((hash) => ({ hash, use: undefined })),
        maxReceipts: maxReceipts - onChain.checked,
      })
      // The skipped ones matter only for the log.
      const leftOut = new Set([...known.values()].flatMap((one) => (one.nonce < fromNonce ? [one.hash] : [])))
      return { ...rest, findings: rest.findings.filter(({ txHash = '' }) => !leftOut.has(txHash)) }
    },
  })

  const all: Finding[] = [...findings, ...anchors.findings, ...onChain.findings, ...logged.findings].toSorted(
    (a, b) => (a.nonces?.[0] ?? 0) - (b.nonces?.[0] ?? 0),
  )
  if (code !== '0x') all.push(toCodeFinding(code))
  // Events whose receipts were checked and not accepted have separate findings.
  const isKnown = [...events.keys()].some((hash) => memory.accepted.has(hash))
  if (events.size === 0 || (!isKnown && concludeReport(all) === 'complete')) all.push({ kind: 'wallet-unknown' })
  return {
    address,
    chainId,
    head,
    fromNonce,
    nonce,
    proven: countProven(steps, memory),
    completeTo: findCompleteTo(all, nonce),
    otherReceipts,
    logs: logged.logs,
    findings: all,
    conclusion: concludeReport(all),
  }
}

async function readFromNonce(
  reader: AccountReader,
  { from, nonce }: { from: MonitorRequest['from']; nonce: number },
): Promise<number> {
  if (from === undefined) return 0
  const first = 'nonce' in from ? from.nonce : from.block === 0 ? 0 : await reader.getCount(from.block - 1)
  if (first <= nonce) return first
  throw new VerifierError('invalid_arguments', 'the wallet has not used this many nonces', {
    details: `the first nonce to check is ${first}, but the next unused one is ${nonce}`,
  })
}

function groupEvents(events: readonly WalletEvent[]): Map<string, WalletEvent[]> {
  const groups = new Map<string, WalletEvent[]>()
  for (const event of events) groups.set(event.txHash, [...(groups.get(event.txHash) ?? []), event])
  return groups
}

/** The transactions that events name, by nonce. They don't need the state of old blocks. */
async function readKnown(
  reader: AccountReader,
  parameters: { hashes: readonly string[]; head: Head; nonce: number; memory: MonitorMemory },
) {
  const { hashes, head, nonce, memory } = parameters
  const known = new Map<number, MinedTransaction>()
  let otherReceipts = 0
  const found = await mapConcurrently(
    hashes,
    async (hash) => memory.settled.get(hash) ?? (await reader.getTransaction(hash)),
  )
  for (const transaction of found) {
    if (transaction === undefined) otherReceipts += 1
    // Mined after the head: the next run includes it.
    if (transaction === undefined || transaction.blockNumber > head.number) continue
    if (transaction.nonce >= nonce) {
      throw reader.contradiction(`it counts ${nonce} transactions, but has one with nonce ${transaction.nonce}`)
    }
    const other = known.get(transaction.nonce)
    if (other !== undefined) {
      throw reader.contradiction(`${other.hash} and ${transaction.hash} are both mined, with nonce ${other.nonce}`)
    }
    known.set(transaction.nonce, transaction)
    if (transaction.blockNumber <= head.number - UNSETTLED_BLOCKS) memory.settled.set(transaction.hash, transaction)
  }
  return { known, otherReceipts }
}

/** The use of each nonce, and the findings for nonces that no event names. */
async function findRest(
  reader: AccountReader,
  parameters: {
    known: ReadonlyMap<number, MinedTransaction>
    head: Head
    nonce: number
    fromNonce: number
    graceS: number
    events: ReadonlyMap<string, unknown>
    otherReceipts: number
    isWhole: boolean
  },
): Promise<{ steps: Step[]; findings: Finding[] }> {
  const { known, head, nonce: end, fromNonce, events } = parameters
  const steps: Step[] = []
  const findings: Finding[] = []
  const missing: number[] = []
  for (let nonce = fromNonce; nonce < end; nonce++) {
    const transaction = known.get(nonce)
    if (transaction === undefined) missing.push(nonce)
    else steps.push({ hash: transaction.hash, use: { ...transaction, isAuthorization: false } })
  }
  const nonces = [...known.keys()].toSorted((a, b) => a - b)
  for (const nonce of missing.slice(0, MAX_SEARCHES)) {
    const earlier = known.get(nonces.findLast((other) => other < nonce) ?? -1)
    const later = known.get(nonces.find((other) => other > nonce) ?? -1)
    const use = await findNonceUse(reader, {
      nonce,
      head,
      before: earlier === undefined ? -1 : earlier.blockNumber - 1,
      until: later?.blockNumber ?? head.number,
    })
    if ('hashes' in use && use.hashes.every((hash) => events.has(hash))) {
      const { hashes, blockNumber, kind } = use
      const step = { nonce, blockNumber, isAuthorization: kind === 'authorization' }
      steps.push(...hashes.map((hash) => ({ hash, use: step })))
    } else findings.push(...(await toFindings(reader, { ...parameters, nonce, use })))
  }
  const rest = missing.slice(MAX_SEARCHES)
  const [first, last] = [rest[0], rest.at(-1)]
  if (first !== undefined && last !== undefined) {
    findings.push({ kind: 'not-judged', nonces: [first, last], detail: `${rest.length} more are without a receipt` })
  }
  return { steps, findings }
}

async function toFindings(
  reader: AccountReader,
  parameters: {
    nonce: number
    use: NonceUse
    head: Head
    graceS: number
    events: ReadonlyMap<string, unknown>
    otherReceipts: number
    isWhole: boolean
  },
): Promise<Finding[]> {
  const { nonce, use, head, graceS, events, otherReceipts, isWhole } = parameters
  const nonces = [nonce, nonce] as const
  // An unread anchor may list the receipt.
  const isYoung = (time: Date) => !isWhole || head.time.getTime() - time.getTime() < graceS * 1000
  switch (use.kind) {
    case 'code':
      return [{ kind: 'used-by-code', nonces, blockNumber: use.blockNumber }]
    case 'not-shown': {
      // Another receipt may belong to it, or one that is still to come.
      const { time } = await reader.getBlock(use.untilBlock)
      const isClear = otherReceipts === 0 && !isYoung(time)
      return [{ kind: isClear ? 'no-receipt' : 'not-shown', nonces, detail: use.detail }]
    }
    default: {
      const { hashes, blockNumber, time } = use
      const kind = isYoung(time) ? 'awaited' : 'no-receipt'
      return hashes.filter((hash) => !events.has(hash)).map((txHash) => ({ kind, nonces, txHash, blockNumber }))
    }
  }
}

/** If several may have used a nonce, every receipt must be accepted. */
function countProven(steps: readonly Step[], { accepted }: MonitorMemory): number {
  const nonces = new Set(steps.map(({ use }) => use?.nonce))
  for (const { hash, use } of steps) if (!accepted.has(hash)) nonces.delete(use?.nonce)
  return nonces.size
}

function compareNonces({ use: a }: Step, { use: b }: Step): number {
  return (a?.nonce ?? 0) - (b?.nonce ?? 0)
}

function toCodeFinding(code: string): Finding {
  const delegate = /^0xef0100([0-9a-f]{40})$/.exec(code)?.[1]
  return { kind: 'code', ...(delegate === undefined ? {} : { detail: `0x${delegate}` }) }
}

async function assertSameHead(reader: AccountReader, { number, hash }: Head) {
  if ((await reader.getBlock(number)).hash === hash) return
  throw unavailable('the chain was reorganised while it was read; run the monitor again')
}
