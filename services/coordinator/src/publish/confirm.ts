import type { OpenPublication } from '../store/publications.ts'
import { ChainError } from './chain/chainError.ts'
import { type ConfirmDeps, findMined, type Run, startRun } from './confirmRun.ts'
import { checkForeignUse, fillNonceGap } from './nonces.ts'
import { resendConfirmed, resendPending } from './resend.ts'
import { finishIfFinal, isWhereItWas, settlePending, watchConfirmed } from './settle.ts'

/** One publication that cannot be read must not stop the others; a chain that is down is not asked for each. */
const MAX_FAILURES = 3

/**
 * Checks every publication that is not final, in the order of nonces: settles what is mined and deep enough, and sends the
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
  if (typeof found === 'object') return settlePending(run, publication, found)
  if (isTaken) return checkForeignUse(run, publication)
  await resendPending(run, publication)
  return false
}
