import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startChain, startPostgres } from '@countersign/testing'
import { deployServiceAttestations } from '../contracts/deployContract.ts'
import { createViemChain } from '../services/coordinator/src/chain/viemChain.ts'
import { createHeliaPinner } from '../services/coordinator/src/ipfs/helia.ts'
import { confirmPublications, createSightings } from '../services/coordinator/src/pipeline/confirm.ts'
import { createPinStage } from '../services/coordinator/src/pipeline/pin.ts'
import { publishDue } from '../services/coordinator/src/pipeline/publish.ts'
import { startWorker } from '../services/coordinator/src/pipeline/worker.ts'
import { openStores } from '../services/coordinator/src/store/openStore.ts'
import { createTestBatch, createTestSigning, createTestWallet } from '../services/coordinator/src/store/store.fake.ts'

const BACKLOG = 2_000
const ONE_BY_ONE = 40
const PER_BATCH = 100

const clock = { now: () => Date.now() }
const log = { info() {}, warn() {}, error() {} }

/**
 * A backlog of proofs, from signed to `complete`: with the worker as it ships, and one by one (each is pinned, published and
 * confirmed before the next is taken up). PostgreSQL, an embedded IPFS node, and an EVM node that mines at once, all on this machine.
 * The rows are made by the store; their quotes and signatures are random bytes of the right length.
 */
export async function benchPipeline() {
  const folder = await mkdtemp(join(tmpdir(), 'bench-pipeline-'))
  const postgres = await startPostgres()
  const chainNode = await startChain()
  const node = await createHeliaPinner({ dataDir: folder })
  const { store, pipeline } = await openStores({
    databaseUrl: await postgres.createDatabase(),
    isWorker: true,
    pipelineDelayMs: 0,
  })
  try {
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
        const signings = Array.from({ length: size }, () => createTestSigning(wallet))
        await store.insertSignings({ batch: createTestBatch(), signings, now: clock.now() })
        slugs.push(...signings.map(({ slug }) => slug))
      }
      return slugs
    }
    const { pinner } = node
    const deadlines = { pinDeadlineMs: 3_600_000, publishDeadlineMs: 86_400_000 }
    const chainDeps = { store: pipeline.publications, chain, clock, log, ...deadlines }

    const single = await sign(ONE_BY_ONE)
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

    await sign(BACKLOG)
    const metrics = { observeStage() {} }
    const config = { ...deadlines, confirmations: 1, confirmIntervalMs: 500 }
    const together = await time(async () => {
      const worker = await startWorker({ store: pipeline, pinner, chain, clock, log, metrics, config })
      for (;;) {
        const open = await pipeline.countOpenProofs()
        if (open.length === 0) break
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      await worker.stop()
    })
    const spent = await gasSpent(chainNode.url, publisher.address)
    const rate = { alone: ONE_BY_ONE / (alone / 1000), together: BACKLOG / (together / 1000) }
    const gas = { alone: before / ONE_BY_ONE, together: (spent - before) / BACKLOG }
    console.log(`PostgreSQL, embedded IPFS node, local chain; Node ${process.version} on ${process.arch}`)
    console.log(
      `one by one:  ${ONE_BY_ONE} proofs, ${rate.alone.toFixed(1)} a second, ${gas.alone.toFixed(0)} gas each`,
    )
    console.log(
      `the worker:  ${BACKLOG} proofs, ${rate.together.toFixed(1)} a second, ${gas.together.toFixed(0)} gas each`,
    )
    console.log(
      `ratio:       ${(rate.together / rate.alone).toFixed(1)} times faster, ${((100 * gas.together) / gas.alone).toFixed(1)} % of the gas`,
    )
  } finally {
    await store.close()
    await node.stop()
    await chainNode.stop()
    await postgres.stop()
    await rm(folder, { recursive: true })
  }
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
