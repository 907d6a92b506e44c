import { hash } from 'node:crypto'
import { isProofTransition, isTerminalProofStatus, proofStatuses } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import type { FakeChain } from '@countersign/testing'
import type { Block } from '../../services/coordinator/src/publish/ipfs/pinner.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, PUBLISH_QUEUE, type QueueName } from '../../services/coordinator/src/store/jobs.ts'
import type { Clock } from '../../services/coordinator/src/system.ts'
import { type ProofRow, readSnapshot } from '../../services/coordinator/test/proofRows.ts'
import type { TestLog } from '../../services/coordinator/test/store/logs.ts'
import type { TestStore } from '../../services/coordinator/test/store/store.ts'
import { createAnchorInvariants } from './anchors.ts'
import { isOfDatabase, type LifeCommand, PIN_DEADLINE_MS, PUBLISH_DEADLINE_MS } from './commands.ts'
import { assert, type Model, toKey } from './model.ts'
import { CONFIRMATIONS } from './workerProcess.ts'

/** Checks the invariants after every command and at the end. */
export function createInvariants(parameters: {
  subject: TestStore
  model: Model
  node: FakeChain
  clock: Clock
  /** Blocks of the pin service by CID. */
  blocks: ReadonlyMap<string, Block['bytes']>
  logs: readonly TestLog[]
  count(what: string): void
}) {
  const { subject, model, node, clock, blocks, count } = parameters
  const { readAnchors, assertAnchorsEnd } = createAnchorInvariants(parameters)

  async function check(command?: LifeCommand) {
    const before = new Map(model.seen.proofs.map((proof) => [proof.slug, proof]))
    if (command === undefined || isOfDatabase(command)) model.seen = await readSnapshot(subject)
    const mayTakeTwoSteps = command?.do === 'race'
    const isAnchored = await readAnchors()
    const events = node.events()
    const eventsByKey = new Map(events.map((event) => [toKey(event), event]))
    assert(eventsByKey.size === events.length, 'I5: at most one event for each wallet and transaction', events)
    const pairs = new Set(model.seen.proofs.map(({ walletId, digest }) => `${walletId}/${digest}`))
    assert(pairs.size === model.seen.proofs.length, 'I2: one proof for each wallet and digest')
    assert(pairs.size === model.signings.size, 'I2: every signing has a proof, and every proof a signing')
    for (const proof of model.seen.proofs) {
      const earlier = before.get(proof.slug)
      checkStep(earlier, proof, mayTakeTwoSteps)
      if (proof.status === 'complete' && isAnchored(proof)) {
        if (earlier?.status !== 'complete') checkPinned(proof)
      } else if (proof.status === 'complete') {
        const event = eventsByKey.get(toKey(proof))
        assert(model.hadDeepReorg || event !== undefined, 'I4: a complete proof has its event', proof)
        if (earlier?.status !== 'complete') {
          checkPinned(proof)
          const depth = event === undefined ? 0 : node.head.number - event.blockNumber + 1
          // In a race, the chain may have changed since.
          assert(mayTakeTwoSteps || depth >= CONFIRMATIONS, 'I4: a proof completes after enough confirmations', {
            proof,
            depth,
          })
        }
      }
      checkJob(proof)
    }
    const isOpen = model.seen.publications.some(({ status }) => status === 'pending' || status === 'confirmed')
    assert(!isOpen || hasJob(CONFIRM_QUEUE) || model.lost[CONFIRM_QUEUE], 'I8: open publications have a job')
  }

  function checkStep(earlier: ProofRow | undefined, proof: ProofRow, mayTakeTwoSteps: boolean) {
    const { slug, status, receiptHash, cid } = proof
    assert(
      model.signings.get(`${proof.walletId}/${proof.digest}`)?.slug === slug,
      'I2: the proof is the one that was answered',
      proof,
    )
    const from = earlier?.status ?? 'pending_pin'
    const isStep = from === status || isProofTransition(from, status)
    const isTwo = proofStatuses.some((middle) => isProofTransition(from, middle) && isProofTransition(middle, status))
    assert(isStep || (mayTakeTwoSteps && isTwo), 'I3: only allowed transitions', { earlier, proof })
    assert((earlier?.receiptHash ?? receiptHash) === receiptHash, 'I6: a receipt never changes', { earlier, proof })
    assert((earlier?.cid ?? cid) === cid, 'I6: a CID never changes', { earlier, proof })
    if (from !== status) checkReason(proof)
  }

  /** Checks that the model explains why a proof failed. */
  function checkReason(proof: ProofRow) {
    const { status, failure, slug, attempts, createdAt, pinnedAt, publicationId } = proof
    const now = clock.now()
    if (status === 'pin_failed') {
      assert(now - createdAt >= PIN_DEADLINE_MS && attempts >= 12, 'a pin fails only after its deadline', proof)
    }
    if (status !== 'onchain_failed') return
    const publication = model.seen.publications.find(({ id }) => id === publicationId)
    const reasons: Record<string, boolean> = {
      publish_deadline: pinnedAt !== null && now - pinnedAt > PUBLISH_DEADLINE_MS,
      publish_cancelled: publication !== undefined && now - publication.createdAt >= PUBLISH_DEADLINE_MS,
      publish_reverted: model.mayRevert.has(slug),
    }
    assert(reasons[failure ?? ''] === true, 'a publication fails only for a reason', { proof, publication, now })
  }

  function checkPinned({ walletId, digest, cid, receiptHash }: ProofRow) {
    const receipt = blocks.get(cid ?? '')
    assert(receipt !== undefined && toCid(receipt) === cid, 'I4: the receipt is pinned under its CID', cid)
    assert(hash('sha256', receipt) === receiptHash, 'I4: the pinned receipt is the stored one', cid)
    const collateral = model.signings.get(`${walletId}/${digest}`)?.collateral ?? ''
    const held = blocks.get(collateral)
    assert(held !== undefined && toCid(held) === collateral, 'I4: the collateral is pinned under its CID', collateral)
    const names = (bytes: Block['bytes'], name: string) => Buffer.from(bytes).includes(name)
    // A receipt with a log entry names a release, which names the collateral.
    const isNamed = [...blocks].some(([name, bytes]) => names(receipt, name) && names(bytes, collateral))
    assert(names(receipt, collateral) || isNamed, 'I4: the receipt names the collateral', collateral)
  }

  const hasJob = (wanted: QueueName, slug?: string) =>
    model.seen.jobs.some((job) => job.queue === wanted && (slug === undefined || job.slugs.includes(slug)))

  /** A single job confirms all open publications. */
  function checkJob({ slug, status, publicationId }: ProofRow) {
    if (status === 'pending_pin') {
      assert(hasJob(PIN_QUEUE, slug) || model.lost.pins.has(slug), 'I8: an unpinned proof has a job', slug)
    }
    if (status !== 'pending_onchain') return
    if (publicationId === null) {
      assert(hasJob(PUBLISH_QUEUE) || model.lost[PUBLISH_QUEUE], 'I8: an unpublished proof has a job', slug)
      return
    }
    const publication = model.seen.publications.find(({ id }) => id === publicationId)
    assert(publication?.status === 'pending', 'I8: a published proof has a pending publication', publication)
  }

  async function checkEnd() {
    const isAnchored = await readAnchors()
    const events = new Map(node.events().map((event) => [toKey(event), event]))
    for (const proof of model.seen.proofs) {
      assert(isTerminalProofStatus(proof.status), 'every proof becomes final', proof)
      const event = events.get(toKey(proof))
      const isComplete = proof.status === 'complete'
      const hasEvent = isComplete && !isAnchored(proof)
      assert(
        (event !== undefined) === hasEvent,
        'I4: exactly the complete proofs without an anchor have an event',
        proof,
      )
      count(isComplete ? 'proof: complete' : `proof: ${proof.status}, ${proof.failure}`)
      if (event === undefined) continue
      checkPinned(proof)
      assert(event.ipfsCid === proof.cid, 'I4: the event names the receipt', { proof, event })
      const place = `${event.transactionHash}/${event.blockNumber}`
      assert(place === proof.onchain, "I4: the proof names the event's transaction and block", { proof, event })
    }
    for (const { status } of model.seen.publications) count(`publication: ${status}`)
    await assertAnchorsEnd()
  }

  return { check, checkEnd, hasJob }
}
