import { createLog } from '../../services/coordinator/src/log.ts'
import { createDropper } from '../../services/coordinator/src/publish/dropReceipts.ts'
import { createHeliaPinner } from '../../services/coordinator/src/publish/ipfs/helia.ts'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { systemClock } from '../../services/coordinator/src/system.ts'

// The retention of a worker, with its embedded IPFS node, round after round without a pause. `DATABASE_URL`, `DATA_DIR`, `RETENTION_MS` and
// `PAGE_SIZE` say of what. It ends when a round drops nothing more.

const {
  DATABASE_URL: databaseUrl = '',
  DATA_DIR: dataDir = '',
  RETENTION_MS: retentionMs,
  PAGE_SIZE: pageSize,
} = process.env
const node = await createHeliaPinner({ dataDir })
const { store, pipeline } = await openStores({ databaseUrl })
// The trial puts blocks into the node's folder without their marks, a million of which would take hours.
const pinner = { readPinned: node.pinner.read }
// Nor do its rows, of one evidence for all, give its receipts.
const rebuild = async (slug: string) => ({
  cid: (await store.findProof(slug))?.ipfsCid ?? '',
  bytes: new Uint8Array(),
})
const deps = { store: pipeline.retention, pinner, rebuild, clock: systemClock, log: createLog() }
const dropper = createDropper({
  ...deps,
  retentionMs: Number(retentionMs),
  ...(pageSize && { pageSize: Number(pageSize) }),
})
console.log(JSON.stringify({ msg: 'Started the dropper' }))
while ((await dropper.run()).dropped > 0);
await store.close()
await node.stop()
