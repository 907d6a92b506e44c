import type { AttestationPublished, Hex } from '@countersign/protocol'
import { isAhead } from '../isAhead.ts'
import type { OpenPublication, PublicationTransaction, StoredTransaction } from '../store/publications.ts'
import type { Clock } from '../system.ts'
import type { ChainReceipt } from './chain/answers.ts'
import { ChainError } from './chain/chainError.ts'
import type { Chain, Fees } from './chain/viemChain.ts'
import { type PublishDeps, sendStored } from './publish.ts'

export type ConfirmDeps = PublishDeps & {
  /** Blocks from the one that has the transaction on, itself included. */
  confirmations: number
  /** Made once for a process. A new one only makes some decisions wait longer. */
  sightings: Sightings
}

/** What must hold for many blocks, or for long, before it is believed, with the block, or block and time, where it was first seen. */
type Sightings = {
  /** By publication: its nonce is used, and by none of its transactions. */
  taken: Map<number, Holding>
  /** By pending publication: none of its transactions is mined. */
  unmined: Map<number, Holding>
  /** By pending publication: it is mined for good, and its events are not as they should be. */
  missed: Map<number, Holding>
  /** By nonce: the next one of the account, and no publication has it, though later ones wait. */
  gaps: Map<number, number>
  /** By publication: when its events were last looked for, where that did not settle it. */
  searched: Map<number, number>
  /** By confirmed publication: the transaction and the block that has it. While the chain has this very block, it has both. */
  watched: Map<number, Pick<ChainReceipt, 'hash' | 'blockNumber' | 'blockHash'>>
}

export function createSightings(): Sightings {
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
/** Blocks on top of one that is taken for final, where the chain does not report finality. */
const FINAL_DEPTH = 64
/** A search is many questions, and nodes count them. */
const SEARCH_AGAIN_MS = 300_000
/** Between our clock and that of the blocks. */
const CLOCK_MARGIN_MS = 3_600_000

/** What one run knows of the chain. */
export type Run = Omit<ConfirmDeps, 'gasPerDay'> & {
  head: { number: number; finalized: number | undefined }
  /** The account of this process, where the contract names it. */
  publisher: Hex | undefined
  /**
   * After the newest block; of any account with open publications, whether or not its key is here. They were read before any
   * receipt: whatever used a nonce below must have one by then.
   */
  nextNonceOf: (account: Hex) => number
  /** Undefined where the chain does not report it. */
  getMarket: () => Promise<Fees | undefined>
  isCanonical: (block: Pick<ChainReceipt, 'blockNumber' | 'blockHash'>) => Promise<boolean>
  /** Skips once a search has failed in this run. */
  findEvents: (...parameters: Parameters<Chain['findEvents']>) => Promise<AttestationPublished[] | 'failed' | 'skipped'>
  /** Sends stored bytes. Skips once the chain has given no answer in this run, or the account could not pay. */
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
    async findEvents(parameters) {
      if (!isSearchable) return 'skipped'
      try {
        return await chain.findEvents(parameters)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        isSearchable = false
        log.warn({ msg: 'Could not look for events', code: error.code, reason: error.details })
        return 'failed'
      }
    },
    async send(transaction) {
      // What is signed in this run is for a nonce of our own account that is not used yet.
      const { account, nonce } = publicationOf.get(transaction.hash) ?? { account: chain.account, nonce: Infinity }
      // What comes later would only wait for what could not be sent.
      if (isSilent || unpaid.has(account)) return 'skipped'
      const outcome = await sendStored(deps, transaction)
      if (outcome === 'sent') return outcome
      isSilent = outcome.code === 'chain_unavailable'
      // Nothing waits for a nonce that is used, and some nodes look at the balance before the nonce.
      if (outcome.code === 'insufficient_funds' && nonce >= nextNonceOf(account)) unpaid.add(account)
      return outcome
    },
  }
}

/** Nothing of another chain's node is believed. Who may publish now says nothing about what was published. */
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
 * The one of its transactions that is in the canonical chain. `unclear` where the node has a receipt, but not the block that the
 * receipt names: a reorganisation under way, or a lie.
 */
export async function findMined(
  run: Run,
  { mined, transactions }: OpenPublication,
): Promise<Mined | 'unclear' | 'none'> {
  const known = transactions.filter(({ hash }) => hash === mined?.txHash)
  const others = transactions.filter(({ hash }) => hash !== mined?.txHash).reverse()
  let isUnclear = false
  for (const transaction of [...known, ...others]) {
    const receipt = await run.chain.getReceipt(transaction.hash)
    if (receipt === undefined) continue
    if (await run.isCanonical(receipt)) return { transaction, receipt }
    isUnclear = true
  }
  return isUnclear ? 'unclear' : 'none'
}

export function isDeep({ head, confirmations }: Run, blockNumber: number): boolean {
  return head.number - blockNumber + 1 >= confirmations
}

/** Some chains call their newest block final; depth must be there too. */
export function isFinal(run: Run, blockNumber: number): boolean {
  const { head } = run
  const isTold = head.finalized === undefined ? head.number - blockNumber >= FINAL_DEPTH : blockNumber <= head.finalized
  return isTold && isDeep(run, blockNumber)
}

/**
 * The last question before proofs are let go into another nonce: whether any of their events is on the chain. Nodes keep events
 * apart from the index of transactions, so one that forgot a transaction still has them. `unknown` where the node cannot be asked, or
 * was asked a moment ago: no failure of the run, because the other publications do not depend on it.
 */
export async function lookForEvents(run: Run, publication: OpenPublication): Promise<'there' | 'absent' | 'unknown'> {
  const { store, clock, log, sightings } = run
  const { id, createdAt } = publication
  const searchedAt = sightings.searched.get(id)
  const again = { now: clock.now(), spanMs: SEARCH_AGAIN_MS }
  if (searchedAt !== undefined && isAhead(searchedAt + SEARCH_AGAIN_MS, again)) return 'unknown'
  sightings.searched.delete(id)
  const proofs = await store.findProofs(id)
  if (proofs.length === 0) return 'absent'
  const events = await run.findEvents({ proofs, sinceMs: createdAt - CLOCK_MARGIN_MS })
  if (events === 'skipped') return 'unknown'
  if (events.length === 0) return 'absent'
  sightings.searched.set(id, clock.now())
  if (events === 'failed') return 'unknown'
  const { hash } = publication.transactions.at(-1) ?? {}
  log.error({ msg: 'Kept a publication whose events are on the chain', hash, count: events.length })
  return 'there'
}

/** Whether stored bytes may be sent again. */
export function isDueAgain(run: Run, { sentAt }: StoredTransaction): boolean {
  return sentAt === undefined || isPast(run, sentAt, RESEND_AFTER_MS)
}

/**
 * Whether a stored moment is so long past. It may be another worker's, whose clock is a little ahead; one that is further ahead than
 * the duration was stored by a wrong clock.
 */
export function isPast({ clock }: Run, moment: number, durationMs: number): boolean {
  return !isAhead(moment + durationMs, { now: clock.now(), spanMs: 2 * durationMs })
}

function orUndefined(error: unknown): undefined {
  if (!(error instanceof ChainError)) throw error
}

/** For so long, by the clock, this process must have seen what looks like a loss before it acts on it. */
export const HOLDING_MS = 1_800_000

/** Where and when this process first saw that something holds, and when it last did. */
type Holding = { block: number; timeMs: number; lastMs: number }

/** What a run of this process goes by. */
type Look = { clock: Clock; head: { number: number } }

/** Notes that something holds now. Returns since which block, and for how long, this process has seen it hold. */
export function noteHolding(
  { clock, head }: Look,
  seen: Map<number, Holding>,
  id: number,
): { block: number; durationMs: number } {
  const now = clock.now()
  const before = seen.get(id)
  // A process that slept, or whose jobs another did, has not seen that it held all the time; one whose clock was moved cannot tell.
  const isContinued = before !== undefined && Math.abs(now - before.lastMs) <= HOLDING_MS
  const since = isContinued ? before : { block: head.number, timeMs: now }
  seen.set(id, { ...since, lastMs: now })
  return { block: since.block, durationMs: now - since.timeMs }
}

/**
 * Whether a publication is to be given up: its deadline is over, and this process has long seen the reason. The deadline alone says little:
 * it can pass while no worker runs, and of two workers one clock can be a day ahead of the other.
 */
export function isOverdue(
  run: Look & { publishDeadlineMs: number },
  seen: Map<number, Holding>,
  { id, createdAt }: Pick<OpenPublication, 'id' | 'createdAt'>,
): boolean {
  const { clock, publishDeadlineMs } = run
  const { durationMs } = noteHolding(run, seen, id)
  return clock.now() >= createdAt + publishDeadlineMs && durationMs >= Math.min(HOLDING_MS, publishDeadlineMs)
}
