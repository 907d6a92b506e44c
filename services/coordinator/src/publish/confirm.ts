import type { AttestationPublished } from '@countersign/protocol'
import type { PublishedAnchor } from '../store/anchors.ts'
import type { OpenPublication, StoredTransaction } from '../store/publications.ts'
import type { ChainReceipt } from './chain/answers.ts'
import { ChainError } from './chain/chainError.ts'
import type { Call, Chain, Fees } from './chain/viemChain.ts'
import {
  type ConfirmDeps,
  findMined,
  isDeep,
  isDueAgain,
  isFinal,
  isOverdue,
  isPast,
  MIN_OBSERVED_MS,
  type Mined,
  observe,
  type Run,
  searchEvents,
  startRun,
} from './confirmRun.ts'
import { withMargin } from './send.ts'

/** One unreadable publication must not stop the others, but a chain that is down must not be asked for each. */
const MAX_FAILURES = 3

/**
 * Checks every publication that isn't final, in the order of nonces. Completes those that are mined and deep enough, and sends the others
 * again. It sends only stored bytes, and a replacement reuses the nonce, so at most one transaction per publication is mined.
 *
 * Two decisions are irreversible, because they move proofs to another nonce: that a transaction reverted, and that another sender used the
 * nonce. They wait for finality. So does every decision about a publication with a competing cancel.
 *
 * Throws errors that the job queue should retry.
 */
export async function confirmPublications(deps: ConfirmDeps): Promise<{ open: number }> {
  const { store, chain, log } = deps
  const publications = await store.findOpen(chain.chainId)
  if (publications.length === 0) return { open: 0 }
  const run = await startRun(deps, publications)
  const ids = new Set(publications.map(({ id }) => id))
  const { taken, unmined, missed, searched, watched } = run.observations
  for (const seen of [taken, unmined, missed, searched, watched]) {
    for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id)
  }
  // Mined publications that wait for confirmations come first. Hundreds of others may each need a request.
  const isAwaited = ({ status, account, nonce }: OpenPublication) =>
    status === 'pending' && nonce < run.nextNonceOf(account)
  let open = publications.length
  const failures: unknown[] = []
  for (const publication of publications.toSorted((one, two) => Number(isAwaited(two)) - Number(isAwaited(one)))) {
    try {
      if (await confirmPublication(run, publication)) open -= 1
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      log.warn({ msg: 'Could not confirm a publication', code: error.code, reason: error.details })
      failures.push(error)
      if (failures.length >= MAX_FAILURES) break
    }
  }
  if (failures.length > 0) throw failures[0]
  await fillNonceGap(run, publications)
  return { open }
}

/** Returns whether the publication needs no further check. */
async function confirmPublication(run: Run, publication: OpenPublication): Promise<boolean> {
  const { chain, log, observations } = run
  const { id, status, account, nonce, contract } = publication
  if (isAwaitingFinality(run, publication)) return false
  if (await isUnmoved(run, publication)) return finishIfFinal(run, publication)
  const found = await findMined(run, publication)
  const isTaken = found === 'none' && nonce < run.nextNonceOf(account)
  if (!isTaken) observations.taken.delete(id)
  if (typeof found === 'object') observations.unmined.delete(id)
  if (status === 'confirmed') {
    if (typeof found === 'object') return watchConfirmed(run, publication, found)
    await resendConfirmed(run, publication)
    return false
  }
  // This process can't see another contract's events. Continues if none are needed, because all later nonces wait for this one.
  const needsEvents = typeof found === 'object' ? found.transaction.kind === 'publish' : isTaken
  if (needsEvents && publication.anchor === undefined && contract !== chain.contract) {
    log.error({ msg: 'Skipped a publication of another contract', address: contract })
    return false
  }
  if (typeof found === 'object') return completePending(run, publication, found)
  if (isTaken) return checkForeignUse(run, publication)
  await resendPending(run, publication)
  return false
}

/** Completes a pending publication that is mined. Returns whether it needs no further check. */
async function completePending(
  run: Run,
  publication: OpenPublication,
  { transaction, receipt }: Mined,
): Promise<boolean> {
  const { store, log, observations } = run
  const { id } = publication
  const { hash, blockNumber } = receipt
  const at = { id, txHash: hash, blockNumber }
  const { anchor } = publication
  const isContested = publication.transactions.some(({ kind }) => kind === 'cancel')
  if (anchor !== undefined && !isFinal(run, blockNumber)) {
    observations.watched.set(id, { hash, blockNumber, blockHash: receipt.blockHash })
    return false
  }
  if (!(isContested ? isFinal(run, blockNumber) : isDeep(run, blockNumber))) return false

  if (transaction.kind === 'cancel') {
    const isMoved =
      anchor === undefined
        ? await store.fail({ ...at, status: 'cancelled', failure: 'publish_cancelled' })
        : await store.release({ ...at, status: 'cancelled' })
    if (isMoved) log.warn({ msg: 'Cancelled a publication', hash, code: 'publish_cancelled' })
    return true
  }
  if (receipt.isSuccess) {
    const proofs = await store.findProofs(id)
    const isThere = anchor === undefined ? isSame(receipt.events, proofs) : hasCheckpoint(receipt, anchor)
    if (isThere) {
      if (await store.confirm(at)) log.info({ msg: 'Confirmed a publication', hash, count: proofs.length })
      // A checkpoint is final when it is confirmed.
      return anchor === undefined ? false : finishIfFinal(run, { id, mined: { txHash: hash, blockNumber } })
    }
    log.error({ msg: 'A publication lacks events', hash, count: receipt.events.length })
  }
  if (!isFinal(run, blockNumber)) return false
  // LogWitness emits nothing if another sender published the same checkpoint.
  if (!receipt.isSuccess || anchor !== undefined) {
    const events = await searchEvents(run, publication)
    if (events === 'unknown') return false
    if (events === 'absent') {
      const { chain, publisher } = run
      // A worker whose key isn't the publisher's can't check another account's revert.
      if (publisher === undefined && publication.account !== chain.account) return false
      const isMoved =
        anchor === undefined
          ? await store.revert({ ...at, isRefused: publication.account !== publisher })
          : await store.release({ ...at, status: 'reverted' })
      if (isMoved) log.warn({ msg: 'A publication reverted', hash })
      return true
    }
  }
  // Some events may be on the chain although the node denies it, so these proofs are never published again.
  if (!isOverdue(run, observations.missed, publication)) return false
  await store.fail({ ...at, status: 'reverted', failure: 'publish_unconfirmed' })
  return true
}

/**
 * Whether a checkpoint's transaction is in a block that isn't final yet. Nothing happens before that. If a reorganisation drops the
 * transaction, its nonce is unused again. A node may also have invented the block.
 */
function isAwaitingFinality(run: Run, { id, anchor, status, account, nonce }: OpenPublication): boolean {
  const seen = run.observations.watched.get(id)
  if (anchor === undefined || status !== 'pending' || seen === undefined) return false
  const isThere = nonce < run.nextNonceOf(account) && seen.blockNumber <= run.head.number
  if (isThere && !isFinal(run, seen.blockNumber)) return true
  run.observations.watched.delete(id)
  return false
}

function hasCheckpoint({ checkpoints }: ChainReceipt, { id, size, block }: PublishedAnchor): boolean {
  return checkpoints.some((event) => event.id === id && event.size === size && event.block === block)
}

/** Whether the chain still has the block in which this process last saw a confirmed publication. One request serves all of a block. */
async function isUnmoved({ observations, isCanonical }: Run, { id, mined }: OpenPublication): Promise<boolean> {
  const seen = observations.watched.get(id)
  const isSame = seen !== undefined && seen.hash === mined?.txHash && seen.blockNumber === mined.blockNumber
  if (isSame && (await isCanonical(seen))) return true
  observations.watched.delete(id)
  return false
}

/** Follows a confirmed publication until it is final. Returns whether it is. */
async function watchConfirmed(
  run: Run,
  publication: OpenPublication,
  { transaction, receipt }: Mined,
): Promise<boolean> {
  const { store, log, observations } = run
  const { id, mined } = publication
  const { hash, blockNumber, blockHash } = receipt
  if (transaction.kind === 'cancel' || !receipt.isSuccess) {
    log.error({ msg: 'Lost the events of complete proofs to a reorganisation', hash })
    return false
  }
  if (hash !== mined?.txHash || blockNumber !== mined.blockNumber) {
    await store.move({ id, txHash: hash, blockNumber })
    log.warn({ msg: 'A publication moved to another block', hash })
  }
  observations.watched.set(id, { hash, blockNumber, blockHash })
  return finishIfFinal(run, { id, mined: { txHash: hash, blockNumber } })
}

/** Returns whether the publication is final. */
async function finishIfFinal(run: Run, { id, mined }: Pick<OpenPublication, 'id' | 'mined'>): Promise<boolean> {
  if (mined === undefined || !isFinal(run, mined.blockNumber)) return false
  await run.store.finish({ id })
  return true
}

/** Whether the events are exactly the proofs, each once. */
function isSame(events: readonly AttestationPublished[], proofs: readonly AttestationPublished[]): boolean {
  const toKeys = (list: readonly AttestationPublished[]) =>
    list.map(({ wallet, txHash, ipfsCid }) => `${wallet}/${txHash}/${ipfsCid}`.toLowerCase()).sort()
  return toKeys(events).join() === toKeys(proofs).join()
}

const BUMP_AFTER_MS = 60_000
/** Higher fees than this multiple of the market's don't help, and could drain the account. */
const MAX_TIMES_MARKET = 4n

/** Resends a confirmed publication that dropped out of the chain. Its proofs stay complete, so it is never cancelled. */
async function resendConfirmed(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.findLast(({ kind }) => kind === 'publish')
  if (newest === undefined || !isDueAgain(run, newest)) return
  const market = await run.getMarket()
  const mustRaise = isOld(run, newest) && isBelow(newest, market)
  const isRaised = mustRaise && (await replace(run, publication, newest, { kind: 'publish', market }))
  if (!isRaised) await sendOrRaise(run, publication, newest)
}

/** Resends, raises or cancels a pending publication that isn't mined as far as the node knows. */
async function resendPending(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.at(-1)
  if (newest === undefined) return
  const isOver = isOverdue(run, run.observations.unmined, publication)
  const market = isOver || isOld(run, newest) ? await run.getMarket() : undefined
  const isCancelled = isOver && newest.kind === 'publish'
  const mustReplace = isCancelled || isStuck(run, publication, newest, market)
  const kind = isCancelled ? 'cancel' : newest.kind
  if (mustReplace && (await replace(run, publication, newest, { kind, market }))) return
  if (isDueAgain(run, newest)) await sendOrRaise(run, publication, newest)
}

/** Sends stored bytes, and raises their fees if the node finds them too low. */
async function sendOrRaise(run: Run, publication: OpenPublication, newest: StoredTransaction): Promise<void> {
  const outcome = await run.send(newest)
  if (outcome === 'sent' || outcome === 'skipped' || outcome.code !== 'underpriced') return
  await replace(run, publication, newest, { kind: newest.kind, market: await run.getMarket() })
}

function isStuck(run: Run, { account, nonce }: OpenPublication, newest: StoredTransaction, market: Fees | undefined) {
  if (!isOld(run, newest)) return false
  // Not stuck: transactions that no node has, and those that wait for an earlier nonce, unless their fees are below the market.
  return (newest.sentAt !== undefined && nonce === run.nextNonceOf(account)) || isBelow(newest, market)
}

/** Stores and sends a replacement with higher fees: the same call, or a cancel. Returns whether it was stored. */
async function replace(
  run: Run,
  publication: OpenPublication,
  replaced: StoredTransaction,
  { kind, market }: { kind: StoredTransaction['kind']; market: Fees | undefined },
): Promise<boolean> {
  const { store, chain, clock, log } = run
  const { id, status, nonce, account, contract, calldata } = publication
  // Only the same account can replace it. Another account would publish the proofs a second time.
  if (market === undefined || account !== chain.account) return false
  const fees = bumpFees(replaced, market)
  const isSame = kind === replaced.kind
  if (isSame && fees.maxFeePerGas > MAX_TIMES_MARKET * market.maxFeePerGas) return false
  // A lying node could drive the fees up step by step. The stored transaction waits, because nodes accept no smaller raise.
  if (fees.maxFeePerGas > chain.maxFeePerGas) return false
  const call = kind === 'publish' ? { to: contract, data: calldata } : toCancel(chain)
  const gas = isSame ? replaced.gas : withMargin(await chain.estimateGas(call))
  const signed = await chain.sign({ nonce, ...call, gas, ...fees })
  const transaction = { ...signed, kind, gas, ...fees }
  if (!(await store.addTransaction({ id, status, transaction, now: clock.now() }))) return false
  log.info({ msg: 'Stored a replacement', hash: signed.hash, name: kind })
  await run.send(transaction)
  return true
}

/** A transfer of zero wei to the account itself. */
function toCancel({ account }: Pick<Chain, 'account'>): Call {
  return { to: account, data: '0x' }
}

function isOld(run: Run, { createdAt }: StoredTransaction): boolean {
  return isPast(run, createdAt, BUMP_AFTER_MS)
}

function isBelow(fees: Fees, market: Fees | undefined): boolean {
  return market !== undefined && fees.maxFeePerGas < market.maxFeePerGas
}

/** On top of the confirmations: for how many blocks a nonce must look used by another sender, or look like a gap. */
const EXTRA_BLOCKS = 12

/**
 * Handles a used nonce for which none of our transactions has a receipt. A proof that is released too early gets two events, and nodes lag.
 * So this state must last for many blocks, the first of them final, and for a long time by the clock, because blocks can be fast and final
 * at once while an index lags. Finally the node must reject each of our transactions for its nonce, not know it, and have none of its
 * events. Returns whether the publication is lost.
 */
async function checkForeignUse(run: Run, publication: OpenPublication): Promise<boolean> {
  const { store, log, observations, head } = run
  const { id } = publication
  const { block, durationMs } = observe(run, observations.taken, id)
  const newest = publication.transactions.at(-1)
  const isLong = durationMs >= MIN_OBSERVED_MS
  if (head.number - block < run.confirmations + EXTRA_BLOCKS || !isLong || !isFinal(run, block)) {
    if (newest !== undefined && isDueAgain(run, newest)) await run.send(newest)
    return false
  }
  for (const transaction of publication.transactions) {
    const outcome = await run.send(transaction)
    if (outcome !== 'sent' && outcome !== 'skipped' && outcome.code === 'nonce_too_low') continue
    if (outcome === 'sent') observations.taken.delete(id)
    return false
  }
  // Asks again now that the node has shown that it knows the used nonce.
  if ((await findMined(run, publication)) !== 'none') return false
  const events = await searchEvents(run, publication)
  if (events === 'present') observations.taken.delete(id)
  if (events !== 'absent') return false
  if (await store.release({ id, status: 'lost' }))
    log.error({ msg: 'Lost a nonce to another sender', hash: newest?.hash })
  observations.taken.delete(id)
  return true
}

/**
 * Fills a gap before waiting publications with a transfer of zero wei. A gap occurs if another sender's transaction was dropped or a node
 * reported a wrong nonce. Without this, no later transaction would be mined.
 */
async function fillNonceGap(run: Run, publications: readonly OpenPublication[]): Promise<void> {
  const { store, chain, clock, log, observations, head } = run
  const nonce = run.nextNonceOf(chain.account)
  // Includes confirmed publications: a reorganisation can remove them along with earlier ones.
  const waiting = publications.filter((item) => item.account === chain.account && item.nonce >= nonce)
  const isGap = waiting.length > 0 && waiting.every((item) => item.nonce > nonce)
  const since = isGap ? (observations.gaps.get(nonce) ?? head.number) : undefined
  observations.gaps.clear()
  if (since === undefined) return
  observations.gaps.set(nonce, since)
  if (head.number - since < run.confirmations + EXTRA_BLOCKS) return
  const market = await run.getMarket()
  if (market === undefined) return
  const { chainId, account, contract } = chain
  const call = toCancel(chain)
  const gas = withMargin(await chain.estimateGas(call))
  const signed = await chain.sign({ nonce, ...call, gas, ...market })
  const transaction = { ...signed, kind: 'cancel' as const, gas, ...market }
  const claimed = { chainId, account, nonce, contract, calldata: call.data, slugs: [], transaction, now: clock.now() }
  if (!(await store.claim(claimed))) return
  log.warn({ msg: 'Filled a gap of nonces', hash: signed.hash })
  await run.send(transaction)
}

/**
 * Fees of a replacement: at least 12.5 % more of both, and never below the market. Nodes require 10 % more of both (geth, erigon, reth,
 * nethermind), and at least one wei more.
 */
export function bumpFees(fees: Fees, market: Fees): Fees {
  const maxPriorityFeePerGas = max(raise(fees.maxPriorityFeePerGas), market.maxPriorityFeePerGas)
  const maxFeePerGas = max(raise(fees.maxFeePerGas), market.maxFeePerGas)
  // Nodes reject a tip above the maximum fee.
  return { maxFeePerGas: max(maxFeePerGas, maxPriorityFeePerGas), maxPriorityFeePerGas }
}

/** Raises a fee by an eighth, rounded up, and by at least one wei. */
function raise(fee: bigint): bigint {
  return max((fee * 9n + 7n) / 8n, fee + 1n)
}

function max(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}
