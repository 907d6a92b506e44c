import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { startBackend } from '@countersign/testing'
import { createAccounts } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { type Caller, connectCaller, signInAll, signMany, toRequest } from '../bench/load.ts'
import { openQuery, type Query } from '../openQuery.ts'
import { count, type Outcome, type Trial, type TrialDeps, type Values } from '../trial.ts'

const USERS = 8
/** The signatures are backdated over this many days. */
const DAYS = 300
const RETENTION_DAYS = 30
/** Concurrent readers. A coordinator rebuilds two receipts at a time and rejects requests when too many wait. */
const READERS = 4
const POLL_MS = 2
/** Time without progress after which the trial fails. */
const STUCK_MS = 120_000

const options = {
  proofs: count(20_000, 'number of proofs', { least: 600 }),
  receipts: count(2, 'version of the receipts: 1 (26 kB each) or 2 (2 kB each)', { most: 2 }),
}
type Options = Values<typeof options>

export const retention: Trial = {
  summary:
    'Signs and publishes, lets the worker drop old receipts from the database, kills it meanwhile, and reads every proof again.',
  options,
  example: '--proofs 2000 --receipts 1',
  run: runRetention,
}

/**
 * Signs and publishes, backdates the signatures, and lets the worker drop the old receipts from the database. The worker is killed meanwhile.
 * Then every proof must read as before, from receipts that a coordinator rebuilds.
 */
export async function runRetention({ scope, say }: TrialDeps, { proofs, receipts }: Options): Promise<Outcome> {
  const { chain, env } = await startContract()
  scope.add(chain, ({ stop }) => stop())
  const backend = await startBackend({ accounts: createAccounts(USERS), env: { ...env, RECEIPTS: String(receipts) } })
  scope.add(backend, ({ stop }) => stop())
  const { query } = scope.add(await openQuery(backend.databaseUrl), ({ close }) => close())
  const restart = async (changes: Record<string, string> = {}) => {
    await backend.stopCoordinator('SIGKILL')
    await backend.startCoordinator(changes)
    await backend.untilReady()
  }
  const retention = { RECEIPT_RETENTION_D: String(RETENTION_DAYS) }

  const slugs = await signMany(backend, { cookies: await signInAll(backend, USERS), count: proofs })
  say(`signed ${proofs}, waiting for publication`)
  const isFinal = `status = 'complete' and exists (select from publications as p where p.id = publication_id and p.status = 'final')`
  await untilCount(query, isFinal, proofs, STUCK_MS)
  // The newest proof keeps its time. Triggers, which forbid changing a time, are off.
  await query(
    `begin; set local session_replication_role = replica;
    update proofs set created_at = created_at - interval '1 day' * (${DAYS} * (1 - older.place / ${proofs}::float8))
      from (select slug, row_number() over (order by created_at) as place from proofs) as older
      where older.slug = proofs.slug; commit`,
  )
  const before = await readAll(backend, slugs)
  const sizes = [['before', await readSize(query)]]

  await restart(retention)
  await untilCount(query, DROPPED, 1, STUCK_MS)
  await backend.stopCoordinator('SIGKILL')
  const killedAt = await countProofs(query, DROPPED)
  say(`killed the worker after ${killedAt} receipts`)
  await backend.startCoordinator(retention)
  const due = await countProofs(query, `created_at < now() - interval '${RETENTION_DAYS} days'`)
  await untilCount(query, DROPPED, due, STUCK_MS)
  await query('vacuum (analyze) receipts')
  sizes.push(['after VACUUM', await readSize(query)])
  await query('vacuum (full, analyze) receipts')
  sizes.push(['after VACUUM FULL', await readSize(query)])

  say('reading every proof again')
  // A new process has an empty cache.
  await restart()
  const after = await readAll(backend, slugs)
  const faults = slugs.flatMap((slug) => {
    const answer = after.get(slug) ?? 'no answer'
    return answer === before.get(slug) ? [] : [`answer of ${slug} changed: ${answer.slice(0, 300)}`]
  })
  const [dropped, held] = [await countProofs(query, DROPPED), await countProofs(query, HELD)]
  if (dropped + held !== proofs)
    faults.push(`${dropped} receipts dropped and ${held} stored, expected ${proofs} in total`)
  return {
    faults,
    tables: [{ head: ['Size', 'Receipts'], rows: sizes.map(([name = '', bytes = '']) => [name, `${bytes} MiB`]) }],
    figures: { proofs, dropped, held, killedAt, read: after.size },
  }
}

const DROPPED = 'receipt_dropped is not null'
const HELD = 'exists (select from receipts where signing_id = proofs.signing_id)'

async function countProofs(query: Query, where: string): Promise<number> {
  const [row] = await query<{ count: string }>(`select count(*) from proofs where ${where}`)
  return Number(row?.count)
}

async function untilCount(query: Query, where: string, wanted: number, stuckMs: number): Promise<void> {
  let [seen, at] = [-1, performance.now()]
  for (;;) {
    const now = await countProofs(query, where)
    if (now >= wanted) return
    if (now !== seen) [seen, at] = [now, performance.now()]
    if (performance.now() - at > stuckMs) throw new Error(`no progress: ${now} of ${wanted} proofs with ${where}`)
    await setTimeout(POLL_MS)
  }
}

async function readSize(query: Query): Promise<string> {
  const [row] = await query<{ bytes: string }>(`select pg_total_relation_size('receipts') as bytes`)
  return (Number(row?.bytes) / 2 ** 20).toFixed(1)
}

/** A hash of each answer with its headers, except those that differ in each response. For a failed read, the answer itself. */
async function readAll({ url }: { url: string }, slugs: readonly string[]): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  const queue = slugs.values()
  const readQueue = async (caller: Caller) => {
    for (const slug of queue) {
      const answer = await caller.call(toRequest(`GET /proof/${slug}`))
      const same = answer.replace(/^(?:x-request-id|date): .*\r\n/gim, '')
      answers.set(slug, answer.startsWith('HTTP/1.1 200 ') ? hash('sha256', same) : answer)
    }
    caller.close()
  }
  await Promise.all(Array.from({ length: READERS }, async () => readQueue(await connectCaller(url))))
  return answers
}
