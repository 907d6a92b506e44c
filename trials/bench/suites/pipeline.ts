import type { Hex } from '@countersign/protocol'
import { startChain, startPostgres } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { deployServiceAttestations } from '../../../contracts/deployContract.ts'
import { createViemChain } from '../../../services/coordinator/src/publish/chain/viemChain.ts'
import { confirmPublications } from '../../../services/coordinator/src/publish/confirm.ts'
import { createSightings } from '../../../services/coordinator/src/publish/confirmRun.ts'
import { createHeliaPinner } from '../../../services/coordinator/src/publish/ipfs/helia.ts'
import { createPinStage } from '../../../services/coordinator/src/publish/pin.ts'
import { createOutages, publishDue } from '../../../services/coordinator/src/publish/publish.ts'
import { startWorker } from '../../../services/coordinator/src/publish/worker.ts'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import type { Signing } from '../../../services/coordinator/src/store/signings.ts'
import {
  createTestBatch,
  createTestRelease,
  createTestSigning,
  createTestSigningV2,
  createTestWallet,
} from '../../../services/coordinator/src/store/store.fake.ts'
import type { Wallet } from '../../../services/coordinator/src/store/wallets.ts'
import { type Report, type Run, toRow } from '../report.ts'

const BACKLOG = 5_000
const ONE_BY_ONE = 40
const PER_BATCH = 100
const COORDINATOR_KEY = '5a'.repeat(32)
/** As large as those of TDX are. */
const COLLATERAL = Buffer.from(JSON.stringify({ collateral: 'ab'.repeat(10_000) }))

const clock = { now: () => Date.now() }
const log = { info() {}, warn() {}, error() {} }

/**
 * A backlog of proofs, from signed to `complete`: with the worker as it ships, and one by one (each is pinned, published and
 * confirmed before the next is taken up). PostgreSQL, an embedded IPFS node, and an EVM node that mines at once, all on this machine.
 * The rows are made by the store; their quotes and signatures are random bytes of the right length.
 */
export function benchPipeline({ isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add, createFolder }) => {
    const backlog = isQuick ? 200 : BACKLOG
    const oneByOne = isQuick ? 4 : ONE_BY_ONE
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const chainNode = add(await startChain(), ({ stop }) => stop())
    const { pinner } = add(await createHeliaPinner({ dataDir: await createFolder() }), ({ stop }) => stop())
    const databaseUrl = await postgres.createDatabase()
    const opened = await openStores({ databaseUrl, isWorker: true, pipelineDelayMs: 0 })
    const { store, pipeline } = add(opened, ({ store }) => store.close())
    const [deployer, publisher] = chainNode.accounts
    if (deployer === undefined || publisher === undefined) throw new Error('no accounts')
    const { address } = await deployServiceAttestations({
      rpcUrl: chainNode.url,
      privateKey: deployer.privateKey,
      owner: deployer.address,
      publisher: publisher.address,
    })
    const chain = createViemChain({
      rpcUrl: chainNode.url,
      chainId: chainNode.chainId,
      contract: address,
      privateKey: publisher.privateKey,
    })
    const wallet = await createTestWallet(store)
    async function sign(count: number): Promise<string[]> {
      const slugs: string[] = []
      while (slugs.length < count) {
        const size = Math.min(PER_BATCH, count - slugs.length)
        const signings = Array.from({ length: size }, () => createSigning(wallet))
        const batch = createTestBatch({ release: createTestRelease(COORDINATOR_KEY), collateral: COLLATERAL })
        await store.insertSignings({ batch, signings, now: clock.now() })
        slugs.push(...signings.map(({ slug }) => slug))
      }
      return slugs
    }
    const deadlines = { pinDeadlineMs: 3_600_000, publishDeadlineMs: 86_400_000 }
    const chainDeps = { store: pipeline.publications, chain, clock, log, outages: createOutages(), ...deadlines }

    say(`${oneByOne} one by one`)
    const single = await sign(oneByOne)
    const stage = createPinStage({ store: pipeline.pinning, pinner, clock, random: Math.random, log, ...deadlines })
    const sightings = createSightings()
    const alone = await time(async () => {
      for (const slug of single) {
        await stage.pin(slug)
        await publishDue(chainDeps)
        await confirmPublications({ ...chainDeps, confirmations: 1, sightings })
      }
    })
    await assertComplete(store, single)
    const before = await gasSpent(chainNode.url, publisher.address)

    say(`${backlog} by the worker`)
    await sign(backlog)
    const metrics = { observeStage() {} }
    const config = { ...deadlines, confirmations: 1, confirmIntervalMs: 500 }
    const together = await time(async () => {
      const deps = { store: pipeline, pinner, chain, clock, log, metrics, config }
      add(await startWorker(deps), ({ stop }) => stop())
      for (;;) {
        const open = await pipeline.countOpenProofs()
        if (open.length === 0) break
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    })
    const spent = await gasSpent(chainNode.url, publisher.address)
    const rate = { alone: oneByOne / (alone / 1000), together: backlog / (together / 1000) }
    const gas = { alone: before / oneByOne, together: (spent - before) / backlog }
    return {
      suite: 'pipeline',
      title: 'Publishing',
      setting:
        `From signed to \`complete\`: PostgreSQL, embedded IPFS node, local chain that mines at once; ${backlog} proofs by the worker, ` +
        `${oneByOne} one by one.`,
      rows: [
        toRow('proofs, by the worker', rate.together, '/s', { 'one by one': rate.together / rate.alone }),
        toRow('proofs, one by one', rate.alone, '/s'),
        toRow('gas, by the worker', gas.together, 'each', { 'one by one': gas.together / gas.alone }),
        toRow('gas, one by one', gas.alone, 'each'),
      ],
    }
  })
}

/** A transaction, for a receipt of version 2. */
function createSigning(wallet: Wallet): Signing {
  const { txMetadata, statement: first } = createTestSigning(wallet)
  const { digest, signature, txHash, signedAt } = first
  const to = txMetadata.to.toLowerCase() as Hex
  const subject = { ...txMetadata, to, from: wallet.address, txHash, digestSigned: digest, signature, signedAt }
  const signing = createTestSigningV2(wallet, { kind: 'transaction', subject })
  return { ...signing, statement: { ...signing.statement, coordinatorKey: COORDINATOR_KEY } }
}

async function time(run: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await run()
  return performance.now() - start
}

async function assertComplete(
  store: { findProof(slug: string): Promise<{ status: string } | undefined> },
  slugs: string[],
) {
  for (const slug of slugs) {
    const status = (await store.findProof(slug))?.status
    if (status !== 'complete') throw new Error(`a proof is ${status}`)
  }
}

/** Gas of all transactions that an account has sent, read from the chain. */
async function gasSpent(url: string, from: string): Promise<number> {
  const call = async (method: string, params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return ((await response.json()) as { result: never }).result
  }
  const head = Number(await call('eth_blockNumber', []))
  let gas = 0
  for (let number = 0; number <= head; number++) {
    const block: { transactions: { from: string; hash: string }[] } = await call('eth_getBlockByNumber', [
      `0x${number.toString(16)}`,
      true,
    ])
    for (const transaction of block.transactions) {
      if (transaction.from.toLowerCase() !== from.toLowerCase()) continue
      const receipt: { gasUsed: string } = await call('eth_getTransactionReceipt', [transaction.hash])
      gas += Number(receipt.gasUsed)
    }
  }
  return gas
}
