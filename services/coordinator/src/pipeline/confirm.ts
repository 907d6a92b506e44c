import type { AttestationPublished } from '@countersign/protocol'
import { bumpFees } from '../chain/bumpFees.ts'
import { type Chain, ChainError, type ChainReceipt, type Fees } from '../chain/chain.ts'
import type { OpenPublication, PublicationTransaction, StoredTransaction } from '../store/publications.ts'
import { type PublishDeps, sendStored, withMargin } from './publish.ts'

export type ConfirmDeps = PublishDeps & {
  /** Blocks from the one that has the transaction on, itself included. */
  confirmations: number
  /** Unset: 15 s. */
  resendAfterMs?: number
  /** Unset: 60 s. */
  bumpAfterMs?: number
  /** Blocks on top of one that is taken for final, where the chain does not tell. Unset: 64. */
  finalDepth?: number
  /** Made once for a process. A new one only makes some decisions wait longer. */
  sightings: Sightings
}

/** What must hold for many blocks before it is believed, with the block where it was first seen. */
export type Sightings = {
  /** By publication: its nonce is used, and by none of its transactions. */
  taken: Map<number, number>
  /** By nonce: the next one of the account, and no publication has it, though later ones wait. */
  gaps: Map<number, number>
}

export function createSightings(): Sightings {
  return { taken: new Map(), gaps: new Map() }
}

/** On top of the confirmations: blocks for which somebody else must seem to have used a nonce. */
const DOUBT_BLOCKS = 12
/** Fees beyond so many times the market's do not make anything quicker, and could drain the account. */
const MAX_TIMES_MARKET = 4n
/** One publication that cannot be read must not stop the others; a chain that is down is not asked for each. */
const MAX_FAILURES = 3

/** What one run knows of the chain. */
type Run = Required<ConfirmDeps> & {
  head: { number: number; finalized: number | undefined }
  /** After the newest block. It was read before any receipt: whatever used a nonce below it must have one by then. */
  nextNonce: number
  /** Undefined where the chain does not tell. */
  getMarket: () => Promise<Fees | undefined>
  isCanonical: (receipt: ChainReceipt) => Promise<boolean>
  /** After a chain that gave no answer, nothing more is sent in this run. */
  send: (transaction: PublicationTransaction) => Promise<'sent' | ChainError | 'skipped'>
}

type Mined = { transaction: StoredTransaction; receipt: ChainReceipt }

/**
 * Looks after every publication that is not final, in the order of nonces: settles what is mined and deep enough, and sends the
 * rest again. Only stored bytes are sent, and a replacement has the nonce of what it replaces, so whatever is sent, and however
 * often, one of them is mined at most.
 *
 * Two decisions cannot be taken back, because they let a proof go into another nonce: that a transaction reverted, and that a
 * nonce is somebody else's. They wait for finality; so does everything about a publication that a cancel competes with.
 *
 * Throws what the job queue should try again.
 */
export async function confirmPublications(deps: ConfirmDeps): Promise<{ open: number }> {
  const { store, chain, log } = deps
  const publications = await store.findOpen(chain.chainId)
  if (publications.length === 0) return { open: 0 }
  const run = await startRun(deps)
  let open = publications.length
  const failures: unknown[] = []
  for (const publication of publications) {
    try {
      if (await lookAfter(run, publication)) open -= 1
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      log.warn({ msg: 'Could not look after a publication', code: error.code, reason: error.details })
      failures.push(error)
      if (failures.length >= MAX_FAILURES) break
    }
  }
  if (failures.length > 0) throw failures[0]
  await fillGap(run, publications)
  return { open }
}

async function startRun(deps: ConfirmDeps): Promise<Run> {
  const { chain } = deps
  await assertChain(chain)
  const head = await chain.getHead()
  const nextNonce = await chain.getNonce('latest')
  const blockHashes = new Map<number, Promise<string | undefined>>()
  let market: Promise<Fees | undefined> | undefined
  let isSilent = false
  return {
    resendAfterMs: 15_000,
    bumpAfterMs: 60_000,
    finalDepth: 64,
    ...deps,
    head,
    nextNonce,
    getMarket() {
      market ??= chain.getFees().catch(orUndefined)
      return market
    },
    async isCanonical({ blockNumber, blockHash }) {
      const known = blockHashes.get(blockNumber) ?? chain.getBlockHash(blockNumber)
      blockHashes.set(blockNumber, known)
      return (await known) === blockHash
    },
    async send(transaction) {
      // What comes later would only wait for what could not be sent.
      if (isSilent) return 'skipped'
      const outcome = await sendStored(deps, transaction)
      isSilent = outcome !== 'sent' && outcome.code === 'chain_unavailable'
      return outcome
    },
  }
}

/** Nothing of another chain's node is believed. Who may publish now says nothing about what was published. */
async function assertChain(chain: Chain): Promise<void> {
  try {
    await chain.assertReady()
  } catch (error) {
    if (!(error instanceof ChainError) || error.code !== 'publisher_not_allowed') throw error
  }
}

/** Answers whether that was the last time. */
async function lookAfter(run: Run, publication: OpenPublication): Promise<boolean> {
  const { chain, log } = run
  if (publication.contract !== chain.contract) {
    // Its events would not be seen.
    log.error({ msg: 'Left a publication of another contract', address: publication.contract })
    return false
  }
  const found = await findMined(run, publication)
  if (found !== 'none' || run.nextNonce <= publication.nonce) run.sightings.taken.delete(publication.id)
  if (typeof found === 'object') {
    return publication.status === 'pending' ? settle(run, publication, found) : watch(run, publication, found)
  }
  if (publication.status === 'confirmed') {
    await bringBack(run, publication)
    return false
  }
  if (found === 'none' && run.nextNonce > publication.nonce && publication.account === chain.account) {
    return doubt(run, publication)
  }
  await hurry(run, publication)
  return false
}

/**
 * The one of its transactions that is in the canonical chain. `unclear` where the node has a receipt, but not the block that the
 * receipt names: a reorganisation under way, or a lie.
 */
async function findMined(run: Run, { mined, transactions }: OpenPublication): Promise<Mined | 'unclear' | 'none'> {
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

/** A pending one that is mined. */
async function settle(run: Run, publication: OpenPublication, { transaction, receipt }: Mined): Promise<boolean> {
  const { store, clock, log, publishDeadlineMs } = run
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
  if (!receipt.isSuccess) {
    if (!isFinal(run, blockNumber)) return false
    if (await store.revert(at)) log.warn({ msg: 'Mined a publication that reverted', hash })
    return true
  }
  const proofs = await store.findProofs(id)
  if (isSame(receipt.events, proofs)) {
    if (await store.confirm(at)) log.info({ msg: 'Confirmed a publication', hash, count: proofs.length })
    return false
  }
  // Some of the events may be there, whatever the node says: nothing of it is ever published again.
  log.error({ msg: 'Missed events of a publication', hash, count: receipt.events.length })
  if (!isFinal(run, blockNumber) || clock.now() < publication.createdAt + publishDeadlineMs) return false
  await store.fail({ ...at, status: 'reverted', failure: 'publish_unconfirmed' })
  return true
}

/** A confirmed one, until it is final. */
async function watch(run: Run, publication: OpenPublication, { transaction, receipt }: Mined): Promise<boolean> {
  const { store, log } = run
  const { id, mined } = publication
  const { hash, blockNumber } = receipt
  if (transaction.kind === 'cancel' || !receipt.isSuccess) {
    log.error({ msg: 'Lost the events of complete proofs to a reorganisation', hash })
    return false
  }
  if (hash !== mined?.txHash || blockNumber !== mined.blockNumber) {
    await store.move({ id, txHash: hash, blockNumber })
    log.warn({ msg: 'Followed a publication to another block', hash })
  }
  if (!isFinal(run, blockNumber)) return false
  await store.finish({ id })
  return true
}

/** A confirmed one that dropped out of the chain. Its proofs stay complete, so it must come back: a cancel is never sent here. */
async function bringBack(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.findLast(({ kind }) => kind === 'publish')
  if (newest === undefined || !isDueAgain(run, newest)) return
  const market = await run.getMarket()
  const mustBump = newest.sentAt !== undefined && isOld(run, newest) && isBelow(newest, market)
  const replacement = mustBump ? await addBump(run, { publication, replaced: newest, market }) : undefined
  await run.send(replacement ?? newest)
}

/** One that is not mined, as far as the node knows. */
async function hurry(run: Run, publication: OpenPublication): Promise<void> {
  const { chain, clock, publishDeadlineMs } = run
  const newest = publication.transactions.at(-1)
  if (newest === undefined) return
  // Without the key of its account there is nothing to sign.
  if (publication.account === chain.account) {
    const isOver = clock.now() >= publication.createdAt + publishDeadlineMs
    const market = isOver || isOld(run, newest) ? await run.getMarket() : undefined
    const replacement =
      isOver && newest.kind === 'publish'
        ? await addCancel(run, { publication, replaced: newest, market })
        : await addBumpIfStuck(run, { publication, newest, market })
    if (replacement !== undefined) {
      await run.send(replacement)
      return
    }
  }
  if (isDueAgain(run, newest)) await run.send(newest)
}

type Replacing = { publication: OpenPublication; replaced: StoredTransaction; market: Fees | undefined }

async function addBumpIfStuck(
  run: Run,
  {
    publication,
    newest,
    market,
  }: { publication: OpenPublication; newest: StoredTransaction; market: Fees | undefined },
): Promise<PublicationTransaction | undefined> {
  // What no node has is not stuck; and what waits for an earlier nonce waits for no fee, unless its own is too low by now.
  if (newest.sentAt === undefined || !isOld(run, newest)) return undefined
  if (publication.nonce !== run.nextNonce && !isBelow(newest, market)) return undefined
  return addBump(run, { publication, replaced: newest, market })
}

/** The same nonce and call for more. Stored before anybody can send it. */
async function addBump(run: Run, { publication, replaced, market }: Replacing) {
  if (market === undefined) return undefined
  const fees = bumpFees(replaced, market)
  if (fees.maxFeePerGas > MAX_TIMES_MARKET * market.maxFeePerGas) return undefined
  const { kind, gas } = replaced
  const call =
    kind === 'publish'
      ? { to: publication.contract, data: publication.calldata }
      : { to: run.chain.account, data: '0x' as const }
  return addTransaction(run, publication, { kind, gas, ...call, ...fees })
}

/** A transfer of nothing to oneself, which uses the nonce up. */
async function addCancel(run: Run, { publication, replaced, market }: Replacing) {
  if (market === undefined) return undefined
  const call = { to: run.chain.account, data: '0x' as const }
  const gas = withMargin(await run.chain.estimateGas(call))
  return addTransaction(run, publication, { kind: 'cancel', gas, ...call, ...bumpFees(replaced, market) })
}

async function addTransaction(
  { store, chain, clock, log }: Run,
  { id, status, nonce }: OpenPublication,
  unsigned: Omit<PublicationTransaction, 'hash' | 'raw'> & { to: `0x${string}`; data: `0x${string}` },
): Promise<PublicationTransaction | undefined> {
  const { kind, gas, maxFeePerGas, maxPriorityFeePerGas, to, data } = unsigned
  const signed = await chain.sign({ nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas })
  const transaction = { ...signed, kind, gas, maxFeePerGas, maxPriorityFeePerGas }
  if (!(await store.addTransaction({ id, status, transaction, now: clock.now() }))) return undefined
  log.info({ msg: 'Stored a replacement', hash: signed.hash, name: kind })
  return transaction
}

/**
 * The nonce is used, and no transaction of ours has a receipt. Nodes lag, and a proof that is let go too early has two events; so
 * it must hold for many blocks, the first of them must be final, and at the end the node must refuse each of our transactions
 * as too late and not know it. Answers whether the publication is lost.
 */
async function doubt(run: Run, publication: OpenPublication): Promise<boolean> {
  const { store, log, sightings, head } = run
  const { id } = publication
  const since = sightings.taken.get(id) ?? head.number
  sightings.taken.set(id, since)
  const newest = publication.transactions.at(-1)
  if (head.number - since < run.confirmations + DOUBT_BLOCKS || !isFinal(run, since)) {
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
  sightings.taken.delete(id)
  if (await store.lose({ id })) log.error({ msg: 'Lost a nonce to another sender', hash: newest?.hash })
  return true
}

/**
 * The account's next nonce is of no publication, though later ones wait: somebody else's transaction was dropped, or a node once
 * told a wrong nonce. Nothing would ever be mined again, so a transfer of nothing takes its place.
 */
async function fillGap(run: Run, publications: readonly OpenPublication[]): Promise<void> {
  const { store, chain, clock, log, sightings, head, nextNonce: nonce } = run
  // Confirmed ones too: a reorganisation can take them out of the chain together with what was before them.
  const waiting = publications.filter((item) => item.account === chain.account && item.nonce >= nonce)
  const isGap = waiting.length > 0 && waiting.every((item) => item.nonce > nonce)
  const since = isGap ? (sightings.gaps.get(nonce) ?? head.number) : undefined
  sightings.gaps.clear()
  if (since === undefined) return
  sightings.gaps.set(nonce, since)
  if (head.number - since < run.confirmations + DOUBT_BLOCKS) return
  const market = await run.getMarket()
  if (market === undefined) return
  const { chainId, account, contract } = chain
  const call = { to: account, data: '0x' as const }
  const gas = withMargin(await chain.estimateGas(call))
  const signed = await chain.sign({ nonce, ...call, gas, ...market })
  const transaction = { ...signed, kind: 'cancel' as const, gas, ...market }
  const claimed = { chainId, account, nonce, contract, calldata: call.data, slugs: [], transaction, now: clock.now() }
  if (!(await store.claim(claimed))) return
  log.warn({ msg: 'Filled a gap of nonces', hash: signed.hash })
  await run.send(transaction)
}

function isDeep({ head, confirmations }: Run, blockNumber: number): boolean {
  return head.number - blockNumber + 1 >= confirmations
}

/** Some chains call their newest block final; depth must be there too. */
function isFinal(run: Run, blockNumber: number): boolean {
  const { head, finalDepth } = run
  const isTold = head.finalized === undefined ? head.number - blockNumber >= finalDepth : blockNumber <= head.finalized
  return isTold && isDeep(run, blockNumber)
}

function isDueAgain({ clock, resendAfterMs }: Run, { sentAt }: StoredTransaction): boolean {
  return sentAt === undefined || clock.now() - sentAt >= resendAfterMs
}

function isOld({ clock, bumpAfterMs }: Run, { createdAt }: StoredTransaction): boolean {
  return clock.now() - createdAt >= bumpAfterMs
}

function isBelow(fees: Fees, market: Fees | undefined): boolean {
  return market !== undefined && fees.maxFeePerGas < market.maxFeePerGas
}

/** All that were to be published, each once, and nothing else. */
function isSame(events: readonly AttestationPublished[], proofs: readonly AttestationPublished[]): boolean {
  const toKeys = (list: readonly AttestationPublished[]) =>
    list.map(({ wallet, txHash, ipfsCid }) => `${wallet}/${txHash}/${ipfsCid}`.toLowerCase()).sort()
  return toKeys(events).join() === toKeys(proofs).join()
}

function orUndefined(error: unknown): undefined {
  if (!(error instanceof ChainError)) throw error
}
