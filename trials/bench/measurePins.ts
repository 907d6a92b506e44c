import { median, type Scope } from '@countersign/testing/stack'
import { createHeliaPinner } from '../../services/coordinator/src/ipfs/helia.ts'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { countBlocks, type PinnedBatch, pinInTurns } from './pinReceipts.ts'
import type { Row } from './report.ts'
import { signMany } from './signer.ts'

/** A service, and who signs with it. */
type Signed = { address: string; databaseUrl: string; cookies: readonly string[] }

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
  const at = { value: 1, of: 'signature in the batch' }
  const sizes = second.large.map(({ signatures }) => signatures)
  const large = { value: Math.min(...sizes), of: `to ${Math.max(...sizes)} signatures in a batch` }
  return [
    { name: 'bytes pinned for each signature', at: large, value: perSignature, unit: 'bytes' },
    {
      name: 'the same, receipts of version 2',
      at: large,
      value: median(second.large.map(toBytesEach)),
      unit: 'bytes',
      ratios: [
        { value: median(second.large.map(toBytesEach)) / perSignature, to: 'version 1' },
        { value: worst / perSignature, to: 'version 1 in the worst batch' },
      ],
    },
    { name: 'bytes pinned', at, value: one.bytes, unit: 'bytes' },
    {
      name: 'bytes pinned, receipts of version 2',
      at,
      value: other.bytes,
      unit: 'bytes',
      ratios: [{ value: other.bytes / one.bytes, to: 'version 1' }],
    },
    { name: 'blocks pinned', at, value: one.blocks, unit: 'blocks' },
    { name: 'blocks pinned, receipts of version 2', at, value: other.blocks, unit: 'blocks' },
    { name: 'time to pin and read back', at, value: firstMs, unit: 'ms' },
    {
      name: 'time to pin and read back, receipts of version 2',
      at,
      value: secondMs,
      unit: 'ms',
      ratios: [{ value: secondMs / firstMs, to: 'version 1' }],
    },
    { name: 'bytes shared for hours', value: first.shared.bytes, unit: 'bytes' },
    { name: 'bytes shared for hours, receipts of version 2', value: second.shared.bytes, unit: 'bytes' },
  ]
}

const isLarge = ({ signatures }: PinnedBatch) => signatures >= LARGE_BATCH
const toBytesEach = ({ signatures, bytes }: PinnedBatch) => bytes / signatures
