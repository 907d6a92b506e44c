import { parseCheckpoint, parseNote, parseTlogProof } from '@countersign/log'
import { hashLeaf, type LogSetting, ServiceError, toHex, type VaultBudget } from '@countersign/protocol'
import { type AnyReceipt, isCid, type LogContract, parseBlock } from '@countersign/receipt'
import type { Chain } from '../createChain.ts'
import type { Rpc } from '../createRpc.ts'
import { describeError, VerifierError } from '../errors.ts'
import { type TimedLog, withBlockTime } from '../readLogs.ts'
import type { Conclusion } from '../verify.ts'
import { type Outcome, type VerifyDeps, type VerifyRequest, verify } from '../verify.ts'
import type { WalletEvent } from './listEvents.ts'

/**
 * - `unavailable`: the receipt could not be fetched, or events name too many receipts
 * - `not-listed`: the receipt is genuine, but the reader's anchors do not cover it
 */
export type ReceiptVerdict = {
  conclusion: Conclusion | 'unavailable' | 'not-listed'
  detail: string | undefined
  /** The nonce in the receipt's transaction, which its hash covers. */
  nonce: number | undefined
  /** Undefined without a readable receipt. */
  facts: ReceiptFacts | undefined
}

export type CheckReceiptsRequest = Pick<
  VerifyRequest,
  'manifests' | 'gateways' | 'api' | 'tcbStatuses' | 'allowMock' | 'maximumEventDelayS'
>

/** A transaction has one receipt, or two after a database restore. The limit keeps a publisher from wasting the monitor's time. */
const MAX_RECEIPTS = 4

/**
 * Best first. A valid receipt outweighs other events. An unavailable or unchecked receipt may turn out valid, so it comes before failures.
 */
const ORDER: readonly ReceiptVerdict['conclusion'][] = [
  ...(['accepted', 'late', 'unbounded', 'unknown-code', 'mock', 'incomplete'] as const),
  ...(['unavailable', 'not-listed', 'contradicted', 'failed'] as const),
]

/**
 * Checks the receipts that these events name for a transaction or authorization, best first, with the verifier's own code and the
 * chain data read before. Each accepted receipt counts: a transaction that was signed again has one for each of its log entries.
 */
export async function checkReceipts(
  deps: Pick<VerifyDeps, 'fetchBytes' | 'now' | 'verifier'> & { rpc: Rpc },
  { txHash, isMined, events, contract, logContracts, request }: CheckReceiptsParameters,
): Promise<readonly [ReceiptVerdict, ...ReceiptVerdict[]]> {
  const named = findNamed(events)
  const checked: ReceiptVerdict[] = []
  for (const event of named.slice(0, MAX_RECEIPTS)) {
    const chain = toReadChain(deps.rpc, { event, contract, logContracts, isMined })
    checked.push(await checkOne({ ...deps, chain }, request, txHash))
  }
  if (named.length > MAX_RECEIPTS) {
    const detail = `only ${MAX_RECEIPTS} of ${named.length} receipts are checked`
    checked.push({ conclusion: 'unavailable', detail, ...NOTHING })
  }
  const [best, ...others] = checked.toSorted((a, b) => ORDER.indexOf(a.conclusion) - ORDER.indexOf(b.conclusion))
  return [best ?? { conclusion: 'failed', detail: 'the event names no receipt', ...NOTHING }, ...others]
}

export type CheckReceiptsParameters = {
  txHash: string
  /** Whether it is mined on the monitored chain. */
  isMined: boolean
  events: readonly WalletEvent[]
  contract: string
  logContracts: readonly LogContract[]
  request: CheckReceiptsRequest
}

const NOTHING = { nonce: undefined, facts: undefined }

/**
 * The first event for each receipt, oldest first. A publisher can write any text and any number of events. Texts that are not CIDs must not
 * displace a receipt, and later events don't change its time.
 */
export function findNamed(events: readonly WalletEvent[]): WalletEvent[] {
  const first = new Map<string, WalletEvent>()
  for (const event of events.toSorted((a, b) => a.log.blockNumber - b.log.blockNumber)) {
    if (isCid(event.ipfsCid) && !first.has(event.ipfsCid)) first.set(event.ipfsCid, event)
  }
  return [...first.values()]
}

async function checkOne(deps: VerifyDeps, request: CheckReceiptsRequest, txHash: string): Promise<ReceiptVerdict> {
  try {
    const outcome = await verify(deps, { ...request, subject: { kind: 'transaction', txHash } })
    const conclusion = outcome.isNotListed ? 'not-listed' : outcome.conclusion
    return { conclusion, detail: findFault(outcome), nonce: readNonce(outcome), facts: readFacts(txHash, outcome) }
  } catch (error) {
    if (!(error instanceof VerifierError) || error.code !== 'fetch_failed') throw error
    return { conclusion: 'unavailable', detail: describeError(error).message, ...NOTHING }
  }
}

function findFault({ steps, problems }: Outcome): string | undefined {
  const failed = steps.find(({ status }) => status === 'fail')
  return failed === undefined ? problems[0] : `${failed.id}: ${failed.detail}`
}

function readNonce({ receipt }: Outcome): number | undefined {
  if (receipt === undefined) return undefined
  if (receipt.version === 'countersign-attestation/1') return receipt.transaction.nonce
  return receipt.kind === 'transaction' || receipt.kind === 'authorization' ? receipt.subject.nonce : undefined
}

/** Reads nothing from the chain except the time of the block with the event or checkpoint. */
function toReadChain(
  rpc: Rpc,
  parameters: Pick<CheckReceiptsParameters, 'contract' | 'logContracts' | 'isMined'> & { event: WalletEvent },
): Chain {
  const { event, contract, logContracts, isMined } = parameters
  const { ipfsCid, log, anchor } = event
  return {
    contract,
    logContracts,
    publications: [],
    findReceipt: async () => ({ cid: ipfsCid, ...(anchor && { wallet: anchor.wallet }) }),
    findAnchor: async () => anchor && { given: anchor.given, log, isFinal: true, problems: [] },
    reader: {
      async getLogs({ topics }): Promise<readonly TimedLog[]> {
        const isAsked = topics.every((topic, index) => topic === log.topics[index]?.toLowerCase())
        return isAsked ? [await withBlockTime(rpc, log)] : []
      },
      getTransactionState: async () => (isMined ? 'mined' : 'unknown'),
    },
  }
}

/** The members of a receipt that matter for logs. */
export type ReceiptFacts = {
  /** The hash in its event. */
  txHash: string
  keyId: string
  /** 32 bytes of hex: its statement's leaf hash. */
  leaf: string
  signedAtMs: number
  /** Present for a vault's transaction that was counted: the signed digest, and the count. */
  counted?: { digest: string; budget: VaultBudget } | undefined
  /** Present if its settings have a log. */
  log: LoggedFacts | undefined
}

type LoggedFacts = {
  setting: LogSetting
  /** Verifier key of its log. */
  key: string
  origin: string
  /** The enclave start that signed it, from the batch that the quote covers. */
  bootId: string
  /** The position and tree in its proof. */
  index: number
  size: number
  root: Uint8Array
}

/** Undefined without a readable receipt and statement. Its facts about a log are only as reliable as the verdict on it. */
function readFacts(txHash: string, { receipt, blocks }: Pick<Outcome, 'receipt' | 'blocks'>): ReceiptFacts | undefined {
  if (receipt === undefined) return undefined
  const { statement } = receipt.signer
  const leaf = readOrUndefined(() => toHex(hashLeaf(statement)))
  if (leaf === undefined) return undefined
  const signedAtMs = new Date(statement.signedAt).getTime()
  const proof = 'log' in receipt ? receipt.log : undefined
  const { batch } = blocks
  const log = proof === undefined || batch === undefined ? undefined : readOrUndefined(() => readLogged(proof, batch))
  return { txHash, keyId: statement.keyId, leaf, signedAtMs, log, counted: readCounted(receipt) }
}

function readCounted(receipt: AnyReceipt): ReceiptFacts['counted'] {
  if (!('kind' in receipt) || receipt.kind !== 'transaction') return undefined
  const { budget, digestSigned: digest } = receipt.subject
  return budget && { digest, budget }
}

function readLogged(proof: string, batch: Uint8Array): LoggedFacts | undefined {
  const { settings, logKey, bootId } = parseBlock('batch', batch)
  if (settings.log === null || logKey === undefined) return undefined
  const { index, checkpoint } = parseTlogProof(proof)
  const { origin, size, root } = parseCheckpoint(parseNote(checkpoint).text)
  return { setting: settings.log, key: logKey, origin, bootId, index, size, root }
}

/** A publisher can pin anything as a receipt. Returns undefined if it can't be read: the verification step reports the reason. */
function readOrUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
