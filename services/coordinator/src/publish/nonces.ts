import type { OpenPublication } from '../store/publications.ts'
import { findMined, isDueAgain, isFinal, lookForEvents, type Run } from './confirmRun.ts'
import { HOLDING_MS, noteHolding } from './holding.ts'
import { withMargin } from './publish.ts'

/** On top of the confirmations: for so many blocks a nonce must seem to be used by another sender, or by nobody. */
const EXTRA_BLOCKS = 12

/**
 * The nonce is used, and no transaction of ours has a receipt. Nodes lag, and a proof that is let go too early has two events; so
 * it must hold for many blocks, the first of them must be final, and for long by the clock, because blocks can be quick and
 * final at once while an index lags. At the end the node must refuse each of our transactions as too late, not know it, and
 * have none of its events. Returns whether the publication is lost.
 */
export async function checkForeignUse(run: Run, publication: OpenPublication): Promise<boolean> {
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
export async function fillNonceGap(run: Run, publications: readonly OpenPublication[]): Promise<void> {
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
  const call = { to: account, data: '0x' as const }
  const gas = withMargin(await chain.estimateGas(call))
  const signed = await chain.sign({ nonce, ...call, gas, ...market })
  const transaction = { ...signed, kind: 'cancel' as const, gas, ...market }
  const claimed = { chainId, account, nonce, contract, calldata: call.data, slugs: [], transaction, now: clock.now() }
  if (!(await store.claim(claimed))) return
  log.warn({ msg: 'Filled a gap of nonces', hash: signed.hash })
  await run.send(transaction)
}
