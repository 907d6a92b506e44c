import { hash } from 'node:crypto'
import type { Hex, ProofStatus } from '@countersign/protocol'
import type { Log, LogLine } from '@countersign/service'
import { type FakeChain, type StartFakeChainParameters, startFakeChain } from '@countersign/testing'
import { sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import { ChainError } from '../../src/publish/chain/chainError.ts'
import { type Chain, type CreateViemChainParameters, createViemChain } from '../../src/publish/chain/viemChain.ts'
import { confirmPublications } from '../../src/publish/confirm.ts'
import { type ConfirmDeps, createObservations, MIN_OBSERVED_MS } from '../../src/publish/confirmRun.ts'
import { publishDue } from '../../src/publish/publish.ts'
import { createOutages } from '../../src/publish/send.ts'
import { createPublicationStore } from '../../src/store/publications.ts'
import type { Wallet } from '../../src/store/wallets.ts'
import { pinRows } from '../store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../store/store.ts'

/** Hardhat's first account, whose key is public. */
export const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
export const publisher = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
/** Hardhat's second account. */
export const strangerKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
export const stranger = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
export const gwei = 10n ** 9n
export const DEADLINE_MS = 86_400_000
/** Faults without side effects. */
export const SEND = { methods: ['eth_sendRawTransaction'] }
const BLOCK_MS = 12_000

export type ProofRow = {
  slug: string
  wallet: Hex
  txHash: Hex
  cid: string
  status: ProofStatus
  failure: string | null
  onchainTxHash: Hex | null
  onchainBlockNumber: number | null
  publicationId: number | null
  publishLimit: number
  /** Whether a checkpoint publishes it. */
  isAnchored: boolean
}
export type PublicationRow = {
  id: number
  nonce: number
  status: string
  proofs: number
  transactions: { hash: Hex; kind: string; maxFeePerGas: bigint; isSent: boolean }[]
}

export type TestPublishing = { subject: TestStore; wallet: Wallet; stop(): Promise<void> }

/** A database for all tests of a file. */
export async function startTestPublishing(): Promise<TestPublishing> {
  const subject = await startTestStore()
  const wallet = await createTestWallet(subject.store)
  return { subject, wallet, stop: () => subject.stop() }
}

export type Scene = Awaited<ReturnType<typeof createScene>>

/** Returns the code of the run's chain error, or `none`. Throws other errors. */
export const codeOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => 'none',
    (error: unknown) => (error instanceof ChainError ? error.code : error),
  )

/** One test's setting: empty tables, a new chain, a manual clock and both stages. */
export async function createScene(
  { subject, wallet }: TestPublishing,
  { confirmations = 6, ...chainOptions }: StartFakeChainParameters & { confirmations?: number } = {},
) {
  const { db } = subject.database
  await sql`truncate proofs, receipts, signings, signing_lookups, anchors, publication_transactions, publications`.execute(
    db,
  )
  await sql`delete from pgboss.job`.execute(db)
  let now = NOW
  const clock = { now: () => now }
  const node: FakeChain = await startFakeChain({ now: clock.now, ...chainOptions })
  onTestFinished(() => node.stop())
  const lines: LogLine[] = []
  const write = (line: LogLine) => void lines.push(line)
  const log: Log = { info: write, warn: write, error: write }
  const connect = (parameters: Partial<CreateViemChainParameters> = {}) =>
    createViemChain({
      rpcUrl: node.url,
      chainId: node.chainId,
      contract: node.contract,
      privateKey: publisherKey,
      fetch: node.fetch,
      ...parameters,
    })
  const deps: ConfirmDeps = {
    store: createPublicationStore({ db, jobs: subject.jobs }),
    chain: connect(),
    clock,
    log,
    publishDeadlineMs: DEADLINE_MS,
    confirmations,
    observations: createObservations(),
    outages: createOutages(),
  }

  async function addProofs(count: number): Promise<ProofRow[]> {
    const signings = Array.from({ length: count }, () => createTestSigning(wallet))
    await subject.store.insertSignings({ batch: createTestBatch(), signings, now })
    const slugs = signings.map(({ slug }) => slug)
    await pinRows(db, slugs, { toCid: (slug) => `bafkrei${hash('sha256', slug).slice(0, 52)}`, now })
    return (await proofs()).filter(({ slug }) => slugs.includes(slug))
  }

  async function proofs(): Promise<ProofRow[]> {
    const { rows } = await sql<ProofRow>`
      select slug, '0x' || encode(w.address, 'hex') as wallet, '0x' || encode(p.tx_hash, 'hex') as "txHash", a.status, failure,
        ipfs_cid as cid, '0x' || encode(b.tx_hash, 'hex') as "onchainTxHash", publication_id::int as "publicationId",
        b.block_number::int as "onchainBlockNumber", publish_limit::int as "publishLimit",
        exists (select from anchors where publication_id = a.publication_id) as "isAnchored"
      from proofs as a join signings as p on p.id = a.signing_id join wallets as w on w.id = p.wallet_id
        left join publications as b on b.id = a.publication_id and a.status = 'complete'
      order by a.signing_id`.execute(db)
    return rows
  }

  async function publications(): Promise<PublicationRow[]> {
    const { rows } = await sql<Omit<PublicationRow, 'transactions'>>`
      select id::int, nonce::int, status, (select count(*)::int from proofs where publication_id = p.id) as proofs
      from publications as p order by p.nonce`.execute(db)
    const { rows: transactions } = await sql<{ id: number; hash: Hex; kind: string; fee: string; isSent: boolean }>`
      select publication_id::int as id, '0x' || encode(tx_hash, 'hex') as hash, kind, max_fee_per_gas::text as fee,
        sent_at is not null as "isSent"
      from publication_transactions order by max_fee_per_gas`.execute(db)
    return rows.map((row) => ({
      ...row,
      transactions: transactions
        .filter(({ id }) => id === row.id)
        .map(({ id: _, fee, ...rest }) => ({ ...rest, maxFeePerGas: BigInt(fee) })),
    }))
  }

  /** Counts proofs by status. */
  async function count(): Promise<Partial<Record<ProofStatus, number>>> {
    const counts: Partial<Record<ProofStatus, number>> = {}
    for (const { status } of await proofs()) counts[status] = (counts[status] ?? 0) + 1
    return counts
  }

  /** Checks I5, I4 and its converse: every complete proof has its event, unless a checkpoint published it; others need none. */
  async function assertEvents() {
    const toKey = (wallet: string, txHash: string, cid: string) => `${wallet}/${txHash}/${cid}`
    const events = node.events().map((event) => [toKey(event.wallet, event.txHash, event.ipfsCid), event] as const)
    const byKey = new Map(events)
    expect(byKey.size, 'one event at most for each proof').toBe(events.length)
    for (const proof of await proofs()) {
      const event = byKey.get(toKey(proof.wallet, proof.txHash, proof.cid))
      if (proof.status === 'onchain_failed') expect(event, 'no event of a failed proof').toBeUndefined()
      if (proof.isAnchored) {
        expect(event, 'no event of an anchored proof').toBeUndefined()
        continue
      }
      if (proof.status !== 'complete') continue
      expect({ hash: event?.transactionHash, blockNumber: event?.blockNumber }).toEqual({
        hash: proof.onchainTxHash,
        blockNumber: proof.onchainBlockNumber,
      })
    }
  }

  const publish = (changes: Partial<ConfirmDeps> = {}) => publishDue({ ...deps, ...changes })
  const confirm = (changes: Partial<ConfirmDeps> = {}) => confirmPublications({ ...deps, ...changes })

  /** Claims without sending, like a process that dies in between. */
  async function claimOnly(count: number) {
    const waiting = node.mempool()
    await addProofs(count)
    node.setFault('down', SEND)
    await publish()
    node.setFault()
    expect(node.mempool()).toEqual(waiting)
  }

  async function send(count: number): Promise<Hex> {
    await addProofs(count)
    await publish()
    const hash = node.mempool().at(-1)?.hash
    if (hash === undefined) throw new Error('nothing was sent')
    return hash
  }

  function pass(durationMs: number) {
    now += durationMs
  }

  /** Advances to the deadline. In the half hour before it, this worker observes that nothing is mined and can't send. */
  async function passDeadline() {
    const fail = () => Promise.reject(new ChainError('chain_unavailable'))
    pass(DEADLINE_MS - MIN_OBSERVED_MS)
    await confirm({ chain: { ...deps.chain, getFees: fail, send: fail } })
    pass(MIN_OBSERVED_MS)
  }

  /** Runs both stages like the worker, ignoring errors, then mines blocks; repeatedly. */
  async function live(rounds: number, blocks = 1) {
    for (let round = 0; round < rounds; round++) {
      await publish().catch(orChainError)
      await confirm().catch(orChainError)
      node.mine(blocks)
      pass(blocks * BLOCK_MS)
    }
  }

  /** Whether a publication is open or a proof waits. */
  async function hasWork(): Promise<boolean> {
    const { rows } = await sql<{ has_work: boolean }>`
      select exists (select from publications where status in ('pending', 'confirmed'))
        or exists (select from proofs where status = 'pending_onchain') as has_work`.execute(db)
    return rows[0]?.has_work === true
  }

  /** Runs until nothing is left to do, then checks the invariants. More `blocks` per round need fewer rounds. */
  async function finish(expected: Partial<Record<ProofStatus, number>>, { blocks = 1 } = {}) {
    for (let round = 0; round < 300; round++) {
      await live(1, blocks)
      if (!(await hasWork())) break
    }
    expect(await count()).toEqual(expected)
    expect((await publications()).filter(({ status }) => status === 'pending' || status === 'confirmed')).toEqual([])
    await assertEvents()
  }

  return {
    node,
    deps,
    clock,
    lines,
    connect,
    addProofs,
    proofs,
    publications,
    count,
    assertEvents,
    publish,
    confirm,
    claimOnly,
    send,
    pass,
    passDeadline,
    live,
    finish,
    hasWork,
    countJobs: async (queue: string) => {
      const { rows } = await sql<{ n: number }>`
        select count(*)::int as n from pgboss.job where name = ${queue} and state < 'active'`.execute(db)
      return rows[0]?.n
    },
  }
}

function orChainError(error: unknown): void {
  if (!(error instanceof ChainError)) throw error
}

export class Crash extends Error {}

/**
 * Simulates a process that dies at its nth outside call, either before the call has an effect or after it but before the answer. Every
 * later call fails too.
 */
export function createCrash(at: number, when: 'before' | 'after') {
  let calls = 0
  function wrap<Target extends object>(target: Target): Target {
    return new Proxy(target, {
      get(object, name) {
        const value = Reflect.get(object, name)
        if (typeof value !== 'function') return value
        return async (...parameters: unknown[]) => {
          calls += 1
          if (calls > at || (calls === at && when === 'before')) throw new Crash()
          const result = await value.apply(object, parameters)
          if (calls >= at) throw new Crash()
          return result
        }
      },
    })
  }
  return {
    wrap,
    get isOver() {
      return calls < at
    },
  }
}

/** A process that freezes at its first send until the test continues it. */
export function createFreeze(chain: Chain): { chain: Chain; frozen: Promise<void>; wake: () => void } {
  let wake = () => {}
  let onFrozen = () => {}
  const thaw = new Promise<void>((resolve) => (wake = resolve))
  const frozen = new Promise<void>((resolve) => (onFrozen = resolve))
  const send = async (raw: Hex) => {
    onFrozen()
    await thaw
    await chain.send(raw)
  }
  return { chain: { ...chain, send }, frozen, wake }
}
