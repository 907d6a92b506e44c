import { hash } from 'node:crypto'
import { createStore } from '../../../services/coordinator/src/store/createStore.ts'
import { countOpenProofs } from '../../../services/coordinator/src/store/inspect.ts'
import { openJobs } from '../../../services/coordinator/src/store/jobs.ts'
import { type Database, openDatabase } from '../../../services/coordinator/src/store/openDatabase.ts'
import { createPublicationStore } from '../../../services/coordinator/src/store/publications.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWitness,
  randomHex,
} from '../../../services/coordinator/src/store/store.fake.ts'
import { enqueueMissing } from '../../../services/coordinator/src/store/sweep.ts'
import type { Wallet } from '../../../services/coordinator/src/store/types.ts'
import { HEAVY_USER } from './fill.ts'

export type Plans = Record<string, unknown[]>

/** As many as are gathered at 64 connections. */
const GATHERED = 32

/** How the database runs the store's own statements: `explain (analyze, buffers)` of each, as JSON. */
export async function explainStatements(databaseUrl: string, slug: string): Promise<Plans> {
  const opened = await openDatabase({ databaseUrl })
  const jobs = await openJobs(opened, { pipelineDelayMs: 1000 })
  const plans: unknown[] = []
  const db = explaining(opened.db, (plan) => plans.push(plan))
  const database = { ...opened, db }
  const store = createStore({ database, jobs })
  const publications = createPublicationStore({ db, jobs })
  const wallet = toWallet()
  const now = Date.now()
  const many = <Item>(create: (index: number) => Item) => Array.from({ length: GATHERED }, (_, index) => create(index))
  const statements: Record<string, () => Promise<unknown>> = {
    'look up signers': () =>
      store.findSigners({
        asked: many((index) => ({ sidHash: hash('sha256', `sid${index}`), digest: `0x${randomHex(32)}` as const })),
        now,
        idleMs: 86_400_000,
      }),
    'claim entropy': () => store.claimSamples(many(createTestWitness), now),
    'commit signings': () =>
      store.insertSignings({ batch: createTestBatch(), signings: many(() => createTestSigning(wallet)), now }),
    'read a proof': () => store.findProof(slug),
    'list transactions': () => store.listTransactions({ userId: HEAVY_USER, limit: 21, before: undefined }),
    sweep: () => enqueueMissing({ db, jobs }, { now }),
    'count open proofs': () => countOpenProofs(db),
    'find due proofs': () => publications.findDue(),
    'find open publications': () => publications.findOpen(84_532),
  }
  const found: Plans = {}
  try {
    for (const [name, run] of Object.entries(statements)) {
      plans.length = 0
      // The store is answered nothing at all, and may well say that this cannot be.
      await run().catch(() => {})
      found[name] = [...plans]
    }
  } finally {
    await store.close()
  }
  return found
}

type Db = Database['db']
type Plugin = Parameters<Db['withPlugin']>[0]
type QueryNode = ReturnType<Plugin['transformQuery']>

const OPTIONS = 'analyze, buffers, format json'

/** Sends `explain …` in place of each statement. */
function explaining(db: Db, onPlan: (plan: unknown) => void): Db {
  return db.withPlugin({
    transformQuery: ({ node }) => toExplained(node),
    async transformResult({ result }) {
      for (const row of result.rows) if ('QUERY PLAN' in row) onPlan(row['QUERY PLAN'])
      return { ...result, rows: [] }
    },
  })
}

function toExplained(node: QueryNode): QueryNode {
  if (node.kind === 'RawNode') {
    const [first = '', ...rest] = node.sqlFragments
    // Not a question, but how it is to be asked.
    if (first.startsWith('set local')) return node
    return { ...node, sqlFragments: [`explain (${OPTIONS}) ${first}`, ...rest] }
  }
  const options = { kind: 'RawNode', sqlFragments: [OPTIONS], parameters: [] } as const
  return 'explain' in node || node.kind === 'SelectQueryNode' || node.kind === 'UpdateQueryNode'
    ? { ...node, explain: { kind: 'ExplainNode', options } }
    : node
}

/** The wallet of the heavy user, as the fill has made it. */
function toWallet(): Wallet {
  return {
    id: hash('md5', 'wallet0').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    userId: HEAVY_USER,
    address: `0x${hash('sha256', 'address0').slice(0, 40)}`,
    kmsKeyId: hash('md5', 'key0'),
    createdAt: 0,
    provenance: { entropyHash: '', entropySig: '', satelliteSource: '' },
  }
}
