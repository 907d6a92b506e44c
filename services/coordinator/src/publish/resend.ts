import type { OpenPublication, PublicationTransaction, StoredTransaction } from '../store/publications.ts'
import { bumpFees, type Fees } from './chain/bumpFees.ts'
import { isDueAgain, isPast, type Run } from './confirmRun.ts'
import { isOverdue } from './holding.ts'
import { withMargin } from './publish.ts'

const BUMP_AFTER_MS = 60_000
/** Fees beyond so many times the market's do not make anything quicker, and could drain the account. */
const MAX_TIMES_MARKET = 4n

/** For a confirmed publication that dropped out of the chain. Its proofs stay complete, so it must come back: never by a cancel. */
export async function resendConfirmed(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.findLast(({ kind }) => kind === 'publish')
  if (newest === undefined || !isDueAgain(run, newest)) return
  const market = await run.getMarket()
  const mustBump = isOld(run, newest) && isBelow(newest, market)
  const replacement = mustBump ? await addBump(run, { publication, replaced: newest, market }) : undefined
  if (replacement !== undefined) await run.send(replacement)
  else await sendOrRaise(run, publication, newest)
}

/** For a pending publication that is not mined, as far as the node knows: sends it again, for more, or cancels it. */
export async function resendPending(run: Run, publication: OpenPublication): Promise<void> {
  const newest = publication.transactions.at(-1)
  if (newest === undefined) return
  const isOver = isOverdue(run, run.sightings.unmined, publication)
  const market = isOver || isOld(run, newest) ? await run.getMarket() : undefined
  const replacement =
    isOver && newest.kind === 'publish'
      ? await addCancel(run, { publication, replaced: newest, market })
      : await addBumpIfStuck(run, { publication, newest, market })
  if (replacement !== undefined) await run.send(replacement)
  else if (isDueAgain(run, newest)) await sendOrRaise(run, publication, newest)
}

/** Sends stored bytes; and the same for more where the node finds their fees too low, because it would find so again. */
async function sendOrRaise(run: Run, publication: OpenPublication, newest: StoredTransaction): Promise<void> {
  const outcome = await run.send(newest)
  if (outcome === 'sent' || outcome === 'skipped' || outcome.code !== 'underpriced') return
  const replacement = await addBump(run, { publication, replaced: newest, market: await run.getMarket() })
  if (replacement !== undefined) await run.send(replacement)
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
  if (!isOld(run, newest)) return undefined
  // What no node has is not stuck, and what waits for an earlier nonce waits for no fee: unless its own is too low by now.
  const isStuck = newest.sentAt !== undefined && publication.nonce === run.nextNonceOf(publication.account)
  if (!isStuck && !isBelow(newest, market)) return undefined
  return addBump(run, { publication, replaced: newest, market })
}

/** The same nonce and call for more. Stored before anybody can send it. */
async function addBump(run: Run, { publication, replaced, market }: Replacing) {
  if (market === undefined || !isOurs(run, publication)) return undefined
  const fees = bumpFees(replaced, market)
  if (fees.maxFeePerGas > MAX_TIMES_MARKET * market.maxFeePerGas) return undefined
  const { kind, gas } = replaced
  const call =
    kind === 'publish'
      ? { to: publication.contract, data: publication.calldata }
      : { to: run.chain.account, data: '0x' as const }
  return addTransaction(run, publication, { kind, gas, ...call, ...fees })
}

/** A transfer of nothing to the account itself, which uses the nonce up. */
async function addCancel(run: Run, { publication, replaced, market }: Replacing) {
  if (market === undefined || !isOurs(run, publication)) return undefined
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
  // A lying node could drive the fees up, one replacement after another. What is stored waits as it is: nodes take no cheaper step.
  if (maxFeePerGas > chain.maxFeePerGas) return undefined
  const signed = await chain.sign({ nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas })
  const transaction = { ...signed, kind, gas, maxFeePerGas, maxPriorityFeePerGas }
  if (!(await store.addTransaction({ id, status, transaction, now: clock.now() }))) return undefined
  log.info({ msg: 'Stored a replacement', hash: signed.hash, name: kind })
  return transaction
}

/** Without the key of its account there is nothing to sign: with another's it would be of another account's nonce, and a second event. */
function isOurs({ chain }: Run, { account }: OpenPublication): boolean {
  return account === chain.account
}

function isOld(run: Run, { createdAt }: StoredTransaction): boolean {
  return isPast(run, createdAt, BUMP_AFTER_MS)
}

function isBelow(fees: Fees, market: Fees | undefined): boolean {
  return market !== undefined && fees.maxFeePerGas < market.maxFeePerGas
}
