import { median, type Scope } from '@countersign/testing/stack'
import { assembleReceipt } from '../../services/coordinator/src/publish/assembleReceipt.ts'
import { createHeliaPinner } from '../../services/coordinator/src/publish/ipfs/helia.ts'
import type { Block, Pinner } from '../../services/coordinator/src/publish/ipfs/pinner.ts'
import { createPinStage } from '../../services/coordinator/src/publish/pin.ts'
import { openStores, type PipelineStore } from '../../services/coordinator/src/store/openStore.ts'
import { type Row, toRow, withAt } from './report.ts'
import { signMany } from './signer.ts'

/** A service, and who signs with it. */
type Signed = { url: string; databaseUrl: string; cookies: readonly string[] }

/** Two quotes are under way in turn, so that this many callers make batches of 16 and a few more. */
const CALLERS_OF_BATCHES = 40
const LARGE_BATCH = 16

/** What the receipts of both versions put on IPFS, in large batches and alone, and how long pinning takes where each has its own batch. */
export async function measurePins(
  { add, createFolder }: Scope,
  { versions, isQuick }: { versions: readonly [Signed, Signed]; isQuick: boolean },
): Promise<Row[]> {
  const { pinner } = add(await createHeliaPinner({ dataDir: await createFolder() }), ({ stop }) => stop())
  const measured = []
  for (const service of versions) {
    const { store, pipeline } = await openStores({ databaseUrl: service.databaseUrl })
    add(store, ({ close }) => close())
    const { cookies } = service
    const many = await signMany(service, { cookies, count: isQuick ? 200 : 1_000, connections: CALLERS_OF_BATCHES })
    const alone = await signMany(service, { cookies, count: isQuick ? 5 : 30, connections: 1 })
    const { batches, shared } = await countBlocks(pipeline, many)
    const single = (await countBlocks(pipeline, alone)).batches.filter(({ signatures }) => signatures === 1)
    measured.push({ pipeline, slugs: alone, large: batches.filter(isLarge), single, shared })
  }
  const [first, second] = measured as [(typeof measured)[number], (typeof measured)[number]]
  const [firstMs = Number.NaN, secondMs = Number.NaN] = await pinInTurns(pinner, [first, second])
  const perSignature = median(first.large.map(toBytesEach))
  const worst = Math.max(...second.large.map(toBytesEach))
  const [one, other] = [first.single[0], second.single[0]]
  if (one === undefined || other === undefined) throw new Error('no batch had one signature')
  const sizes = second.large.map(({ signatures }) => signatures)
  const v2 = 'receipts of version 2'
  const perSignatureV2 = median(second.large.map(toBytesEach))
  return [
    ...withAt(Math.min(...sizes), `to ${Math.max(...sizes)} signatures in a batch`, [
      toRow('bytes pinned for each signature', perSignature, 'bytes'),
      toRow(`the same, ${v2}`, perSignatureV2, 'bytes', {
        'version 1': perSignatureV2 / perSignature,
        'version 1 in the worst batch': worst / perSignature,
      }),
    ]),
    ...withAt(1, 'signature in the batch', [
      toRow('bytes pinned', one.bytes, 'bytes'),
      toRow(`bytes pinned, ${v2}`, other.bytes, 'bytes', { 'version 1': other.bytes / one.bytes }),
      toRow('blocks pinned', one.blocks, 'blocks'),
      toRow(`blocks pinned, ${v2}`, other.blocks, 'blocks'),
      toRow('time to pin and read back', firstMs, 'ms'),
      toRow(`time to pin and read back, ${v2}`, secondMs, 'ms', { 'version 1': secondMs / firstMs }),
    ]),
    toRow('bytes shared for hours', first.shared.bytes, 'bytes'),
    toRow(`bytes shared for hours, ${v2}`, second.shared.bytes, 'bytes'),
  ]
}

const isLarge = ({ signatures }: PinnedBatch) => signatures >= LARGE_BATCH
const toBytesEach = ({ signatures, bytes }: PinnedBatch) => bytes / signatures

/** What the signatures under one quote leave on IPFS, beside the blocks that are shared for hours. */
type PinnedBatch = { signatures: number; blocks: number; bytes: number }

/** Of all signatures given: by quote, and the blocks that no quote has to itself (collateral, a coordinator's attestation). */
type PinnedBlocks = { batches: PinnedBatch[]; shared: { blocks: number; bytes: number } }

const log = { info() {}, warn() {}, error() {} }
/** No attempt of a measurement fails for its age. */
const DEADLINE_MS = 3_600_000

/** The distinct blocks of proofs, as the pipeline's own code assembles them from the rows that signing left. */
async function countBlocks(
  { pinning }: Pick<PipelineStore, 'pinning'>,
  slugs: readonly string[],
): Promise<PinnedBlocks> {
  const batchesOf = new Map<string, Set<string>>()
  const blocksOf = new Map<string, Map<string, Block>>()
  const signaturesOf = new Map<string, number>()
  for (const slug of slugs) {
    const work = await pinning.findPin(slug)
    if (work === undefined) throw new Error('a proof is not there')
    const { records } = work
    const { bootId, sequence } = records.version === 1 ? records.batch : records.release.batch
    const batch = `${bootId} ${sequence}`
    const { receipt, collateral, others } = assembleReceipt(work)
    const blocks = blocksOf.get(batch) ?? new Map<string, Block>()
    for (const block of [receipt, collateral, ...others]) {
      blocks.set(block.cid, block)
      batchesOf.set(block.cid, (batchesOf.get(block.cid) ?? new Set()).add(batch))
    }
    blocksOf.set(batch, blocks)
    signaturesOf.set(batch, (signaturesOf.get(batch) ?? 0) + 1)
  }
  const isShared = ({ cid }: Block) => (batchesOf.get(cid)?.size ?? 0) > 1
  const shared = new Map([...blocksOf.values()].flatMap((blocks) => [...blocks.values()].filter(isShared).map(toEntry)))
  return {
    batches: [...blocksOf].map(([batch, blocks]) => ({
      signatures: signaturesOf.get(batch) ?? 0,
      ...toSize([...blocks.values()].filter((block) => !isShared(block))),
    })),
    shared: toSize([...shared.values()]),
  }
}

const toEntry = (block: Block) => [block.cid, block] as const

function toSize(blocks: readonly Block[]) {
  return { blocks: blocks.length, bytes: blocks.reduce((sum, { bytes }) => sum + bytes.length, 0) }
}

/** Pins proofs of several services one after the other, in turns; the median time of each service's, in milliseconds. */
async function pinInTurns(
  pinner: Pick<Pinner, 'pin' | 'read'>,
  services: readonly { pipeline: Pick<PipelineStore, 'pinning'>; slugs: readonly string[] }[],
): Promise<number[]> {
  const clock = { now: () => Date.now() }
  const lanes = services.map(({ pipeline, slugs }) => ({
    slugs,
    stage: createPinStage({
      store: pipeline.pinning,
      pinner,
      clock,
      random: Math.random,
      log,
      pinDeadlineMs: DEADLINE_MS,
    }),
    times: [] as number[],
  }))
  const turns = Math.min(...lanes.map(({ slugs }) => slugs.length))
  for (let turn = 0; turn < turns; turn++) {
    for (const { stage, slugs, times } of lanes) {
      const start = performance.now()
      const outcome = await stage.pin(slugs[turn] ?? '')
      if (outcome !== 'pinned') throw new Error(`a receipt was ${outcome}`)
      // The first pins what all share.
      if (turn > 0) times.push(performance.now() - start)
    }
  }
  return lanes.map(({ times }) => median(times))
}
