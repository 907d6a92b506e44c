import { type Kysely, sql } from 'kysely'

/**
 * Creates the schema. The database itself enforces the rules that must hold even if the code has a bug: signed and witnessed data never
 * changes, and a proof's status changes only as specification §3 allows.
 */
export async function createSchema(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

/** About a gigabyte. */
const SIGNINGS_OF_PARTITION = 1_048_576

const IMMUTABLE = [
  'anchors',
  ...['wallets', 'collaterals', 'self_attestations', 'coordinator_blocks', 'batches', 'releases', 'verifications'],
  ...['signing_lookups', 'signings', 'logs', 'log_ended', 'log_nodes', 'log_notes'],
]

const statements = [
  `create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% are immutable', tg_table_name using errcode = 'restrict_violation', table = tg_table_name;
  end $$`,

  `create table users (
    id uuid primary key default gen_random_uuid(),
    issuer text not null,
    subject text not null,
    email text not null,
    name text,
    kms_key_id bytea not null check (length(kms_key_id) = 16),
    created_at timestamptz not null,
    last_login_at timestamptz not null,
    unique (issuer, subject)
  )`,

  `create table logins (
    id text primary key,
    provider text not null,
    state_hash bytea not null check (length(state_hash) = 32),
    code_verifier text not null,
    nonce text not null,
    client_key bytea check (length(client_key) = 65),
    return_to text not null,
    expires_at timestamptz not null
  )`,
  `create index logins_expires_at on logins (expires_at)`,

  `create table sessions (
    sid_hash bytea primary key check (length(sid_hash) = 32),
    user_id uuid not null references users,
    grant_token text not null,
    client_key bytea check (length(client_key) = 65),
    owner json not null,
    key_id bytea not null check (length(key_id) = 16),
    address bytea not null check (length(address) = 20),
    created_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index sessions_expires_at on sessions (expires_at)`,

  // Canonical JSON as bytes. pinned_at: when the pinned block was read back. A policy is stored before its vault is shown, and never deleted,
  // because the vault's key is derived from it.
  `create table policies (
    hash bytea primary key check (hash = sha256(bytes)),
    bytes bytea not null,
    created_at timestamptz not null,
    pinned_at timestamptz
  )`,
  // For the sweep, which queries these few rows every ten seconds.
  `create index policies_unpinned on policies (created_at) where pinned_at is null`,
  `create trigger policies_immutable before update on policies
    for each row when ((old.hash, old.bytes, old.created_at) is distinct from (new.hash, new.bytes, new.created_at)
      or old.pinned_at is not null and old.pinned_at is distinct from new.pinned_at) execute function refuse_change()`,
  `create trigger policies_kept before delete on policies for each row execute function refuse_change()`,

  // A user has one wallet without a policy, and one per policy. A vault has no sample: its key is derived from its rules.
  `create table wallets (
    id uuid primary key default gen_random_uuid(),
    user_id uuid not null references users,
    address bytea not null check (length(address) = 20),
    kms_key_id bytea not null check (length(kms_key_id) = 16),
    entropy_hash bytea check (length(entropy_hash) = 32),
    entropy_sig bytea,
    satellite_source text,
    witness jsonb,
    created_at timestamptz not null,
    policy_hash bytea references policies,
    constraint wallets_provenance check (
      num_nulls(entropy_hash, entropy_sig, satellite_source, witness) = case when policy_hash is null then 0 else 4 end
    )
  )`,
  `create unique index wallets_own on wallets (user_id) where policy_hash is null`,
  `create unique index wallets_vaults on wallets (user_id, policy_hash) where policy_hash is not null`,
  // The address comes first: callers without a session know no user.
  `create unique index wallets_addresses on wallets (address, user_id)`,

  `create table entropy_samples (
    entropy_hash bytea primary key check (length(entropy_hash) = 32),
    claimed_at timestamptz not null
  )`,
  // For deleting old claims.
  `create index entropy_samples_claimed_at on entropy_samples (claimed_at)`,

  `create table collaterals (
    hash bytea primary key check (hash = sha256(bytes)),
    bytes bytea not null
  )`,

  // The newest collateral of each platform, replaced in place. Receipts refer to `collaterals` instead.
  `create table collateral_cache (
      fmspc text not null,
      ca text not null check (ca in ('processor', 'platform')),
      bytes bytea not null,
      primary key (fmspc, ca)
  )`,

  // Canonical JSON as bytes: the hash covers exactly these bytes.
  `create table self_attestations (
    hash bytea primary key check (hash = sha256(json)),
    json bytea not null
  )`,

  // The block that a coordinator's release names: the report over both keys, as canonical JSON.
  `create table coordinator_blocks (
    hash bytea primary key check (hash = sha256(bytes)),
    bytes bytea not null
  )`,

  // Verifications refer to content_hash too, so they can't refer to a different batch with the same number.
  `create table batches (
    boot_id bytea not null check (length(boot_id) = 16),
    sequence bigint not null check (sequence >= 0),
    content_hash bytea not null check (length(content_hash) = 32),
    previous bytea not null check (length(previous) = 32),
    leaves bytea not null check (length(leaves) > 0 and length(leaves) % 32 = 0),
    quote bytea not null,
    event_log text,
    mode text not null check (mode in ('hardware', 'mock')),
    measurement jsonb not null,
    config jsonb not null,
    created_at timestamptz not null,
    primary key (boot_id, sequence),
    unique (boot_id, sequence, content_hash)
  )`,

  // Both signatures of one coordinator over one batch. Signing again gives other bytes, so the first row counts.
  `create table releases (
    boot_id bytea not null,
    sequence bigint not null,
    coordinator_key bytea not null check (length(coordinator_key) = 32),
    content_hash bytea not null,
    collateral_hash bytea not null references collaterals,
    coordinator_hash bytea not null references coordinator_blocks,
    settings jsonb not null,
    ed25519 bytea not null check (length(ed25519) = 64),
    ml_dsa_65 bytea not null check (length(ml_dsa_65) = 3309),
    created_at timestamptz not null,
    primary key (boot_id, sequence, coordinator_key),
    constraint releases_batch_fkey
      foreign key (boot_id, sequence, content_hash) references batches (boot_id, sequence, content_hash)
  )`,

  `create table logs (
    id integer generated always as identity primary key,
    hash bytea not null unique check (hash = sha256(convert_to(origin, 'UTF8'))),
    origin text not null,
    key text not null,
    created_at timestamptz not null
  )`,

  // One row per append: its entries one after the other, 57 bytes each. An append across the end of a tile has several rows, and only the
  // last has the checkpoint that the enclave signed. A row without entries holds another checkpoint of entries in other rows. claims: in the
  // form of `take_claims`. There is no foreign key: it would cost as much as a small row, and only append_log writes these tables.
  `create table log_appends (
    log_id integer not null,
    size bigint not null check (size >= 0),
    entries bytea not null check (length(entries) % 57 = 0),
    boot_id bytea not null check (length(boot_id) = 16),
    root bytea check (length(root) = 32),
    note text,
    claims bytea not null,
    created_at timestamptz not null,
    primary key (log_id, size),
    check (case when note is null then size % 256 = 0 and root is null else root is not null end)
  )`,
  // Used only to load claims. Most rows need no write to this index.
  `create index log_appends_by_time on log_appends using brin (created_at)`,

  // First halves of leaves that an entry reports as dropped or not acknowledged.
  `create table log_ended (
    log_id integer not null,
    leaf bytea not null check (length(leaf) = 16),
    primary key (log_id, leaf)
  )`,

  // The hashes in tiles of level 1 and above: each is the root of a full tile of the level below.
  `create table log_nodes (
    log_id integer not null,
    level smallint not null check (level > 0),
    index bigint not null check (index >= 0),
    hash bytea not null check (length(hash) = 32),
    primary key (log_id, level, index)
  )`,

  // The newest state of each row of the table whose root is in the log. size: the log's size when the state was stored.
  `create table log_states (
    log_id integer not null,
    row_index integer not null check (row_index >= 0),
    state bytea not null check (length(state) >= 44),
    size bigint not null,
    primary key (log_id, row_index)
  )`,
  `create index log_states_by_size on log_states (log_id, size)`,

  // Cosigned checkpoints. Their checkpoints are always in log_appends.
  `create table log_notes (
    hash bytea primary key check (hash = sha256(convert_to(note, 'UTF8'))),
    log_id integer not null,
    size bigint not null,
    note text not null,
    created_at timestamptz not null,
    constraint log_notes_checkpoint_fkey foreign key (log_id, size) references log_appends
  )`,
  `create index log_notes_newest on log_notes (log_id, size, created_at)`,

  // Decides which of several statements about one digest gets a receipt. request: computed by `to_request`. leaf: half of the hash. Expired
  // rows are deleted together. This table is only an index of the claims in log_appends, so it is unlogged: after a crash of PostgreSQL, or
  // on a standby, it and claims_loaded are empty, and the claims are loaded again.
  `create unlogged table claims (
    request uuid primary key,
    leaf bytea not null check (length(leaf) = 16),
    log_id integer not null,
    boot_id bytea not null check (length(boot_id) = 16),
    created_at timestamptz not null
  )`,
  `create unlogged table claims_loaded (at timestamptz not null)`,
  `create index claims_by_time on claims (created_at)`,

  // A coordinator's verification of a batch and its own attestation. Coordinators that share a batch may differ in both. coordinator_key:
  // from the release, for version 2. log_note: the note that released the statements of one call.
  `create table verifications (
    id bigint generated always as identity primary key,
    boot_id bytea not null,
    sequence bigint not null,
    content_hash bytea not null,
    collateral_hash bytea not null references collaterals,
    self_attestation_hash bytea not null references self_attestations,
    coordinator_mode text not null check (coordinator_mode in ('hardware', 'mock')),
    quote_verified boolean not null,
    tcb_status text not null,
    created_at timestamptz not null,
    coordinator_key bytea check (length(coordinator_key) = 32),
    log_note bytea references log_notes,
    constraint verifications_batch_fkey
      foreign key (boot_id, sequence, content_hash) references batches (boot_id, sequence, content_hash)
  )`,

  // Keys that find a signing or that only one signing may have. They must be unique over all partitions of signings, so they have a separate
  // table. request: computed by `to_request`. sample: half of the entropy's hash, or null for a beacon, whose rounds are shared.
  `create table signing_lookups (
    signing_id bigint not null,
    slug text not null unique,
    request uuid not null unique,
    sample uuid unique
  )`,
  // signed: the digest or, off-chain, the commitment. A wallet that finds a collision of 128 bits loses only its own request, because
  // signings store the whole digest.
  `create function to_request(wallet_id uuid, signed bytea) returns uuid language sql immutable as $$
    select encode(substr(sha256(uuid_send(wallet_id) || signed), 1, 16), 'hex')::uuid
  $$`,

  // tx_hash: the hash in the event, which is the transaction's hash, the signed authorization's hash, or the commitment. An off-chain
  // signature is stored as its commitment only; the database rejects a digest or signature for it. A statement about an address has its
  // subject's hash as digest, so there is one per wallet. data: a transaction's data. facts: packed `SigningFacts`, the rest of subject,
  // statement, entropy and place in the batch. release: for version 1; version 2 uses the table releases. log_index: the index of its log
  // entry.
  `create sequence signings_id as bigint`,
  `create table signings (
    id bigint primary key,
    wallet_id uuid not null references wallets,
    verification_id bigint not null references verifications,
    chain_id bigint not null,
    created_at timestamptz not null,
    log_index bigint check (log_index >= 0),
    version smallint not null,
    kind text not null,
    tx_hash bytea not null check (length(tx_hash) = 32),
    digest bytea check (length(digest) = 32),
    signature bytea check (length(signature) = 65),
    data bytea,
    facts bytea not null,
    release bytea check (length(release) = 64),
    constraint signings_kind check (
      case kind
        when 'off-chain' then num_nonnulls(digest, signature, data) = 0 and chain_id = 0
        when 'address' then digest is not null and digest = tx_hash and num_nonnulls(signature, data) = 0 and chain_id = 0
        when 'revocation' then digest is not null and digest = tx_hash and num_nonnulls(signature, data) = 0 and chain_id = 0
        when 'authorization' then num_nulls(digest, signature) = 0 and data is null and chain_id > 0
        when 'transaction' then num_nulls(digest, signature, data) = 0 and chain_id > 0
        else false
      end
    ),
    constraint signings_version check (
      case version
        when 1 then release is not null and kind = 'transaction'
        when 2 then release is null
        else false
      end
    )
  ) partition by range (id)`,
  // For a user's list, newest first.
  `create index signings_of on signings (wallet_id, id desc)`,

  // Creates the partitions of the next id and after it, if missing. It creates a table first and then attaches it; otherwise it would wait
  // for every statement on signings, and later statements would wait for it. Attaching waits only for statements that write wallets or
  // verifications. If that takes too long, it stops, and the next call retries.
  `create function create_signing_partitions() returns integer language plpgsql set lock_timeout = '1s' as $$
  declare
    size constant bigint := ${SIGNINGS_OF_PARTITION};
    created integer := 0;
    place bigint;
    name text;
  begin
    place := (select last_value from signings_id) / size;
    if to_regclass(format('signings_%s', place + 1)) is not null and to_regclass(format('signings_%s', place)) is not null then
      return 0;
    end if;
    perform pg_advisory_xact_lock(${0x73_69_67_01});
    for number in place .. place + 1 loop
      name := format('signings_%s', number);
      if to_regclass(name) is null then
        execute format('create table %I (like signings including all excluding indexes)', name);
        -- The primary key last: of two indexes of an empty table the planner prefers the newer, and would keep that plan.
        execute format('create index on %I (wallet_id, id desc)', name);
        execute format('alter table %I add primary key (id)', name);
        execute format('alter table %I add check (id >= %s and id < %s)', name, number * size, (number + 1) * size);
        execute format('alter table signings attach partition %I for values from (%s) to (%s)', name, number * size, (number + 1) * size);
        created := created + 1;
      end if;
    end loop;
    return created;
  exception when lock_not_available then
    return 0;
  end $$`,

  // One nonce of the publisher's account, with every transaction signed for it. A transaction is stored before it is sent.
  `create table publications (
    id bigint generated always as identity primary key,
    chain_id bigint not null check (chain_id > 0),
    account bytea not null check (length(account) = 20),
    nonce bigint not null check (nonce >= 0),
    contract bytea not null check (length(contract) = 20),
    calldata bytea not null,
    status text not null default 'pending'
      check (status in ('pending', 'confirmed', 'final', 'reverted', 'cancelled', 'lost')),
    tx_hash bytea check (length(tx_hash) = 32),
    block_number bigint check (block_number >= 0),
    created_at timestamptz not null,
    unique (chain_id, account, nonce),
    constraint publications_mined check (
      status in ('pending', 'lost') or (tx_hash is not null and block_number is not null)
    )
  )`,
  // Publications that still need work.
  `create index publications_open on publications (nonce) where status in ('pending', 'confirmed')`,
  // For counting the gas of one day before each new publication.
  `create index publications_by_time on publications (chain_id, account, created_at)`,

  `create table publication_transactions (
    tx_hash bytea primary key check (length(tx_hash) = 32),
    publication_id bigint not null references publications,
    kind text not null check (kind in ('publish', 'cancel')),
    raw bytea not null,
    gas bigint not null check (gas > 0),
    max_fee_per_gas numeric not null check (max_fee_per_gas >= 0),
    max_priority_fee_per_gas numeric not null check (max_priority_fee_per_gas >= 0),
    created_at timestamptz not null,
    sent_at timestamptz
  )`,
  `create index publication_transactions_of on publication_transactions (publication_id)`,

  // The checkpoint of a publication in LogWitness. id: the log in the contract. block: SHA-256 of the anchor block, which lists the
  // receipts of this publication.
  `create table anchors (
    publication_id bigint primary key references publications,
    log_id integer not null references logs,
    id bytea not null check (length(id) = 32),
    size bigint not null check (size > 0),
    block bytea not null check (length(block) = 32)
  )`,
  `create index anchors_of on anchors (log_id, size)`,

  // The parts of a proof that change. receipt_dropped: the size of the receipt's row, set when the bytes of a final proof are deleted.
  `create table proofs (
    signing_id bigint primary key,
    slug text not null,
    status text not null default 'pending_pin'
      check (status in ('pending_pin', 'pending_onchain', 'complete', 'pin_failed', 'onchain_failed')),
    ipfs_cid text,
    created_at timestamptz not null,
    pinned_at timestamptz,
    publication_id bigint references publications,
    pin_attempts integer not null default 0,
    failure text,
    publish_limit integer not null default 200 check (publish_limit between 1 and 200),
    receipt_dropped integer,
    constraint proofs_pinned check ((ipfs_cid is null) = (status in ('pending_pin', 'pin_failed'))),
    constraint proofs_published check (status <> 'complete' or publication_id is not null),
    constraint proofs_dropped check (receipt_dropped is null or status = 'complete')
  ) with (fillfactor = 80)`,
  // For the sweep: proofs that are not complete or failed.
  `create index proofs_open on proofs (created_at) where status in ('pending_pin', 'pending_onchain')`,
  `create index proofs_published_by on proofs (publication_id) where publication_id is not null`,
  // Proofs that wait for a publication, in the order of pinning.
  `create index proofs_due on proofs (pinned_at) where status = 'pending_onchain' and publication_id is null`,

  // Stored before the pin, packed.
  `create table receipts (
    signing_id bigint primary key,
    bytes bytea not null
  )`,

  ...[...IMMUTABLE, 'receipts'].map(
    (table) => `create trigger ${table}_immutable before update on ${table}
      for each row when (old.* is distinct from new.*) execute function refuse_change()`,
  ),
  ...[...IMMUTABLE, 'log_appends', 'log_states', 'publications', 'publication_transactions', 'proofs'].map(
    (table) => `create trigger ${table}_kept before delete on ${table} for each row execute function refuse_change()`,
  ),

  `create trigger log_states_guarded before update on log_states
    for each row when ((old.log_id, old.row_index, substr(old.state, 1, 16))
        is distinct from (new.log_id, new.row_index, substr(new.state, 1, 16))
      or substr(old.state, 33, 8) >= substr(new.state, 33, 8)) execute function refuse_change()`,

  // A later call may add claims for statements under the same checkpoint.
  `create trigger log_appends_immutable before update on log_appends
    for each row when ((old.log_id, old.size, old.entries, old.boot_id, old.root, old.note, old.created_at)
        is distinct from (new.log_id, new.size, new.entries, new.boot_id, new.root, new.note, new.created_at)
      or old.claims <> substr(new.claims, 1, length(old.claims))) execute function refuse_change()`,

  `create function guard_publication() returns trigger language plpgsql as $$
  begin
    if (old.chain_id, old.account, old.nonce, old.contract, old.calldata, old.created_at)
      is distinct from (new.chain_id, new.account, new.nonce, new.contract, new.calldata, new.created_at) then
      raise exception 'a publication never changes' using errcode = 'restrict_violation', table = 'publications';
    end if;
    -- Coordinators cache the answer for a proof whose publication is final.
    if old.status = 'final' and old is distinct from new then
      raise exception 'a final publication never changes' using errcode = 'restrict_violation', table = 'publications';
    end if;
    if old.status <> new.status and (old.status, new.status) not in (
      ('pending', 'confirmed'), ('pending', 'reverted'), ('pending', 'cancelled'), ('pending', 'lost'), ('confirmed', 'final')
    ) then
      raise exception 'a publication does not move from % to %', old.status, new.status
        using errcode = 'restrict_violation', table = 'publications', column = 'status';
    end if;
    return new;
  end $$`,
  `create trigger publications_guarded before update on publications
    for each row execute function guard_publication()`,
  `create trigger publication_transactions_immutable before update on publication_transactions
    for each row when ((old.tx_hash, old.publication_id, old.kind, old.raw) is distinct from
      (new.tx_hash, new.publication_id, new.kind, new.raw)) execute function refuse_change()`,

  `create function is_proof_transition(old_status text, new_status text) returns boolean language sql immutable as $$
    select (old_status, new_status) in (
      ('pending_pin', 'pending_onchain'),
      ('pending_pin', 'pin_failed'),
      ('pending_onchain', 'complete'),
      ('pending_onchain', 'onchain_failed')
    )
  $$`,

  `create function refuse_start() returns trigger language plpgsql as $$
  begin
    raise exception 'a proof starts as pending_pin' using errcode = 'restrict_violation', table = 'proofs';
  end $$`,
  `create trigger proofs_start before insert on proofs
    for each row when (new.status <> 'pending_pin') execute function refuse_start()`,

  `create function guard_proof() returns trigger language plpgsql as $$
  begin
    if old.status <> new.status and not is_proof_transition(old.status, new.status) then
      raise exception 'a proof does not move from % to %', old.status, new.status
        using errcode = 'restrict_violation', table = 'proofs', column = 'status';
    end if;
    if old.ipfs_cid is not null and old.ipfs_cid is distinct from new.ipfs_cid then
      raise exception 'a receipt never changes' using errcode = 'restrict_violation', table = 'proofs';
    end if;
    if (old.signing_id, old.slug, old.created_at) is distinct from (new.signing_id, new.slug, new.created_at) then
      raise exception 'what was signed never changes' using errcode = 'restrict_violation', table = 'proofs';
    end if;
    if old.status = 'complete' and old.publication_id is distinct from new.publication_id then
      raise exception 'a complete proof stays published' using errcode = 'restrict_violation', table = 'proofs';
    end if;
    if old.receipt_dropped is distinct from new.receipt_dropped and
      (old.receipt_dropped is not null or exists (select from receipts where signing_id = new.signing_id)) then
      raise exception 'a receipt is dropped once, and permanently' using errcode = 'restrict_violation', table = 'proofs';
    end if;
    if old.ipfs_cid is null and new.ipfs_cid is not null and not exists (select from receipts where signing_id = new.signing_id) then
      raise exception 'a pinned proof has a receipt' using errcode = 'check_violation', table = 'proofs', constraint = 'proofs_pinned';
    end if;
    return new;
  end $$`,
  `create trigger proofs_guarded before update on proofs for each row execute function guard_proof()`,

  // Only before the pin. A dropped receipt can't be stored again.
  `create function guard_receipt() returns trigger language plpgsql as $$
  begin
    if not exists (select from proofs where signing_id = new.signing_id and status = 'pending_pin') then
      raise exception 'a receipt is of a proof that is not pinned' using errcode = 'restrict_violation', table = 'receipts';
    end if;
    return new;
  end $$`,
  `create trigger receipts_guarded before insert on receipts for each row execute function guard_receipt()`,
  // The receipt of a final proof may be deleted permanently. A final publication stays final, so no lock is needed.
  `create function guard_dropped_receipt() returns trigger language plpgsql as $$
  begin
    update proofs set receipt_dropped = pg_column_size(old.bytes)
    where signing_id = old.signing_id and status = 'complete'
      and (select status from publications where id = proofs.publication_id) = 'final';
    if not found then
      raise exception 'only the receipt of a final proof is dropped' using errcode = 'restrict_violation', table = 'receipts';
    end if;
    return null;
  end $$`,
  `create trigger receipts_dropped after delete on receipts for each row execute function guard_dropped_receipt()`,

  // The root of a full tile (RFC 6962). The number of hashes is a power of two.
  `create function hash_log_tile(hashes bytea) returns bytea language plpgsql immutable as $$
  begin
    while length(hashes) > 32 loop
      hashes := (
        select string_agg(sha256('\\x01'::bytea || substr(hashes, 64 * pair + 1, 64)), ''::bytea order by pair)
        from generate_series(0, length(hashes) / 64 - 1) as pair
      );
    end loop;
    return hashes;
  end $$`,

  // Entries one after the other. Returns null or fewer entries if some are missing.
  `create function read_log_entries(the_log integer, first_index bigint, width bigint) returns bytea
  language plpgsql stable set plan_cache_mode = force_generic_plan as $$
  declare
    last_size bigint := (
      select size from log_appends where log_id = the_log and size >= first_index + width and entries <> ''::bytea
      order by size limit 1
    );
    found_entries bytea := (
      select string_agg(entries, ''::bytea order by size) from log_appends
      where log_id = the_log and size > first_index and size <= last_size
    );
  begin
    return substr(found_entries, (57 * (first_index - last_size) + length(found_entries) + 1)::integer, (57 * width)::integer);
  end $$`,
  `create function hash_log_entries(entries bytea) returns bytea language sql immutable as $$
    select string_agg(sha256('\\x00'::bytea || substr(entries, 57 * place + 1, 57)), ''::bytea order by place)
    from generate_series(0, length(entries) / 57 - 1) as place
  $$`,

  // 80 bytes each: wallet, digest, leaf.
  `create function read_claims(claimed bytea, out place integer, out request uuid, out leaf bytea, out half bytea)
  returns setof record language sql immutable as $$
    select place, to_request(encode(substr(claimed, 80 * place + 1, 16), 'hex')::uuid, substr(claimed, 80 * place + 17, 32)),
      substr(claimed, 80 * place + 49, 32), substr(claimed, 80 * place + 49, 16)
    from generate_series(0, length(claimed) / 80 - 1) as place
  $$`,

  // Loads recent claims from appends. Of several claims of a request the last counts, because it took the request over.
  `create function load_claims(expired_before timestamptz, at timestamptz) returns void language plpgsql as $$
  begin
    perform pg_advisory_xact_lock(${0x6c_6f_67_03});
    if exists (select from claims_loaded) then
      return;
    end if;
    insert into claims (request, leaf, log_id, boot_id, created_at)
    select distinct on (request) request, leaf, log_id, boot_id, created_at
    from log_appends cross join lateral (
      select place, encode(substr(claims, 32 * place + 1, 16), 'hex')::uuid as request, substr(claims, 32 * place + 17, 16) as leaf
      from generate_series(0, length(claims) / 32 - 1) as place
    ) as claimed
    where created_at >= expired_before
    order by request, created_at desc, size desc, place desc;
    insert into claims_loaded values (at);
  end $$`,

  // Writes claims in the order of requests, so that coordinators never deadlock. It uses value subqueries because they find rows by index;
  // with `exists`, the planner may hash all signings. One plan suits any number of claims. newest_boot: the log's boot after the entries of
  // this call are appended. taken: 32 bytes each.
  `create function take_claims(
    the_log integer, the_boot bytea, newest_boot bytea, claimed bytea, expired_before timestamptz, at timestamptz,
    out lost text[], out taken bytea
  ) language plpgsql set plan_cache_mode = force_generic_plan as $$
  declare
    count constant bigint := length(claimed) / 80;
    written bigint;
  begin
    if length(claimed) % 80 <> 0 then
      raise exception 'not claims';
    end if;
    if not exists (select from claims_loaded) then
      perform load_claims(expired_before, at);
    end if;
    insert into claims (request, leaf, log_id, boot_id, created_at)
    select distinct on (request) request, half, the_log, the_boot, at from read_claims(claimed) order by request, place
    on conflict (request) do update
    set leaf = excluded.leaf, log_id = excluded.log_id, boot_id = excluded.boot_id, created_at = excluded.created_at
    where claims.leaf <> excluded.leaf and (
      claims.created_at < expired_before
      or (select true from log_ended where log_id = claims.log_id and leaf = claims.leaf)
      or claims.boot_id <> case claims.log_id when the_log then newest_boot else (
        select boot_id from log_appends where log_id = claims.log_id order by size desc limit 1
      ) end
    );
    get diagnostics written = row_count;
    -- Where a claim was free because its time is over, this sees the signing.
    lost := array(
      select encode(asked.leaf, 'hex') from read_claims(claimed) as asked
      where (
        select true from signing_lookups where request = asked.request limit 1
      ) or (written < count and (
        select true from claims as c where c.request = asked.request and c.leaf = asked.half
      ) is null)
    );
    if cardinality(lost) > 0 then
      -- By key too, whatever the planner takes the table for.
      delete from claims where ctid = any (array(
        select (select c.ctid from claims as c where c.request = asked.request and c.leaf = asked.half)
        from read_claims(claimed) as asked
        where encode(asked.leaf, 'hex') = any (lost)
      ));
    end if;
    taken := (
      select string_agg(uuid_send(request) || half, ''::bytea order by place) from read_claims(claimed)
      where encode(leaf, 'hex') <> all (lost)
    );
  end $$`,

  // Each statement in a function sees everything committed before it, so the statements after the lock see all earlier writes under it.
  `create function append_log(
    the_origin text, the_key text, the_boot bytea, first_index bigint, added bytea, the_root bytea, the_note text,
    claimed bytea, expired_before timestamptz, at timestamptz, changed_rows integer[], changed_states bytea[],
    out missing bigint, out lost text[]
  ) language plpgsql set plan_cache_mode = force_generic_plan as $$
  declare
    the_hash constant bytea := sha256(convert_to(the_origin, 'UTF8'));
    the_size constant bigint := first_index + length(added) / 57;
    log logs;
    old_size bigint;
    newest_boot bytea;
    known bigint;
    taken bytea;
    tile_level integer := 0;
    done bigint;
    complete bigint;
  begin
    perform pg_advisory_xact_lock(${0x6c_6f_67_01}, ('x' || encode(substr(the_hash, 1, 4), 'hex'))::bit(32)::integer);
    select * into log from logs where hash = the_hash;
    select size, boot_id into old_size, newest_boot from log_appends where log_id = log.id order by size desc limit 1;
    old_size := coalesce(old_size, 0);
    if first_index > old_size then
      missing := old_size;
      return;
    end if;
    if log.id is null then
      insert into logs (hash, origin, key, created_at) values (the_hash, the_origin, the_key, at) returning * into log;
    end if;
    if log.key <> the_key then
      raise exception 'another key of this log is recorded' using errcode = 'restrict_violation', constraint = 'logs_same';
    end if;

    known := least(old_size, the_size) - first_index;
    if known > 0 and substr(added, 1, (57 * known)::integer) is distinct from read_log_entries(log.id, first_index, known) then
      raise exception 'another entry is recorded' using errcode = 'restrict_violation', constraint = 'logs_same';
    end if;
    insert into log_ended (log_id, leaf)
    select log.id, substr(added, 57 * place + 18, 16) from generate_series(known::integer, length(added) / 57 - 1) as place
    where get_byte(added, 57 * place) in (2, 3)
    on conflict do nothing;
    if length(claimed) > 0 then
      select t.lost, t.taken into lost, taken from take_claims(
        log.id, the_boot, case when the_size > old_size then the_boot else newest_boot end, claimed, expired_before, at
      ) as t;
    end if;

    insert into log_appends as known_append (log_id, size, entries, boot_id, root, note, claims, created_at)
    select log.id, part_end,
      substr(added, (57 * (part_start - first_index))::integer + 1, greatest(0, 57 * (part_end - part_start))::integer), the_boot,
      case part_end when the_size then the_root end, case part_end when the_size then the_note end,
      case part_end when the_size then coalesce(taken, ''::bytea) else ''::bytea end, at
    from generate_series(least(old_size, the_size - 1) / 256, (the_size - 1) / 256) as tile
    cross join lateral (select greatest(old_size, 256 * tile) as part_start, least(the_size, 256 * (tile + 1)) as part_end) as part
    on conflict (log_id, size) do update set claims = known_append.claims || excluded.claims where excluded.claims <> ''::bytea;
    if the_root <> (select root from log_appends where log_id = log.id and size = the_size) then
      raise exception 'another tree of this size is recorded'
        using errcode = 'restrict_violation', constraint = 'logs_same';
    end if;

    -- Bytes 33 to 40 of a state count its changes: an earlier one never replaces a later one.
    if cardinality(changed_rows) > 0 then
      insert into log_states as known_state (log_id, row_index, state, size)
      select distinct on (changed.row_index) log.id, changed.row_index, changed.state, greatest(old_size, the_size)
      from unnest(changed_rows, changed_states) as changed (row_index, state)
      order by changed.row_index, substr(changed.state, 33, 8) desc
      on conflict (log_id, row_index) do update set state = excluded.state, size = excluded.size
      where substr(excluded.state, 33, 8) > substr(known_state.state, 33, 8);
    end if;

    done := old_size;
    complete := greatest(old_size, the_size);
    loop
      tile_level := tile_level + 1;
      done := done / 256;
      complete := complete / 256;
      exit when done = complete;
      for tile in done .. complete - 1 loop
        if tile_level = 1 then
          insert into log_nodes (log_id, level, index, hash)
          values (log.id, 1, tile, hash_log_tile(hash_log_entries(read_log_entries(log.id, 256::bigint * tile, 256))));
        else
          insert into log_nodes (log_id, level, index, hash)
          select log.id, tile_level, tile, hash_log_tile(string_agg(hash, ''::bytea order by index))
          from log_nodes
          where log_id = log.id and level = tile_level - 1 and index >= 256::bigint * tile and index < 256::bigint * (tile + 1);
        end if;
      end loop;
    end loop;
  end $$`,

  // The receivers in the settings of the worker that started last. No row holds the URL, which may contain a secret.
  `create table webhook_receivers (
    id integer generated always as identity primary key,
    url_hash bytea not null unique check (length(url_hash) = 32),
    origin text not null,
    is_active boolean not null
  )`,
  // Public keys from the same settings, for coordinators to show.
  `create table webhook_keys (
    key bytea primary key check (length(key) = 32),
    place integer,
    created_at timestamptz not null
  )`,

  // cause: for events with a rate limit. For all others it is unique.
  `create table webhook_events (
    id text primary key default 'msg_' || replace(gen_random_uuid()::text, '-', ''),
    type text not null,
    cause text,
    data jsonb not null,
    created_at timestamptz not null
  )`,
  `create index webhook_events_created on webhook_events (created_at)`,
  `create index webhook_events_causes on webhook_events (cause, created_at) where cause is not null`,
  `create trigger webhook_events_immutable before update on webhook_events
    for each row when (old.* is distinct from new.*) execute function refuse_change()`,

  // due_at: the next attempt or, for one in progress, when its worker's lease ends. queued_at: the start of the deadline.
  `create table webhook_deliveries (
    event_id text not null references webhook_events on delete cascade,
    receiver_id integer not null references webhook_receivers,
    status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
    attempts integer not null default 0,
    failure text,
    queued_at timestamptz not null default now(),
    due_at timestamptz not null default now(),
    settled_at timestamptz,
    primary key (event_id, receiver_id),
    check ((status = 'pending') = (settled_at is null))
  )`,
  `create index webhook_deliveries_due on webhook_deliveries (receiver_id, due_at) where status = 'pending'`,
  // For the age of the oldest delivery, and for deleting old ones.
  `create index webhook_deliveries_pending on webhook_deliveries (receiver_id, queued_at) where status = 'pending'`,
  `create index webhook_deliveries_delivered on webhook_deliveries (receiver_id, settled_at) where status = 'delivered'`,
  `create index webhook_deliveries_dead on webhook_deliveries (receiver_id, queued_at) where status = 'dead'`,

  // Triggers write events in the transaction of the change, so every change has its event and every event its change. Without receivers they
  // write nothing. A lock on the cause makes concurrent calls write one event.
  `create function write_webhook(
    the_type text, the_data jsonb, at timestamptz, the_cause text, most integer, span interval
  ) returns void language plpgsql as $$
  declare
    the_id text;
  begin
    if not exists (select from webhook_receivers where is_active) then
      return;
    end if;
    if the_cause is not null then
      perform pg_advisory_xact_lock(hashtextextended(the_cause, ${0x77_68_6b_01}));
      if (select count(*) from webhook_events where cause = the_cause and created_at > at - span) >= most then
        return;
      end if;
    end if;
    insert into webhook_events (type, cause, data, created_at) values (the_type, the_cause, the_data, at)
      returning id into the_id;
    insert into webhook_deliveries (event_id, receiver_id) select the_id, id from webhook_receivers where is_active;
  end $$`,

  `create function tell_proof() returns trigger language plpgsql as $$
  begin
    if not exists (select from webhook_receivers where is_active) then
      return null;
    end if;
    perform write_webhook(
      case new.status when 'complete' then 'proof.complete' else 'proof.failed' end,
      jsonb_build_object(
        'slug', new.slug, 'status', new.status, 'kind', s.kind, 'txHash', '0x' || encode(s.tx_hash, 'hex'),
        'chainId', s.chain_id, 'walletAddress', '0x' || encode(w.address, 'hex'), 'ipfsCid', new.ipfs_cid
      ) || case new.status
        when 'complete' then (
          select jsonb_build_object('onchainTxHash', '0x' || encode(tx_hash, 'hex'), 'onchainBlockNumber', block_number)
          from publications where id = new.publication_id
        )
        else jsonb_build_object('failure', new.failure)
      end,
      now(), null, null, null
    )
    from signings as s join wallets as w on w.id = s.wallet_id where s.id = new.signing_id;
    return null;
  end $$`,
  `create trigger proofs_told after update on proofs for each row
    when (old.status <> new.status and new.status in ('complete', 'pin_failed', 'onchain_failed'))
    execute function tell_proof()`,

  `create function tell_session() returns trigger language plpgsql as $$
  begin
    perform write_webhook(
      'session.created', jsonb_build_object('walletAddress', '0x' || encode(new.address, 'hex')),
      new.created_at, null, null, null
    );
    return null;
  end $$`,
  `create trigger sessions_told after insert on sessions for each row execute function tell_session()`,

  // No plan uses statistics of these columns, and documents take PostgreSQL longest to sort.
  ...Object.entries({
    batches: ['leaves', 'measurement', 'config'],
    log_appends: ['entries', 'root', 'note', 'claims'],
    receipts: ['bytes'],
    releases: ['settings', 'ed25519'],
    signings: ['signature', 'data', 'facts', 'release'],
    wallets: ['witness'],
    webhook_events: ['data'],
  }).map(([table, columns]) => {
    const changes = columns.map((column) => `alter column ${column} set statistics 0`)
    return `alter table ${table} ${changes.join(', ')}`
  }),
  'select create_signing_partitions()',
]
