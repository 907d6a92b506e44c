import { assertInclusion, parseNote } from '@countersign/log'
import { fromHex, fromPrefixedHex, type Hex, hashTreeLeaf, type ProofStatus, toHex } from '@countersign/protocol'
import { parseAnchorBlock, readAnchor, toCid } from '@countersign/receipt'
import type { StartFakeChainParameters } from '@countersign/testing'
import { sql } from 'kysely'
import { decodeFunctionData, parseTransaction } from 'viem/utils'
import { expect } from 'vitest'
import { logWitnessAbi } from '../../src/publish/chain/contract.ts'
import type { Chain, CreateViemChainParameters } from '../../src/publish/chain/viemChain.ts'
import { PinError } from '../../src/publish/ipfs/pinError.ts'
import type { Pinner } from '../../src/publish/ipfs/pinner.ts'
import type { AnchorDeps } from '../../src/publish/publishAnchors.ts'
import { createAnchorStore } from '../../src/store/anchors.ts'
import { type KnownColumns, packReceipt } from '../../src/store/signings.ts'
import { createTestLog, type TestLog } from '../store/logs.ts'
import { advanceElsewhere, createLogSigner, OWNER, readPinned, toIdOf } from './loggedProofs.ts'
import { createScene, publisher, stranger, strangerKey, type TestPublishing } from './publishing.ts'

export { toIdOf } from './loggedProofs.ts'

/** The fake chain's default. */
const FINALITY_DEPTH = 8
/** The most rows of one statement. */
const INSERTED = 500

export type MemoryPinner = Pick<Pinner, 'pin' | 'read'> & { blocks: Map<string, Uint8Array<ArrayBuffer>> }

function createMemoryPinner(): MemoryPinner {
  const blocks = new Map<string, Uint8Array<ArrayBuffer>>()
  return {
    blocks,
    pin: async ({ cid, bytes }) => void blocks.set(cid, bytes),
    async read(cid) {
      const bytes = blocks.get(cid)
      if (bytes === undefined) throw new PinError('pin_not_found')
      return bytes
    },
  }
}

export type AnchorScene = Awaited<ReturnType<typeof createAnchorScene>>

/** A scene that publishes checkpoints, with real logs in the database and a pinner in memory. */
export async function createAnchorScene(
  publishing: TestPublishing,
  {
    delayMs = 0,
    ...options
  }: StartFakeChainParameters & { confirmations?: number; finalityDepth?: number; delayMs?: number } = {},
) {
  const { subject, wallet } = publishing
  const { db } = subject.database
  const scene = await createScene(publishing, options)
  const { node, deps, clock } = scene
  const { finalityDepth = FINALITY_DEPTH } = options
  const pinner = createMemoryPinner()
  const anchoring: AnchorDeps = {
    anchors: createAnchorStore({ db }),
    pinner,
    target: { contract: node.logWitness, owner: OWNER },
    delayMs,
    observeAnchor() {},
  }
  const violations: string[] = []
  const signer = createLogSigner(subject, clock)
  const connect = (parameters: Partial<CreateViemChainParameters> = {}) => watch(scene.connect(parameters))
  const { store } = deps
  Object.assign(deps, {
    anchoring,
    chain: connect(),
    store: {
      ...store,
      async confirm(mined: Parameters<typeof store.confirm>[0]) {
        const { rows } = await sql`select from anchors where publication_id = ${mined.id}::bigint`.execute(db)
        const isFinal = mined.blockNumber <= node.head.number - finalityDepth
        if (rows.length > 0 && !isFinal) violations.push(`completed in block ${mined.blockNumber} before it was final`)
        return store.confirm(mined)
      },
    },
  })

  /** Records each checkpoint that is sent before its blocks are pinned. */
  function watch(chain: Chain): Chain {
    return {
      ...chain,
      async send(raw) {
        const { to, data = '0x' } = parseTransaction(raw)
        if (to === node.logWitness) {
          const call = decodeFunctionData({ abi: logWitnessAbi, data })
          const block = call.functionName === 'advance' ? readPinned(pinner.blocks, call.args[3]) : undefined
          if (block === undefined) violations.push(`sent before its blocks were pinned: ${data}`)
        }
        await chain.send(raw)
      },
    }
  }

  function createLog({ isRegistered = true } = {}): TestLog {
    const log = createTestLog()
    if (isRegistered) node.registerLog(toIdOf(log))
    return log
  }

  /** Adds signatures to a log, each followed by `others` entries, and pins their receipts unless `isPinned` is false. Returns their slugs. */
  async function sign(log: TestLog, count = 1, { isPinned = true, others = 1 } = {}): Promise<string[]> {
    const digests = Array<undefined>(count).fill(undefined)
    const { batch, signings } = await signer.sign({ wallet, log, digests, others })
    for (let start = 0; start < count; start += INSERTED) {
      const rows = signings.slice(start, start + INSERTED)
      await subject.store.insertSignings({ batch, signings: rows, now: clock.now() })
    }
    const slugs = signings.map(({ slug }) => slug)
    if (isPinned) await pin(slugs)
    return slugs
  }

  /** The state after the pin stage. */
  async function pin(slugs: readonly string[]) {
    const { rows } = await sql<KnownColumns & { id: string }>`
      select id::text, tx_hash, digest, signature, facts from signings
      where id = any(array(select signing_id from proofs where slug = any(${slugs}::text[])))`.execute(db)
    await sql`insert into receipts (signing_id, bytes)
      select * from unnest(${rows.map(({ id }) => id)}::bigint[], ${rows.map((row) => packReceipt(Buffer.from('{}'), row))}::bytea[])`.execute(
      db,
    )
    const cids = slugs.map((slug) => toCid(Buffer.from(slug)))
    await sql`update proofs set status = 'pending_onchain', ipfs_cid = cid, pinned_at = ${new Date(clock.now())}
      from unnest(${slugs}::text[], ${cids}::text[]) as pinned (name, cid) where slug = name`.execute(db)
  }

  /** Signs and publishes, and returns the hash of the transaction. */
  async function send(log: TestLog, count = 1): Promise<Hex> {
    await sign(log, count)
    await scene.publish()
    const hash = node.mempool().at(-1)?.hash
    if (hash === undefined) throw new Error('nothing was sent')
    return hash
  }

  /**
   * Checks that checkpoints of the canonical chain publish each proof at most once, with a path that leads to the checkpoint's root; and that
   * each complete proof with a log entry has exactly one checkpoint or one event.
   */
  async function assertAnchors({ sample = 200 } = {}) {
    expect(violations).toEqual([])
    const listed = new Map<string, { id: Hex; size: number; root: Hex; transactionHash: Hex; blockNumber: number }[]>()
    const sizes = new Map<Hex, number>()
    const { rows: own } = await sql<{ hash: Hex }>`
      select '0x' || encode(tx_hash, 'hex') as hash from publication_transactions`.execute(db)
    const hashes = new Set(own.map(({ hash }) => hash))
    for (const event of node.checkpoints()) {
      if (!hashes.has(event.transactionHash)) {
        sizes.set(event.id, event.size)
        continue
      }
      const blocks = readPinned(pinner.blocks, event.block)
      if (blocks === undefined) throw new Error('a block of an anchor on the chain is not pinned')
      const anchor = readAnchor(blocks.bytes, blocks.parts)
      expect([anchor.size, `0x${toHex(anchor.root)}`]).toEqual([event.size, event.root])
      expect(anchor.from).toBe(sizes.get(event.id) ?? anchor.from)
      expect(parseNote(parseAnchorBlock(blocks.bytes).checkpoint).signatures).toHaveLength(3)
      sizes.set(event.id, event.size)
      for (const { wallet, txHash, cid } of anchor.receipts) {
        const key = `${wallet}/${txHash}/${cid}`
        listed.set(key, [...(listed.get(key) ?? []), event])
      }
    }
    const events = new Set(node.events().map(({ wallet, txHash, ipfsCid }) => `${wallet}/${txHash}/${ipfsCid}`))
    const proofs = await scene.proofs()
    const every = Math.ceil(proofs.length / sample)
    for (const [place, { slug, status, wallet, txHash, cid, isAnchored }] of proofs.entries()) {
      const key = `${wallet}/${txHash}/${cid}`
      const anchors = listed.get(key) ?? []
      const times = anchors.length + Number(events.has(key))
      if (status === 'complete') expect({ slug, times }).toEqual({ slug, times: 1 })
      else if (status === 'onchain_failed') expect({ slug, times }).toEqual({ slug, times: 0 })
      else expect(times).toBeLessThanOrEqual(1)
      if (status !== 'complete') continue
      const [event] = anchors
      expect(isAnchored).toBe(event !== undefined)
      if (event === undefined || place % every !== 0) continue
      const { anchor } = (await subject.store.findProof(slug)) ?? {}
      expect(anchor).toMatchObject({
        chainId: node.chainId,
        contract: node.logWitness,
        id: event.id,
        size: event.size,
        txHash: event.transactionHash,
        blockNumber: event.blockNumber,
      })
      expect(event.blockNumber).toBeLessThanOrEqual(node.head.number - finalityDepth)
      const { index = 0, path = [] } = anchor ?? {}
      const leaf = await readLeaf(slug)
      const proof = path.map(fromHex)
      expect(() =>
        assertInclusion({ leaf, index, size: event.size, root: fromPrefixedHex(event.root), proof }),
      ).not.toThrow()
    }
  }

  /** The hash of a signature's log entry, from the log. */
  async function readLeaf(slug: string): Promise<Uint8Array> {
    const { rows } = await sql<{ entry: Uint8Array }>`
      select read_log_entries(n.log_id, s.log_index, 1) as entry
      from proofs as p join signings as s on s.id = p.signing_id join verifications as v on v.id = s.verification_id
        join log_notes as n on n.hash = v.log_note
      where p.slug = ${slug}`.execute(db)
    return hashTreeLeaf(rows[0]?.entry ?? new Uint8Array())
  }

  /** The anchors in the database, by nonce. */
  async function anchors(): Promise<{ nonce: number; size: number; status: string; proofs: number }[]> {
    const { rows } = await sql<{ nonce: number; size: number; status: string; proofs: number }>`
      select p.nonce::int, a.size::int, p.status, (select count(*)::int from proofs where publication_id = p.id) as proofs
      from anchors as a join publications as p on p.id = a.publication_id order by p.nonce`.execute(db)
    return rows
  }

  return {
    ...scene,
    deps,
    anchoring,
    pinner,
    connect,
    createLog,
    cosign: signer.cosign,
    sign,
    pin,
    send,
    anchors,
    /** Publishes a checkpoint from another account, as its publisher for a moment. Default: the log's tree. */
    advanceElsewhere: (log: TestLog, size: number, root?: Uint8Array) =>
      advanceElsewhere(node, { log, size, root, publisher, stranger: { account: stranger, privateKey: strangerKey } }),
    assertAnchors,
    /** Runs until nothing is left to do, then checks the invariants. */
    async finish(expected: Partial<Record<ProofStatus, number>>, { blocks = 4 } = {}) {
      await scene.finish(expected, { blocks })
      await assertAnchors()
    },
  }
}
