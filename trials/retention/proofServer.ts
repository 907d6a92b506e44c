import type { AddressInfo } from 'node:net'
import type { Log } from '@countersign/service'
import { type AppDeps, createApp } from '../../services/coordinator/src/app.ts'
import { createHttpServer } from '../../services/coordinator/src/http/createHttpServer.ts'
import { createHeliaPinner } from '../../services/coordinator/src/publish/ipfs/helia.ts'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { systemClock, systemRandom } from '../../services/coordinator/src/system.ts'

// The HTTP interface of a coordinator on a database and an embedded IPFS node, for reading proofs: it can sign nothing.

const { DATABASE_URL: databaseUrl = '', DATA_DIR: dataDir = '' } = process.env
const node = await createHeliaPinner({ dataDir })
const { store, logStore } = await openStores({ databaseUrl })
const write = (line: object) => console.log(JSON.stringify(line))
// Without the line of each request: there are millions.
const log: Log = { info() {}, warn: write, error: write }
const refuseNow = () => {
  throw new Error('only proofs are read here')
}
const refuse = async () => refuseNow()
const selfReport: AppDeps['selfReport'] = {
  mode: 'mock',
  publicKey: '00'.repeat(32),
  current: refuseNow,
  sign: refuseNow,
}
const { app, direct, refuseUnreadable } = createApp({
  store,
  signers: { find: refuse },
  logStore,
  // Its rows, of one evidence for all, do not give its receipts.
  rebuildReceipt: async (slug) => {
    const cid = (await store.findProof(slug))?.ipfsCid ?? ''
    return { cid, bytes: await node.pinner.read(cid, { signal: AbortSignal.timeout(10_000) }) }
  },
  exportProofs: refuse,
  getWebhookKeys: refuseNow,
  warnOf: refuse,
  enclave: { openSession: refuse, deriveVault: refuse },
  entropy: { take: refuse },
  selfReport,
  providers: new Map(),
  sign: refuse,
  clock: systemClock,
  random: systemRandom,
  log,
  config: {
    publicUrl: 'http://localhost',
    allowedOrigins: ['http://localhost'],
    cookieSameSite: 'lax',
    sessionTtlMs: 1,
    sessionIdleMs: 1,
    trustedProxies: [],
    rateLimits: { sign: 'off', provision: 'off', auth: 'off', proof: 'off' },
    allowedChainIds: undefined,
    entropySources: [],
  },
})
const server = createHttpServer({ direct, fetch: app.fetch, refuse: refuseUnreadable })
server.listen(0, '127.0.0.1', () => {
  write({ msg: 'Started the proof server', address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})
process.once('SIGTERM', () => {
  server.close(() => void store.close().then(() => node.stop()))
  server.closeAllConnections()
})
