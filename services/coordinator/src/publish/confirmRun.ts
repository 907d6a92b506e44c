import type { Hex } from '@countersign/protocol'
import { isAhead } from '../isAhead.ts'
import type { OpenPublication, PublicationTransaction, StoredTransaction } from '../store/publications.ts'
import type { Clock } from '../system.ts'
import type { ChainReceipt } from './chain/answers.ts'
import { ChainError } from './chain/chainError.ts'
import type { Chain, Fees } from './chain/viemChain.ts'
import type { PublishDeps } from './publish.ts'
import { sendStored } from './send.ts'

export type ConfirmDeps = PublishDeps & {
  /** Blocks from the transaction's block on, inclusive. */
  confirmations: number
  /** Created once per process. A new one only delays some decisions. */
  observations: Observations
}

/** Conditions that must last for many blocks or a long time before this process acts on them. */
type Observations = {
  /** By publication: its nonce is used, but by none of its transactions. */
  taken: Map<number, Observation>
  /** By pending publication: none of its transactions is mined. */
  unmined: Map<number, Observation>
  /** By pending publication: it is final, but its events are wrong. */
  missed: Map<number, Observation>
  /** By nonce: the block where a gap was first seen. */
  gaps: Map<number, number>
  /** By publication: the time of the last search for its events without a decision. */
  searched: Map<number, number>
  /**
   * By mined publication that isn't final: its transaction and block. While the chain has that block, it has the transaction.
   */
  watched: Map<number, Pick<ChainReceipt, 'hash' | 'blockNumber' | 'blockHash'>>
}

export function createObservations(): Observations {
  return {
    taken: new Map(),
    unmined: new Map(),
    missed: new Map(),
    gaps: new Map(),
    searched: new Map(),
    watched: new Map(),
  }
}

const RESEND_AFTER_MS = 15_000
/** Depth of a final block on chains that don't report finality. */
const FINAL_DEPTH = 64
/** Rarely, because a search takes many requests. */
const SEARCH_AGAIN_MS = 300_000
/** Between our clock and the block times. */
const CLOCK_MARGIN_MS = 3_600_000

/** The state of the chain in one run. */
export type Run = Omit<ConfirmDeps, 'gasPerDay' | 'anchoring'> & {
  head: { number: number; finalized: number | undefined }
  /** The account of this process, if it is the contract's publisher. */
  publisher: Hex | undefined
  /**
   * The nonce after the newest block, for any account with open publications. Read before any receipt, so that every transaction with a
   * lower nonce must have a receipt.
   */
  nextNonceOf: (account: Hex) => number
  /** Undefined if the chain doesn't report it. */
  getMarket: () => Promise<Fees | undefined>
  isCanonical: (block: Pick<ChainReceipt, 'blockNumber' | 'blockHash'>) => Promise<boolean>
  /** Skips after a failed search in this run. */
  search: <Event>(find: () => Promise<readonly Event[]>) => Promise<readonly Event[] | 'failed' | 'skipped'>
  /** Sends stored bytes. Skips after the chain gave no answer in this run, or the account could not pay. */
  send: (transaction: PublicationTransaction) => Promise<'sent' | ChainError | 'skipped'>
}

export type Mined = { transaction: StoredTransaction; receipt: ChainReceipt }

export async function startRun(deps: ConfirmDeps, publications: readonly OpenPublication[]): Promise<Run> {
  const { chain, log } = deps
  const publisher = await findPublisher(chain)
  const head = await chain.getHead()
  const nextNonces = new Map<Hex, number>()
  for (const account of new Set(publications.map((publication) => publication.account))) {
    nextNonces.set(account, await chain.getNonce('latest', account))
  }
  const nextNonceOf = (account: Hex) => nextNonces.get(account) ?? 0
  const publicationOf = new Map(publications.flatMap((item) => item.transactions.map(({ hash }) => [hash, item])))
  const unpaid = new Set<Hex>()
  const blockHashes = new Map<number, Promise<string | undefined>>()
  let market: Promise<Fees | undefined> | undefined
  let isSilent = false
  let isSearchable = true
  return {
    ...deps,
    head,
    publisher,
    nextNonceOf,
    getMarket() {
      market ??= chain.getFees().catch(orUndefined)
      return market
    },
    async isCanonical({ blockNumber, blockHash }) {
      const known = blockHashes.get(blockNumber) ?? chain.getBlockHash(blockNumber)
      blockHashes.set(blockNumber, known)
      return (await known) === blockHash
    },
    async search(find) {
      if (!isSearchable) return 'skipped'
      try {
        return await find()
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        isSearchable = false
        log.warn({ msg: 'Could not search for events', code: error.code, reason: error.details })
        return 'failed'
      }
    },
    async send(transaction) {
      // A transaction that was signed in this run has an unused nonce of our own account.
      const { account, nonce } = publicationOf.get(transaction.hash) ?? { account: chain.account, nonce: Infinity }
      // Later transactions would only wait for the one that could not be sent.
      if (isSilent || unpaid.has(account)) return 'skipped'
      const outcome = await sendStored(deps, transaction)
      if (outcome === 'sent') return outcome
      isSilent = outcome.code === 'chain_unavailable'
      // A used nonce doesn't block others, and some nodes check the balance before the nonce.
      if (outcome.code === 'insufficient_funds' && nonce >= nextNonceOf(account)) unpaid.add(account)
      return outcome
    },
  }
}

/** Throws for another chain's node. The current publisher says nothing about earlier publications. */
async function findPublisher(chain: Chain): Promise<Hex | undefined> {
  try {
    await chain.assertReady()
    return chain.account
  } catch (error) {
    if (!(error instanceof ChainError) || error.code !== 'publisher_not_allowed') throw error
    return undefined
  }
}

/**
 * Finds the publication's transaction in the canonical chain. `unclear` means that the node has a receipt but not its block: a
 * reorganisation, or a lie.
 */
export async function findMined(
  run: Run,
  { mined, transactions, contract }: OpenPublication,
): Promise<Mined | 'unclear' | 'none'> {
  const known = transactions.filter(({ hash }) => hash === mined?.txHash)
  const others = transactions.filter(({ hash }) => hash !== mined?.txHash).reverse()
  let isUnclear = false
  for (const transaction of [...known, ...others]) {
    const receipt = await run.chain.getReceipt(transaction.hash, contract)
    if (receipt === undefined) continue
    if (await run.isCanonical(receipt)) return { transaction, receipt }
    isUnclear = true
  }
  return isUnclear ? 'unclear' : 'none'
}

export function isDeep({ head, confirmations }: Run, blockNumber: number): boolean {
  return head.number - blockNumber + 1 >= confirmations
}

/** Also requires depth, because some chains report their newest block as final. */
export function isFinal(run: Run, blockNumber: number): boolean {
  const { head } = run
  const isReported =
    head.finalized === undefined ? head.number - blockNumber >= FINAL_DEPTH : blockNumber <= head.finalized
  return isReported && isDeep(run, blockNumber)
}

/**
 * Checks that none of the proofs' events is on the chain, before they may move to another nonce. Nodes store events apart from the
 * transaction index, so a node that lost a transaction still has its events. `unknown` means that the search failed or was recent. The run
 * continues, because other publications don't depend on it.
 */
export async function searchEvents(run: Run, publication: OpenPublication): Promise<'present' | 'absent' | 'unknown'> {
  const { store, chain, clock, log, observations } = run
  const { id, createdAt, anchor, contract } = publication
  const searchedAt = observations.searched.get(id)
  const again = { now: clock.now(), spanMs: SEARCH_AGAIN_MS }
  if (searchedAt !== undefined && isAhead(searchedAt + SEARCH_AGAIN_MS, again)) return 'unknown'
  observations.searched.delete(id)
  const proofs = await store.findProofs(id)
  if (proofs.length === 0) return 'absent'
  const sinceMs = createdAt - CLOCK_MARGIN_MS
  const events = await run.search<unknown>(async () => {
    if (anchor === undefined) return chain.findEvents({ proofs, sinceMs })
    const found = await chain.findCheckpoints({ contract, id: anchor.id, size: anchor.size, sinceMs })
    return found.filter(({ block }) => block === anchor.block)
  })
  if (events === 'skipped') return 'unknown'
  if (events.length === 0) return 'absent'
  observations.searched.set(id, clock.now())
  if (events === 'failed') return 'unknown'
  const { hash } = publication.transactions.at(-1) ?? {}
  log.error({ msg: 'Found events of a publication whose transaction is missing', hash, count: events.length })
  return 'present'
}

/** Whether stored bytes may be sent again. */
export function isDueAgain(run: Run, { sentAt }: StoredTransaction): boolean {
  return sentAt === undefined || isPast(run, sentAt, RESEND_AFTER_MS)
}

/**
 * Whether `moment` is at least `durationMs` ago. Another worker's clock may be a little ahead. A moment that is further ahead than the
 * duration came from a wrong clock and counts as past.
 */
export function isPast({ clock }: Run, moment: number, durationMs: number): boolean {
  return !isAhead(moment + durationMs, { now: clock.now(), spanMs: 2 * durationMs })
}

function orUndefined(error: unknown): undefined {
  if (!(error instanceof ChainError)) throw error
}

/** How long this process must observe an apparent loss before it acts on it. */
export const MIN_OBSERVED_MS = 1_800_000

/** The block and time of the first observation of a condition, and the time of the last one. */
type Observation = { block: number; timeMs: number; lastMs: number }

/** The clock and head that observations refer to. */
type Now = { clock: Clock; head: { number: number } }

/** Records that a condition is true now. Returns since which block and for how long this process has observed it. */
export function observe(
  { clock, head }: Now,
  observed: Map<number, Observation>,
  id: number,
): { block: number; durationMs: number } {
  const now = clock.now()
  const before = observed.get(id)
  // Starts again after a pause or a clock change: the condition may have been false in between.
  const isContinued = before !== undefined && Math.abs(now - before.lastMs) <= MIN_OBSERVED_MS
  const since = isContinued ? before : { block: head.number, timeMs: now }
  observed.set(id, { ...since, lastMs: now })
  return { block: since.block, durationMs: now - since.timeMs }
}

/**
 * Whether a publication's deadline has passed and this process has observed the reason for long enough. The deadline alone isn't enough: it
 * can pass while no worker runs, and a worker's clock can be a day ahead.
 */
export function isOverdue(
  run: Now & { publishDeadlineMs: number },
  observed: Map<number, Observation>,
  { id, createdAt }: Pick<OpenPublication, 'id' | 'createdAt'>,
): boolean {
  const { clock, publishDeadlineMs } = run
  const { durationMs } = observe(run, observed, id)
  return clock.now() >= createdAt + publishDeadlineMs && durationMs >= Math.min(MIN_OBSERVED_MS, publishDeadlineMs)
}
