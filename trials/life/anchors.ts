import { assertInclusion, parseNote } from '@countersign/log'
import { equalBytes, fromHex, fromPrefixedHex, type Hex, hashTreeLeaf } from '@countersign/protocol'
import { type AnchoredReceipt, parseAnchorBlock, readAnchor } from '@countersign/receipt'
import type { FakeChain, FakeChainCheckpoint } from '@countersign/testing'
import { decodeFunctionData, parseTransaction } from 'viem/utils'
import { logWitnessAbi } from '../../services/coordinator/src/publish/chain/contract.ts'
import type { Chain } from '../../services/coordinator/src/publish/chain/viemChain.ts'
import type { Block } from '../../services/coordinator/src/publish/ipfs/pinner.ts'
import type { ProofRow } from '../../services/coordinator/test/proofRows.ts'
import { readPinned, toIdOf } from '../../services/coordinator/test/publish/loggedProofs.ts'
import type { TestLog } from '../../services/coordinator/test/store/logs.ts'
import type { TestStore } from '../../services/coordinator/test/store/store.ts'
import { assert, type Model, toKey } from './model.ts'

/** Blocks from the newest to the finalized one. No reorganisation is that deep. */
export const FINALITY = 8
/** The log and two witnesses. */
const SIGNATURES = 3

type Blocks = ReadonlyMap<string, Block['bytes']>

/** Throws if a checkpoint is sent before its blocks and all receipts that it lists are pinned. */
export function assertsPins(chain: Chain, { logWitness }: Pick<FakeChain, 'logWitness'>, blocks: Blocks): Chain {
  return {
    ...chain,
    async send(raw) {
      const { to, data = '0x' } = parseTransaction(raw)
      if (to === logWitness) {
        const { functionName, args } = decodeFunctionData({ abi: logWitnessAbi, data })
        const pinned = functionName === 'advance' ? readPinned(blocks, args[3]) : undefined
        assert(pinned !== undefined, 'the blocks of a checkpoint are pinned before it is sent', data)
        const { receipts } = readAnchor(pinned.bytes, pinned.parts)
        const missing = receipts.filter(({ cid }) => !blocks.has(cid))
        assert(missing.length === 0, 'the receipts of a checkpoint are pinned before it is sent', missing)
      }
      await chain.send(raw)
    },
  }
}

type LoggedRow = {
  slug: string
  /** Null without a log entry. */
  index: number | null
  origin: string | null
  /** Of the publication. Null if it publishes events, or there is none. */
  anchor: { id: Hex; size: number; block: Hex } | null
}

type Listing = { event: FakeChainCheckpoint; receipt: AnchoredReceipt; path: Uint8Array[] }

/** The invariants of proofs with a log entry. Does nothing without logs. */
export function createAnchorInvariants(parameters: {
  subject: TestStore
  model: Model
  node: FakeChain
  blocks: Blocks
  logs: readonly TestLog[]
  count(what: string): void
}) {
  const { subject, model, node, blocks, logs, count } = parameters
  const logOf = new Map(logs.map((log) => [toIdOf(log), log]))
  const rows = new Map<string, LoggedRow>()
  const readBlocks = new Map<Hex, ReturnType<typeof readAnchor>>()
  const toListingKey = (of: Pick<ProofRow, 'wallet' | 'txHash' | 'cid'>) => `${toKey(of)}/${of.cid}`

  /** Checks each proof with the chain as it is now. Returns which proofs a checkpoint publishes. */
  async function readAnchors(): Promise<(proof: Pick<ProofRow, 'slug'>) => boolean> {
    if (logs.length > 0) {
      await readRows()
      const listings = readChain()
      for (const proof of model.seen.proofs) checkProof(proof, listings.get(toListingKey(proof)) ?? [])
    }
    return ({ slug }) => (rows.get(slug)?.anchor ?? null) !== null
  }

  async function readRows() {
    const found = (await subject.query(`
      select p.slug, s.log_index::int as index, l.origin,
        case when a.publication_id is not null then json_build_object(
          'id', '0x' || encode(a.id, 'hex'), 'size', a.size, 'block', '0x' || encode(a.block, 'hex')) end as anchor
      from proofs as p join signings as s on s.id = p.signing_id join verifications as v on v.id = s.verification_id
        left join log_notes as n on n.hash = v.log_note left join logs as l on l.id = n.log_id
        left join anchors as a on a.publication_id = p.publication_id`)) as LoggedRow[]
    rows.clear()
    for (const row of found) rows.set(row.slug, row)
  }

  /** Reads the canonical checkpoints as a third party would. Returns what they list. */
  function readChain(): Map<string, Listing[]> {
    const listings = new Map<string, Listing[]>()
    const sizes = new Map<Hex, number>()
    for (const event of node.checkpoints()) {
      const { id, size, root, block, transactionHash } = event
      const from = sizes.get(id)
      sizes.set(id, size)
      model.covered.set(id, Math.max(size, model.covered.get(id) ?? 0))
      if (model.foreign.has(transactionHash)) continue
      const anchor = readBlocks.get(block) ?? readWhole(block)
      readBlocks.set(block, anchor)
      assert(anchor.size === size && equalBytes(anchor.root, fromPrefixedHex(root)), 'the block has the tree', event)
      assert(from === undefined || from === anchor.from, 'the anchor starts at the previous one', { event, from })
      const log = logOf.get(id)
      assert(log !== undefined && equalBytes(log.toRoot(size), anchor.root), "the root is the log's", event)
      for (const receipt of anchor.receipts) {
        const key = toListingKey(receipt)
        listings.set(key, [...(listings.get(key) ?? []), { event, receipt, path: anchor.toPath(receipt.index) }])
      }
    }
    return listings
  }

  function readWhole(block: Hex) {
    const pinned = readPinned(blocks, block)
    assert(pinned !== undefined, 'the blocks of each checkpoint are pinned', block)
    const { signatures } = parseNote(parseAnchorBlock(pinned.bytes).checkpoint)
    assert(signatures.length === SIGNATURES, 'the checkpoint is cosigned', block)
    return readAnchor(pinned.bytes, pinned.parts)
  }

  function checkProof(proof: ProofRow, listings: readonly Listing[]) {
    const { slug, status } = proof
    const { index, origin, anchor } = rows.get(slug) ?? { index: null, origin: null, anchor: null }
    const events = node.events().filter((event) => toKey(event) === toKey(proof))
    assert(listings.length + events.length <= 1, 'a signature has one first anchor or one event', { proof, listings })
    assert(status !== 'onchain_failed' || listings.length === 0, 'no anchor lists a failed proof', { proof, listings })
    if (status !== 'complete') return
    if (anchor === null) {
      assert(listings.length === 0, 'no anchor lists a proof that an event publishes', { proof, listings })
      const log = logs.find((one) => one.origin === origin)
      if (index === null || log === undefined) return
      const covered = model.covered.get(toIdOf(log)) ?? 0
      assert(model.hadEvents || index < covered, 'only late proofs have an event', { proof, index, covered })
      return
    }
    const [listing] = listings
    assert(listing !== undefined && index !== null, 'an anchor lists each complete proof', proof)
    const { event, receipt, path } = listing
    const { id, size, block, blockNumber, transactionHash } = event
    const isSame = id === anchor.id && size === anchor.size && block === anchor.block && receipt.index === index
    assert(isSame, 'the stored anchor is the one on the chain', { proof, event, anchor })
    assert(proof.onchain === `${transactionHash}/${blockNumber}`, "the proof names the checkpoint's place", proof)
    assert(blockNumber <= node.head.number - FINALITY, 'the checkpoint of a complete proof is final', { proof, event })
    assertPath({ event, index, path })
  }

  function assertPath({ event, index, path }: { event: FakeChainCheckpoint; index: number; path: Uint8Array[] }) {
    const { id, size, root } = event
    const leaf = hashTreeLeaf(logOf.get(id)?.entries[index] ?? new Uint8Array())
    assertInclusion({ leaf, index, size, root: fromPrefixedHex(root), proof: path })
  }

  /** Also checks the anchors that the service's proofs have. */
  async function assertAnchorsEnd() {
    if (logs.length === 0) return
    const checkpoints = node.checkpoints()
    for (const { slug, status } of model.seen.proofs) {
      const { index, anchor: stored } = rows.get(slug) ?? { index: null, anchor: null }
      const { anchor } = (await subject.store.findProof(slug)) ?? {}
      const isAnchored = status === 'complete' && stored !== null
      assert((anchor !== undefined) === isAnchored, 'exactly the anchored proofs have an anchor', { slug, anchor })
      if (anchor === undefined) {
        if (status === 'complete') count(index === null ? 'event: no log entry' : 'event: log entry')
        continue
      }
      const { id, size, txHash, blockNumber, path } = anchor
      const event = checkpoints.find((one) => one.transactionHash === txHash)
      const isThere = event?.id === id && event.size === size && event.blockNumber === blockNumber
      assert(isThere && anchor.index === index, 'the anchor of a proof is on the chain', { slug, anchor, event })
      assertPath({ event, index: anchor.index, path: path.map(fromHex) })
      const { from = 0 } = readBlocks.get(event.block) ?? {}
      count(anchor.index < from ? 'anchor: late' : 'anchor: in order')
    }
    for (const { transactionHash } of checkpoints) {
      count(model.foreign.has(transactionHash) ? "checkpoint: another sender's" : 'checkpoint: ours')
    }
  }

  return { readAnchors, assertAnchorsEnd }
}
