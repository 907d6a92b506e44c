import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toCid } from '@countersign/receipt'
import { startPostgres } from '@countersign/testing'
import { type Service, startService, toPath } from '@countersign/testing/launcher'
import type { Scope } from '@countersign/testing/stack'
import { openBlockFiles } from '../../services/coordinator/src/publish/ipfs/blockFiles.ts'
import { openStores } from '../../services/coordinator/src/store/openStore.ts'
import { fill, toFilledSlug, UNFINISHED } from '../bench/growth/fill.ts'
import { connectCaller, toGet } from '../bench/load.ts'
import { openQuery, type Query } from '../openQuery.ts'
import type { Outcome, TrialDeps } from '../trial.ts'

type Sizes = { database: number; attestations: number }

const DAY_MS = 86_400_000
const DAYS = 300
const RETENTION_DAYS = 30
/** Writes and reads that are under way at one time. */
const WRITES = 32
const CONNECTIONS = 48
/** Whole answers that are compared with those from before, headers too. */
const COMPARED = 2_000
const CHUNK = 50_000
/** As for a small production server; commits do not wait for the disk. */
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB', autovacuum: 'off' }

/**
 * A database of complete proofs, each with a receipt of its own that an IPFS node holds: most of them leave the database, and then all
 * proofs are read over HTTP, each answer compared. The first worker is killed on its way.
 */
export async function runRetention(
  { scope, say }: TrialDeps,
  { proofs, receipts: version }: { proofs: number; receipts: number },
): Promise<Outcome> {
  const receipts = createReceipts(version as ReceiptVersion)
  const postgres = scope.add(await startPostgres({ isDurable: false, settings: SETTINGS }), ({ stop }) => stop())
  const databaseUrl = await postgres.createDatabase()
  const dataDir = await scope.createFolder()
  const env = {
    DATABASE_URL: databaseUrl,
    DATA_DIR: dataDir,
    RETENTION_MS: String(RETENTION_DAYS * DAY_MS),
    // As a worker has it; of few proofs less, so that there is a middle to be killed in.
    PAGE_SIZE: String(Math.min(256, Math.ceil(proofs / 200))),
  }
  // With the schema, and the tables of the jobs.
  const { store } = await openStores({ databaseUrl })
  await store.close()
  const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())

  const fillSeconds = await time(async () => {
    await prepare(query, { proofs, receipts, dataDir, say })
    await fillRows(query, { proofs, receipts, say })
  })
  const filled = await measure(query)
  const slugs = Array.from({ length: Math.min(COMPARED, proofs) }, (_, index) =>
    toFilledSlug(Math.floor((index * proofs) / Math.min(COMPARED, proofs))),
  )
  const before = await withServer(scope, env, (url) => readWhole(url, slugs))

  let killedAt = 0
  const dropSeconds = await time(async () => {
    killedAt = await dropUntilKilled(query, { env, proofs })
    say(`killed the worker after ${killedAt} receipts`)
    await dropAll(env)
  })
  say('vacuum')
  await query('vacuum (analyze) attestations')
  const afterVacuum = await measure(query)
  await query('vacuum (full, analyze) attestations')
  const afterFull = await measure(query)

  const wrong: string[] = []
  let read = 0
  const readSeconds = await time(() =>
    withServer(scope, env, async (url) => {
      const after = await readWhole(url, slugs)
      for (const [index, slug] of slugs.entries()) {
        if (after[index] !== before[index]) wrong.push(`${slug}: another answer than before`)
      }
      read = await readAll(url, { proofs, receipts, wrong, say })
    }),
  )
  const [gone] = await query<{ dropped: string; held: string; bytes: string }>(
    `select count(receipt_dropped) as dropped, count(receipt_bytes) as held, coalesce(sum(receipt_dropped), 0) as bytes from attestations`,
  )
  if (read !== proofs) wrong.push(`${read} of ${proofs} proofs were read`)
  const toMib = ({ database, attestations }: Sizes) =>
    [database, attestations].map((bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`)
  return {
    faults: wrong,
    tables: [
      {
        head: ['Size', 'Database', 'Of that attestations'],
        rows: [
          ['before', ...toMib(filled)],
          ['after VACUUM', ...toMib(afterVacuum)],
          ['after VACUUM FULL', ...toMib(afterFull)],
        ],
      },
    ],
    figures: {
      ...{ proofs, receiptBytes: receipts.length, dropped: Number(gone?.dropped), held: Number(gone?.held) },
      ...{ droppedBytes: Number(gone?.bytes), read, killedAt },
      seconds: { fill: fillSeconds, drop: dropSeconds, read: readSeconds },
    },
  }
}

/** What the filled rows refer to: evidence that all share, the blocks, and their CIDs, which SQL cannot spell. */
async function prepare(
  query: Query,
  parameters: { proofs: number; receipts: Receipts; dataDir: string; say(text: string): void },
) {
  const { proofs, receipts, dataDir, say } = parameters
  await query(`insert into collaterals select sha256('{}'), '{}'`)
  await query(`insert into self_attestations select sha256('{}'), '{}'`)
  await query('create unlogged table bench_cids (n bigint primary key, cid text not null)')
  const folder = join(dataDir, 'ipfs')
  const [blocks, incoming] = [join(folder, 'blocks'), join(folder, 'incoming')]
  const files = await openBlockFiles({ blocks, incoming, isDurable: false })
  for (let from = 0; from < proofs; from += CHUNK) {
    const cids: string[] = []
    await inTurn(Math.min(CHUNK, proofs - from), WRITES, async (index) => {
      const bytes = receipts.toBytes(from + index)
      const cid = toCid(bytes)
      cids[index] = cid
      await files.write(cid, bytes)
    })
    await query(
      'insert into bench_cids select $1::bigint + n - 1, cid from unnest($2::text[]) with ordinality as given (cid, n)',
      [from, cids],
    )
    say(`blocks: ${from + cids.length} of ${proofs}`)
  }
}

async function fillRows(query: Query, parameters: { proofs: number; receipts: Receipts; say(text: string): void }) {
  const { proofs, receipts, say } = parameters
  const own = { bytes: receipts.sql, cid: '(select cid from bench_cids where n = i)' }
  await fill(
    query,
    { proofs, users: Math.ceil(proofs / 10), receipts: [], sample: 1, own, days: DAYS, isSwept: true },
    say,
  )
  await query('drop table bench_cids')
}

async function measure(query: Query): Promise<Sizes> {
  const [row] = await query<{ database: string; attestations: string }>(
    `select pg_database_size(current_database()) as database, pg_total_relation_size('attestations') as attestations`,
  )
  return { database: Number(row?.database), attestations: Number(row?.attestations) }
}

const countDropped = async (query: Query) => {
  const [row] = await query<{ count: string }>('select count(receipt_dropped) from attestations')
  return Number(row?.count)
}

type Env = Readonly<Record<string, string>>

const startDropper = (env: Env, onLine?: (line: string) => void): Service =>
  startService({
    name: 'dropper',
    main: toPath('trials/retention/dropper.ts'),
    env,
    ...(onLine && { onLine }),
  })

/** Killed in the middle of a round, once some have gone. */
async function dropUntilKilled(query: Query, { env, proofs }: { env: Env; proofs: number }): Promise<number> {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  let lines = 0
  const service = startDropper(env, (line) => {
    if (line.includes('Dropped receipts')) lines += 1
    if (lines >= (proofs < CHUNK ? 2 : 5)) resolve()
  })
  await Promise.race([begun, service.ended])
  await service.kill('SIGKILL')
  return countDropped(query)
}

async function dropAll(env: Env) {
  const { isClean, how, lastLines } = await startDropper(env).ended
  if (!isClean) throw new Error(`the dropper ${how}: ${lastLines.join('\n')}`)
}

async function withServer<Result>(scope: Scope, env: Env, use: (url: string) => Promise<Result>): Promise<Result> {
  const service = startService({ name: 'proof server', main: toPath('trials/retention/proofServer.ts'), env })
  scope.add(service, () => service.stop())
  const { address } = await service.started
  const result = await use(String(address))
  await service.stop()
  return result
}

/** Whole answers, without what differs each time. */
async function readWhole(url: string, slugs: readonly string[]): Promise<string[]> {
  const caller = await connectCaller(url)
  const answers: string[] = []
  for (const slug of slugs) {
    const answer = await caller.call(toGet(`/proof/${slug}`))
    answers.push(answer.replace(/^(?:x-request-id|date): .*\r\n/gim, ''))
  }
  caller.close()
  return answers
}

/** Every proof: the receipt in its answer has the bytes that were pinned. */
async function readAll(
  url: string,
  parameters: { proofs: number; receipts: Receipts; wrong: string[]; say(text: string): void },
): Promise<number> {
  const { proofs, receipts, wrong, say } = parameters
  const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => connectCaller(url)))
  let read = 0
  let next = 0
  await Promise.all(
    callers.map(async (caller) => {
      while (next < proofs) {
        const index = next++
        const slug = toFilledSlug(index)
        const answer = await caller.call(toGet(`/proof/${slug}`))
        const fault = judge(answer, {
          slug,
          expected: index < proofs - UNFINISHED ? receipts.toBytes(index) : undefined,
        })
        if (fault !== undefined && wrong.length < 20) wrong.push(`${slug} (${index}): ${fault}`)
        read += 1
        if (read % 100_000 === 0) say(`read ${read} of ${proofs}`)
      }
    }),
  )
  for (const caller of callers) caller.close()
  return read
}

function judge(
  answer: string,
  { slug, expected }: { slug: string; expected: Uint8Array | undefined },
): string | undefined {
  if (!answer.startsWith('HTTP/1.1 200 ')) return answer.slice(0, 300)
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  if (!body.startsWith(`{"slug":"${slug}",`)) return 'another proof'
  if (expected === undefined) return body.includes('"status":"pending_') ? undefined : 'not pending'
  const start = body.indexOf(',"receipt":') + ',"receipt":'.length
  const end = body.lastIndexOf(',"createdAt":"')
  const isSame = hash('sha256', Buffer.from(body.slice(start, end), 'latin1')) === hash('sha256', expected)
  return isSame ? undefined : 'another receipt'
}

async function inTurn(count: number, width: number, task: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: width }, worker))
}

async function time(task: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await task()
  return (performance.now() - startedAt) / 1000
}

type ReceiptVersion = 1 | 2

/** Real receipts, each with the hash of another transaction in it: of the real size, and no two the same. */
type Receipts = {
  length: number
  toBytes(index: number): Uint8Array<ArrayBuffer>
  /** The same as SQL of the number `i`, so that a million of them need not be sent. */
  sql: string
}

const FILES = { 1: 'golden/receipt.json', 2: 'golden-v2/transaction/attestation.json' } as const

function createReceipts(version: ReceiptVersion): Receipts {
  const file = new URL(`../../packages/receipt/spec/${FILES[version]}`, import.meta.url)
  const text = readFileSync(file, 'utf8')
  const digits = /"txHash":"0x([0-9a-f]{64})"/.exec(text)?.[1]
  if (digits === undefined) throw new Error('the golden receipt has no hash of a transaction')
  const parts = text.split(digits)
  const toBytes = (index: number) => new Uint8Array(Buffer.from(parts.join(hash('sha256', `tx${index}`))))
  const literal = text.replaceAll("'", "''")
  return {
    length: Buffer.byteLength(text),
    toBytes,
    sql: `convert_to(replace('${literal}', '${digits}', encode(sha256(convert_to('tx' || i, 'UTF8')), 'hex')), 'UTF8')`,
  }
}
