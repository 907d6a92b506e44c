import type { AttestationPublished } from '@countersign/protocol'
import type { OpenPublication } from '../store/publications.ts'
import { isDeep, isFinal, lookForEvents, type Mined, type Run } from './confirmRun.ts'
import { isOverdue } from './holding.ts'

/** Judges a pending publication that is mined. Returns whether it needs no further check. */
export async function settlePending(
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
export async function isWhereItWas({ sightings, isCanonical }: Run, { id, mined }: OpenPublication): Promise<boolean> {
  const seen = sightings.watched.get(id)
  const isSame = seen !== undefined && seen.hash === mined?.txHash && seen.blockNumber === mined.blockNumber
  if (isSame && (await isCanonical(seen))) return true
  sightings.watched.delete(id)
  return false
}

/** Follows a confirmed publication until it is final. Returns whether it is. */
export async function watchConfirmed(
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
export async function finishIfFinal(run: Run, { id, mined }: Pick<OpenPublication, 'id' | 'mined'>): Promise<boolean> {
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
