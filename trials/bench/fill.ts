import { hash, randomBytes } from 'node:crypto'
import type { Query } from '../openQuery.ts'
import type { StoredReceipt } from './completeProofs.ts'

type Filling = {
  proofs: number
  users: number
  /** Real ones, which the proofs of the sample share among them. */
  receipts: readonly StoredReceipt[]
  /** How many proofs have one. */
  sample: number
}

const CHUNK = 50_000
/** Signatures under one quote. */
const PER_BATCH = 50
/** Proofs in one publication. */
const PER_PUBLICATION = 200
/** Of the newest, so many still wait to be pinned, and so many before them to be published. */
const OPEN = 100
/** Above the ids of the few proofs that are there already. */
const FIRST_ID = 1_000_000

/**
 * Makes the rows that signed and published proofs leave behind, in every table, by SQL. All are at most a day old, and no sweep has
 * deleted a claim of entropy or a finished job yet. The database must have a few real proofs, whose collateral and self-attestation
 * the others share.
 */
export async function fill(query: Query, filling: Filling, onProgress: (text: string) => void): Promise<void> {
  const { proofs, users, receipts } = filling
  await query('create table bench_receipts (n bigint primary key, bytes bytea not null)')
  for (const [n, { bytes }] of receipts.entries()) await query('insert into bench_receipts values ($1, $2)', [n, bytes])
  const run = async (name: string, count: number, statement: string, values: readonly Buffer[] = []) => {
    for (let from = 0; from < count; from += CHUNK) {
      const to = Math.min(from + CHUNK, count) - 1
      await insert(query, statement.replaceAll('$from', String(from)).replaceAll('$to', String(to)), values)
      if (to + 1 === count || (to + 1) % (4 * CHUNK) === 0) onProgress(`${name}: ${to + 1} of ${count}`)
    }
  }
  await run('users', users, USERS)
  const narrow = async () => {
    await run('wallets', users, WALLETS)
    await run('sessions', users, SESSIONS)
    await run('batches', Math.ceil(proofs / PER_BATCH), BATCHES, [randomBytes(5_000)])
    await run('verifications', Math.ceil(proofs / PER_BATCH), VERIFICATIONS)
    await run('pending transactions', proofs, toPendingTransactions(filling))
    await run('entropy samples', proofs, ENTROPY_SAMPLES)
    await run('publications', Math.ceil(proofs / PER_PUBLICATION), PUBLICATIONS, [randomBytes(20_000)])
    await run('publication transactions', Math.ceil(proofs / PER_PUBLICATION), SENT, [randomBytes(20_000)])
    await run('jobs', proofs, toJobs(filling))
  }
  // One for each core.
  await Promise.all([run('attestations', proofs, toAttestations(filling)), narrow()])
  await query('drop table bench_receipts')
  for (const [table, column] of SEQUENCES) {
    await query(`select setval(pg_get_serial_sequence('${table}', '${column}'), (select max(${column}) from ${table}))`)
  }
  onProgress('vacuum and analyse')
  for (const table of TABLES) await query(`vacuum (analyze) ${table}`)
}

/** Without triggers and foreign keys, which are for what is not known to be right; the checks of columns hold here too. */
async function insert(query: Query, statement: string, values: readonly Buffer[]) {
  const literals = values.map((value) => `'\\x${value.toString('hex')}'::bytea`)
  const text = literals.reduce((sql, literal, index) => sql.replaceAll(`$${index + 1}`, literal), statement)
  await query(
    `begin; set local session_replication_role = replica; set local synchronous_commit = off; ${text}; commit`,
  )
}

/** How many of the newest are not complete. */
const UNFINISHED = 2 * OPEN

/** The slug of a proof, by its number. */
const toFilledSlug = (index: number) => hash('md5', `slug${index}`, 'base64url')

/** The slugs of the proofs that have a real receipt. */
export function listSampleSlugs({ proofs, sample }: Pick<Filling, 'proofs' | 'sample'>): string[] {
  const step = toStep({ proofs, sample })
  const count = Math.floor((proofs - UNFINISHED - 1) / step) + 1
  return Array.from({ length: count }, (_, index) => toFilledSlug(index * step))
}

/** The wallet with one proof in a hundred. */
export const HEAVY_USER = hash('md5', 'user0')

function toStep({ proofs, sample }: Pick<Filling, 'proofs' | 'sample'>): number {
  return Math.max(Math.floor(proofs / sample), 1)
}

const TABLES = [
  'users',
  'wallets',
  'sessions',
  'batches',
  'verifications',
  'pending_transactions',
  'attestations',
  'entropy_samples',
  'publications',
  'publication_transactions',
  'pgboss.job',
]
const SEQUENCES = [
  ['verifications', 'id'],
  ['pending_transactions', 'id'],
  ['publications', 'id'],
] as const

const SERIES = 'from generate_series($from::bigint, $to::bigint) as i'
const toUuid = (name: string, number: string) => `md5('${name}' || ${number})::uuid`
const toBytes = (name: string, number: string) => `sha256(convert_to('${name}' || ${number}, 'UTF8'))`
const toHex = (name: string, number: string) => `encode(${toBytes(name, number)}, 'hex')`
const toSlug = (number: string) =>
  `rtrim(translate(encode(decode(md5('slug' || ${number}), 'hex'), 'base64'), '+/', '-_'), '=')`
const toUser = (number: string, users: number) =>
  `(case when ${number} % 100 = 0 then 0 else (${number} / 10) % ${users} end)`
/** The last of all was made now, the first a day ago. */
const toTime = (number: string, count: number) => `now() - (${count} - ${number}) * (interval '1 day' / ${count})`
const BOOT = `decode(md5('boot'), 'hex')`
const MEASUREMENT = `(select jsonb_object_agg(name, repeat('ab', 48)) from unnest(array['mrTd', 'rtmr0', 'rtmr1', 'rtmr2', 'rtmr3']) as name)`
const CONFIG = `'{"issuers":[{"issuer":"https://issuer.example","audience":"wallet","jwksOrigin":"https://issuer.example"}],"caSet":"system","rootSecret":"file","quoteSource":"mock","callerPolicy":"none","version":"0.1.0"}'::jsonb`

const toWitness = (
  number: string,
) => `jsonb_build_object('source', 'simulated-satellite', 'valueHex', ${toHex('value', number)},
    'signatureHex', ${toHex('signature', number)} || ${toHex('signature2', number)}, 'publicKey', ${toHex('satellite', "''")},
    'timestamp', '2026-01-01T00:00:00.000Z', 'sequence', ${number})`

const USERS = `insert into users (id, issuer, subject, email, name, kms_key_id, created_at, last_login_at)
  select ${toUuid('user', 'i')}, 'https://issuer.example', 'user-' || i, 'user-' || i || '@example.com', 'User ' || i,
    decode(md5('key' || i), 'hex'), now() - interval '1 day', now() ${SERIES}`

const WALLETS = `insert into wallets (id, user_id, address, kms_key_id, entropy_hash, entropy_sig, satellite_source, witness, created_at)
  select ${toUuid('wallet', 'i')}, ${toUuid('user', 'i')}, substr(${toBytes('address', 'i')}, 1, 20), decode(md5('key' || i), 'hex'),
    ${toBytes('provenance', 'i')}, ${toBytes('sig', 'i')} || ${toBytes('sig2', 'i')}, 'simulated-satellite', ${toWitness('i')},
    now() - interval '1 day' ${SERIES}`

/** One each: some of them are over, and are kept for a day. */
const SESSIONS = `insert into sessions (sid_hash, user_id, grant_token, key_id, address, created_at, last_seen_at, expires_at)
  select ${toBytes('sid', 'i')}, ${toUuid('user', 'i')}, repeat(md5('grant' || i), 12), decode(md5('key' || i), 'hex'),
    substr(${toBytes('address', 'i')}, 1, 20), at, at, at + interval '12 hours'
  from (select i, now() - interval '1 hour' * (i % 24) as at ${SERIES}) as made`

const BATCHES = `insert into batches
    (boot_id, sequence, content_hash, previous, tree_size, quote, event_log, mode, measurement, config, created_at)
  select ${BOOT}, i, ${toBytes('content', 'i')}, ${toBytes('previous', 'i')}, ${PER_BATCH}, $1, null, 'mock', ${MEASUREMENT}, ${CONFIG},
    now() - interval '1 hour' ${SERIES}`

const VERIFICATIONS = `insert into verifications (id, boot_id, sequence, content_hash, collateral_hash, self_attestation_hash,
    coordinator_mode, quote_verified, tcb_status, created_at)
  overriding system value
  select ${FIRST_ID} + i, ${BOOT}, i, ${toBytes('content', 'i')}, (select hash from collaterals limit 1),
    (select hash from self_attestations limit 1), 'mock', true, 'UpToDate', now() - interval '1 hour' ${SERIES}`

const toPendingTransactions = ({ proofs, users }: Filling) => `insert into pending_transactions
    (id, wallet_id, digest, signature, tx_hash, chain_id, tx_metadata, created_at)
  select ${FIRST_ID} + i, ${toUuid('wallet', toUser('i', users))}, ${toBytes('digest', 'i')},
    ${toBytes('signature', 'i')} || ${toBytes('signature2', 'i')} || '\\x1b'::bytea, ${toBytes('tx', 'i')}, 84532,
    jsonb_build_object('chainId', 84532, 'nonce', i, 'to', '0x' || repeat('ab', 20), 'value', '1000000000000000000', 'data', '0x',
      'gas', '21000', 'maxFeePerGas', '2000000000', 'maxPriorityFeePerGas', '1000000000'),
    ${toTime('i', proofs)} ${SERIES}`

const ENTROPY_SAMPLES = `insert into entropy_samples (entropy_hash, claimed_at) select ${toBytes('entropy', 'i')}, now() ${SERIES}`

const PUBLICATIONS = `insert into publications
    (id, chain_id, account, nonce, contract, calldata, status, tx_hash, block_number, created_at)
  overriding system value
  select ${FIRST_ID} + i, 84532, decode(repeat('44', 20), 'hex'), i, decode(repeat('33', 20), 'hex'), $1,
    case when i = $to then 'confirmed' else 'final' end, ${toBytes('publication', 'i')}, 1000 + i, now() ${SERIES}`

const SENT = `insert into publication_transactions
    (tx_hash, publication_id, kind, raw, gas, max_fee_per_gas, max_priority_fee_per_gas, created_at, sent_at)
  select ${toBytes('publication', 'i')}, ${FIRST_ID} + i, 'publish', $1, 1200000, 2000000000, 1000000000, now(), now() ${SERIES}`

function toAttestations({ proofs, users, receipts, sample }: Filling): string {
  const isPinned = `i < ${proofs - OPEN}`
  const isComplete = `i < ${proofs - 2 * OPEN}`
  const whenPinned = (value: string) => `case when ${isPinned} then ${value} end`
  const whenComplete = (value: string) => `case when ${isComplete} then ${value} end`
  const statement = `jsonb_build_object('type', 'countersign/signing/v1', 'keyId', md5('key' || ${toUser('i', users)}),
    'address', '0x' || substr(${toHex('address', toUser('i', users))}, 1, 40), 'publicKey', '04' || ${toHex('x', 'i')} || ${toHex('y', 'i')},
    'digest', '0x' || ${toHex('digest', 'i')}, 'signature', '0x' || ${toHex('signature', 'i')} || ${toHex('signature2', 'i')} || '1b',
    'txHash', '0x' || ${toHex('tx', 'i')}, 'chainId', 84532, 'entropyHash', ${toHex('entropy', 'i')},
    'coordinatorKey', ${toHex('coordinator', "''")}, 'signedAt', '2026-01-01T00:00:00.000Z')`
  return `insert into attestations (pending_transaction_id, slug, verification_id, statement, leaf_index, path, witness, entropy_hash,
      release, status, receipt_bytes, ipfs_cid, onchain_tx_hash, onchain_block_number, created_at, pinned_at, publication_id)
    select ${FIRST_ID} + i, ${toSlug('i')}, ${FIRST_ID} + i / ${PER_BATCH}, ${statement}, i % ${PER_BATCH},
      decode(repeat(md5('path' || i), 12), 'hex'), ${toWitness('i')}, ${toBytes('entropy', 'i')},
      ${toBytes('release', 'i')} || ${toBytes('release2', 'i')},
      case when ${isComplete} then 'complete' when ${isPinned} then 'pending_onchain' else 'pending_pin' end,
      ${whenPinned(`coalesce(r.bytes, '{}'::bytea)`)},
      ${whenPinned(`'bafkrei' || substr(${toHex('cid', 'i')}, 1, 52)`)},
      ${whenComplete(toBytes('publication', `i / ${PER_PUBLICATION}`))}, ${whenComplete(`1000 + i / ${PER_PUBLICATION}`)},
      ${toTime('i', proofs)}, ${whenPinned(toTime('i', proofs))}, ${whenComplete(`${FIRST_ID} + i / ${PER_PUBLICATION}`)}
    ${SERIES}
    left join bench_receipts as r on i % ${toStep({ proofs, sample })} = 0 and r.n = (i / ${toStep({ proofs, sample })}) % ${Math.max(receipts.length, 1)}`
}

const toJobs = ({
  proofs,
}: Filling) => `insert into pgboss.job (id, name, data, state, retry_limit, retry_delay, expire_seconds,
    heartbeat_seconds, policy, start_after, created_on, started_on, completed_on, keep_until)
  select ${toUuid('job', 'i')}, 'pin', jsonb_build_object('slugs', jsonb_build_array(${toSlug('i')})),
    case when i < ${proofs - OPEN} then 'completed' else 'created' end::pgboss.job_state, 3, 1, 600, 10, 'standard', at, at,
    case when i < ${proofs - OPEN} then at end, case when i < ${proofs - OPEN} then at end, now() + interval '14 days'
  from (select i, ${toTime('i', proofs)} as at ${SERIES}) as made`
