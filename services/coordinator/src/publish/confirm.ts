import type { AttestationPublished } from '@countersign/protocol'
import type { OpenPublication, StoredTransaction } from '../store/publications.ts'
import { ChainError } from './chain/chainError.ts'
import type { Call, Chain, Fees } from './chain/viemChain.ts'
import {
  type ConfirmDeps,
  findMined,
  HOLDING_MS,
  isDeep,
  isDueAgain,
  isFinal,
  isOverdue,
  isPast,
  lookForEvents,
  type Mined,
  noteHolding,
  type Run,
  startRun,
} from './confirmRun.ts'
import { withMargin } from './publish.ts'

/** One publication that cannot be read must not stop the others; a chain that is down is not asked for each. */
const MAX_FAILURES = 3

/**
 * Checks every publication that is not final, in the order of nonces: completes what is mined and deep enough, and sends the
 * rest again. Only stored bytes are sent, and a replacement has the nonce of what it replaces, so whatever is sent, and however
 * often, one of them is mined at most.
 *
 * Two decisions cannot be taken back, because they let a proof go into another nonce: that a transaction reverted, and that a
 * nonce was used by another sender. They wait for finality; so does everything about a publication that a cancel competes with.
 *
 * Throws what the job queue should try again.
 */
export async function confirmPublications(deps: ConfirmDeps): Promise<{ open: number }> {
  const { store, chain, log } = deps
  const publications = await store.findOpen(chain.chainId)
  if (publications.length === 0) return { open: 0 }
  const run = await startRun(deps, publications)
  const ids = new Set(publications.map(({ id }) => id))
  const { taken, unmined, missed, searched, watched } = run.sightings
  for (const seen of [taken, unmined, missed, searched, watched]) {
    for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id)
  }
  // First what is mined and waits for its blocks, in which nothing is sent: those that are complete can be hundreds, with a question each.
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
  const { chain, log, sightings } = run
  const { id, status, account, nonce, contract } = publication
  if (await isWhereItWas(run, publication)) return finishIfFinal(run, publication)
  const found = await findMined(run, publication)
  const isTaken = found === 'none' && nonce < run.nextNonceOf(account)
  if (!isTaken) sightings.taken.delete(id)
  if (typeof found === 'object') sightings.unmined.delete(id)
  if (status === 'confirmed') {
    if (typeof found === 'object') return watchConfirmed(run, publication, found)
    await resendConfirmed(run, publication)
    return false
  }
  // Events of another contract are not seen. What needs none goes on: all later nonces of the account wait for this one.
  const needsEvents = typeof found === 'object' ? found.transaction.kind === 'publish' : isTaken
  if (needsEvents && contract !== chain.contract) {
    log.error({ msg: 'Left a publication of another contract', address: contract })
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
  const { store, log, sightings } = run
  const { id } = publication
  const { hash, blockNumber } = receipt
  const at = { id, txHash: hash, blockNumber }
  const isContested = publication.transactions.some(({ kind }) => kind === 'cancel')
  if (!(isContested ? isFinal(run, blockNumber) : isDeep(run, blockNumber))) return false

  if (transaction.kind === 'cancel') {
    const isMoved = await store.fail({ ...at, status: 'cancelled', failure: 'publish_cancelled' })
    if (isMoved) log.warn({ msg: 'Cancelled a publication', hash, code: 'publish_cancelled' })
    return true
  }
  if (receipt.isSuccess) {
    const proofs = await store.findProofs(id)
    if (isSame(receipt.events, proofs)) {
      if (await store.confirm(at)) log.info({ msg: 'Confirmed a publication', hash, count: proofs.length })
      return false
    }
    log.error({ msg: 'Missed events of a publication', hash, count: receipt.events.length })
    if (!isFinal(run, blockNumber)) return false
  } else {
    if (!isFinal(run, blockNumber)) return false
    const events = await lookForEvents(run, publication)
    if (events === 'unknown') return false
    if (events === 'absent') {
      const { chain, publisher } = run
      // A worker whose key may not publish knows only that: whether another's may is for others to say.
      if (publisher === undefined && publication.account !== chain.account) return false
      const isRefused = publication.account !== publisher
      if (await store.revert({ ...at, isRefused })) log.warn({ msg: 'Mined a publication that reverted', hash })
      return true
    }
  }
  // Some of the events may be there, whatever the node says: nothing of it is ever published again.
  if (!isOverdue(run, sightings.missed, publication)) return false
  await store.fail({ ...at, status: 'reverted', failure: 'publish_unconfirmed' })
  return true
}

/** Whether the chain still has the block in which this process last found a confirmed publication: one question for all of a block. */
async function isWhereItWas({ sightings, isCanonical }: Run, { id, mined }: OpenPublication): Promise<boolean> {
  const seen = sightings.watched.get(id)
  const isSame = seen !== undefined && seen.hash === mined?.txHash && seen.blockNumber === mined.blockNumber
  if (isSame && (await isCanonical(seen))) return true
  sightings.watched.delete(id)
  return false
}

/** Follows a confirmed publication until it is final. Returns whether it is. */
async function watchConfirmed(
  run: Run,
  publication: OpenPublication,
  { transaction, receipt }: Mined,
): Promise<boolean> {
  const { store, log, sightings } = run
  const { id, mined } = publication
  const { hash, blockNumber, blockHash } = receipt
  if (transaction.kind === 'cancel' || !receipt.isSuccess) {
    log.error({ msg: 'Lost the events of complete proofs to a reorganisation', hash })
    return false
  }
  if (hash !== mined?.txHash || blockNumber !== mined.blockNumber) {
    await store.move({ id, txHash: hash, blockNumber })
    log.warn({ msg: 'Followed a publication to another block', hash })
  }
  sightings.watched.set(id, { hash, blockNumber, blockHash })
  return finishIfFinal(run, { id, mined: { txHash: hash, blockNumber } })
}

/** Returns whether the publication is final. */
async function finishIfFinal(run: Run, { id, mined }: Pick<OpenPublication, 'id' | 'mined'>): Promise<boolean> {
  if (mined === undefined || !isFinal(run, mined.blockNumber)) return false
  await run.store.finish({ id })
  return true
}

/** All that were to be published, each once, and nothing else. */
function isSame(events: readonly AttestationPublished[], proofs: readonly AttestationPublished[]): boolean {
  const toKeys = (list: readonly AttestationPublished[]) =>
    list.map(({ wallet, txHash, ipfsCid }) => `${wallet}/${txHash}/${ipfsCid}`.toLowerCase()).sort()
  return toKeys(events).join() === toKeys(proofs).join()
}

const BUMP_AFTER_MS = 60_000
/** Fees beyond so many times the market's do not make anything quicker, and could drain the account. */
const MAX_TIMES_MARKET = 4n

/** For a confirmed publication that dropped out of the chain. Its proofs stay complete, so it must come back: never by a cancel. */
async function resendConfirmed(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.findLast(({ kind }) => kind === 'publish')
  if (newest === undefined || !isDueAgain(run, newest)) return
  const market = await run.getMarket()
  const mustRaise = isOld(run, newest) && isBelow(newest, market)
  const isRaised = mustRaise && (await replace(run, publication, newest, { kind: 'publish', market }))
  if (!isRaised) await sendOrRaise(run, publication, newest)
}

/** For a pending publication that is not mined, as far as the node knows: sends it again, for more, or cancels it. */
async function resendPending(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.at(-1)
  if (newest === undefined) return
  const isOver = isOverdue(run, run.sightings.unmined, publication)
  const market = isOver || isOld(run, newest) ? await run.getMarket() : undefined
  const isCancelled = isOver && newest.kind === 'publish'
  const mustReplace = isCancelled || isStuck(run, publication, newest, market)
  const kind = isCancelled ? 'cancel' : newest.kind
  if (mustReplace && (await replace(run, publication, newest, { kind, market }))) return
  if (isDueAgain(run, newest)) await sendOrRaise(run, publication, newest)
}

/** Sends stored bytes; and the same for more where the node finds their fees too low, because it would find so again. */
async function sendOrRaise(run: Run, publication: OpenPublication, newest: StoredTransaction): Promise<void> {
  const outcome = await run.send(newest)
  if (outcome === 'sent' || outcome === 'skipped' || outcome.code !== 'underpriced') return
  await replace(run, publication, newest, { kind: newest.kind, market: await run.getMarket() })
}

function isStuck(run: Run, { account, nonce }: OpenPublication, newest: StoredTransaction, market: Fees | undefined) {
  if (!isOld(run, newest)) return false
  // What no node has is not stuck, and what waits for an earlier nonce waits for no fee: unless its own is too low by now.
  return (newest.sentAt !== undefined && nonce === run.nextNonceOf(account)) || isBelow(newest, market)
}

/** Stores the same nonce for more, then sends it: the same call, or a cancel, which uses the nonce up. Returns whether it was stored. */
async function replace(
  run: Run,
  publication: OpenPublication,
  replaced: StoredTransaction,
  { kind, market }: { kind: StoredTransaction['kind']; market: Fees | undefined },
): Promise<boolean> {
  const { store, chain, clock, log } = run
  const { id, status, nonce, account, contract, calldata } = publication
  // Without the key of its account there is nothing to sign: with another's it would be of another account's nonce, and a second event.
  if (market === undefined || account !== chain.account) return false
  const fees = bumpFees(replaced, market)
  const isSame = kind === replaced.kind
  if (isSame && fees.maxFeePerGas > MAX_TIMES_MARKET * market.maxFeePerGas) return false
  // A lying node could drive the fees up, one replacement after another. What is stored waits as it is: nodes take no cheaper step.
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

/** A transfer of nothing to the account itself. */
function toCancel({ account }: Pick<Chain, 'account'>): Call {
  return { to: account, data: '0x' }
}

function isOld(run: Run, { createdAt }: StoredTransaction): boolean {
  return isPast(run, createdAt, BUMP_AFTER_MS)
}

function isBelow(fees: Fees, market: Fees | undefined): boolean {
  return market !== undefined && fees.maxFeePerGas < market.maxFeePerGas
}

/** On top of the confirmations: for so many blocks a nonce must seem to be used by another sender, or by nobody. */
const EXTRA_BLOCKS = 12

/**
 * The nonce is used, and no transaction of ours has a receipt. Nodes lag, and a proof that is let go too early has two events; so
 * it must hold for many blocks, the first of them must be final, and for long by the clock, because blocks can be quick and
 * final at once while an index lags. At the end the node must refuse each of our transactions as too late, not know it, and
 * have none of its events. Returns whether the publication is lost.
 */
async function checkForeignUse(run: Run, publication: OpenPublication): Promise<boolean> {
  const { store, log, sightings, head } = run
  const { id } = publication
  const { block, durationMs } = noteHolding(run, sightings.taken, id)
  const newest = publication.transactions.at(-1)
  const isLong = durationMs >= HOLDING_MS
  if (head.number - block < run.confirmations + EXTRA_BLOCKS || !isLong || !isFinal(run, block)) {
    if (newest !== undefined && isDueAgain(run, newest)) await run.send(newest)
    return false
  }
  for (const transaction of publication.transactions) {
    const outcome = await run.send(transaction)
    if (outcome !== 'sent' && outcome !== 'skipped' && outcome.code === 'nonce_too_low') continue
    if (outcome === 'sent') sightings.taken.delete(id)
    return false
  }
  // Asked once more, after the node has shown that it knows the nonce to be used.
  if ((await findMined(run, publication)) !== 'none') return false
  const events = await lookForEvents(run, publication)
  if (events === 'there') sightings.taken.delete(id)
  if (events !== 'absent') return false
  if (await store.lose({ id })) log.error({ msg: 'Lost a nonce to another sender', hash: newest?.hash })
  sightings.taken.delete(id)
  return true
}

/**
 * The account's next nonce is of no publication, though later ones wait: a transaction of another sender was dropped, or a node once
 * reported a wrong nonce. Nothing would ever be mined again, so a transfer of nothing takes its place.
 */
async function fillNonceGap(run: Run, publications: readonly OpenPublication[]): Promise<void> {
  const { store, chain, clock, log, sightings, head } = run
  const nonce = run.nextNonceOf(chain.account)
  // Confirmed ones too: a reorganisation can take them out of the chain together with what was before them.
  const waiting = publications.filter((item) => item.account === chain.account && item.nonce >= nonce)
  const isGap = waiting.length > 0 && waiting.every((item) => item.nonce > nonce)
  const since = isGap ? (sightings.gaps.get(nonce) ?? head.number) : undefined
  sightings.gaps.clear()
  if (since === undefined) return
  sightings.gaps.set(nonce, since)
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
 * Fees of a transaction that replaces another: at least 12.5 % more of both, and never below the market. Nodes ask for 10 %
 * of both (geth, erigon, reth, nethermind), and for more than before even where 10 % is nothing.
 */
export function bumpFees(fees: Fees, market: Fees): Fees {
  const maxPriorityFeePerGas = max(raise(fees.maxPriorityFeePerGas), market.maxPriorityFeePerGas)
  const maxFeePerGas = max(raise(fees.maxFeePerGas), market.maxFeePerGas)
  // A tip above the cap is refused.
  return { maxFeePerGas: max(maxFeePerGas, maxPriorityFeePerGas), maxPriorityFeePerGas }
}

/** By an eighth, rounded up, and by one wei at least. */
function raise(fee: bigint): bigint {
  return max((fee * 9n + 7n) / 8n, fee + 1n)
}

function max(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}
