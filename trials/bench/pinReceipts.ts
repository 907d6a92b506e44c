import { median } from '@countersign/testing/stack'
import { assembleReceipt } from '../../services/coordinator/src/pipeline/assembleReceipt.ts'
import { createPinStage } from '../../services/coordinator/src/pipeline/pin.ts'
import type { Block, Pinner } from '../../services/coordinator/src/ports.ts'
import type { PipelineStore } from '../../services/coordinator/src/store/openStore.ts'

/** What the signatures under one quote leave on IPFS, beside the blocks that are shared for hours. */
export type PinnedBatch = { signatures: number; blocks: number; bytes: number }

/** Of all signatures given: by quote, and the blocks that no quote has to itself (collateral, a coordinator's attestation). */
export type PinnedBlocks = { batches: PinnedBatch[]; shared: { blocks: number; bytes: number } }

const log = { info() {}, warn() {}, error() {} }
/** No attempt of a measurement fails for its age. */
const DEADLINE_MS = 3_600_000

/** The distinct blocks of proofs, as the pipeline's own code assembles them from the rows that signing left. */
export async function countBlocks(
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
export async function pinInTurns(
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
