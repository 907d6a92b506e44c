import type { Query } from '../openQuery.ts'

type Filling = {
  proofs: number
  /** Number of proofs with a full-size receipt. The receipts of the others are empty. */
  sample: number
}

/** At most the size of one partition of `signings`. */
const PARTITION = 1_000_000
/** Copies of each template row per statement. */
const CHUNK = 250
/** These tables get fewer copies, so that each user has about this many proofs. */
const PROOFS_PER_USER = 10
const ofPeople = ['users', 'wallets', 'sessions']

const toUuid = (column: string, copy = 'k') => `md5(${column}::text || ${copy})::uuid`
const toHash = (column: string) => `sha256(${column} || int8send(k))`
/** More than the number of template rows. */
const STRIDE = 1_000
const toNumber = (column: string) => `${column} + k * ${STRIDE}`
const slug = `rtrim(translate(encode(decode(md5(slug || k), 'hex'), 'base64'), '+/', '-_'), '=')`
/** Spreads the copies over the last day. */
const time = `now() - interval '1 day' * (1 - k / $copies::float8)`
const heavyWallet = `(select id from wallets order by created_at, id limit 1)`

/** The columns that differ in copy `k` of a row, by table. */
const COPIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  users: { id: toUuid('id'), subject: 'subject || k' },
  wallets: { id: toUuid('id'), user_id: toUuid('user_id') },
  sessions: { sid_hash: toHash('sid_hash'), user_id: toUuid('user_id') },
  batches: { sequence: toNumber('sequence') },
  verifications: { id: toNumber('id'), sequence: toNumber('sequence') },
  signings: {
    id: toNumber('id'),
    verification_id: toNumber('verification_id'),
    // Digest and hash stay the same: they are packed with the other facts, and no index covers them.
    created_at: time,
    wallet_id: `case when k % 100 = 0 then ${heavyWallet} else ${toUuid('wallet_id', '(1 + k % $people)')} end`,
  },
  signing_lookups: {
    signing_id: toNumber('signing_id'),
    slug,
    request: toUuid('request'),
    sample: toUuid('sample'),
  },
  publications: { id: toNumber('id'), nonce: toNumber('nonce'), tx_hash: toHash('tx_hash') },
  publication_transactions: { tx_hash: toHash('tx_hash'), publication_id: toNumber('publication_id') },
  proofs: { signing_id: toNumber('signing_id'), slug, publication_id: toNumber('publication_id'), created_at: time },
  receipts: {
    signing_id: toNumber('signing_id'),
    bytes: `case when k % $step = 0 then bytes else '\\x007b7d'::bytea end`,
  },
  entropy_samples: { entropy_hash: toHash('entropy_hash'), claimed_at: 'now()' },
  'pgboss.job': {
    id: toUuid('id'),
    state: `'completed'::pgboss.job_state`,
    started_on: 'now()',
    completed_on: 'now()',
  },
}

/**
 * Fills every table with copies of the rows that real proofs left there. All rows are at most a day old, no cleanup has run yet, and one
 * wallet has 1 % of all proofs. Triggers and foreign keys are off during the copy; column checks still apply.
 */
export async function fill(
  query: Query,
  { proofs, sample }: Filling,
  onProgress: (text: string) => void,
): Promise<void> {
  const [real] = await query<{ proofs: string; users: string }>(
    'select (select count(*) from proofs) as proofs, (select count(*) from users) as users',
  )
  const copies = Math.ceil(proofs / Number(real?.proofs))
  const people = Math.ceil(proofs / PROOFS_PER_USER / Number(real?.users))
  const values = { copies, people, step: Math.max(Math.floor(proofs / sample), 1) }
  const put = (text: string) =>
    Object.entries(values).reduce((sql, [name, value]) => sql.replaceAll(`$${name}`, String(value)), text)
  for (let id = 1; id <= (copies + 1) * STRIDE; id += PARTITION) {
    await query(`select setval('signings_id', ${id}), create_signing_partitions()`)
  }
  for (const [table, changes] of Object.entries(COPIES)) {
    const found = await query<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped
        and attgenerated = ''`,
    )
    const columns = found.map(({ name }) => name)
    await query(`create table bench_rows as table ${table}`)
    const count = ofPeople.includes(table) ? people : copies
    for (let from = 1; from <= count; from += CHUNK) {
      const to = Math.min(from + CHUNK - 1, count)
      await query(
        put(`begin; set local session_replication_role = replica; set local synchronous_commit = off;
          insert into ${table} (${columns.map((name) => `"${name}"`).join()}) overriding system value
          select ${columns.map((name) => changes[name] ?? `"${name}"`).join()}
          from bench_rows cross join generate_series(${from}::bigint, ${to}::bigint) as k; commit`),
      )
    }
    await query('drop table bench_rows')
    onProgress(`${table}: ${count} copies`)
  }
  await query(`select setval('signings_id', (select max(id) from signings)), create_signing_partitions()`)
  for (const table of ['verifications', 'publications']) {
    await query(`select setval(pg_get_serial_sequence('${table}', 'id'), (select max(id) from ${table}))`)
  }
  onProgress('running vacuum and analyze')
  for (const table of Object.keys(COPIES)) await query(`vacuum (analyze) ${table}`)
}
