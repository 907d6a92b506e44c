import { type Kysely, sql } from 'kysely'

/**
 * The logs of enclaves: entries, the hashes that tiles above them have, checkpoints, and the cosigned notes that receipts and the public
 * get. What is written never changes. Claims say which of several statements about one digest gets a receipt, and are deleted with it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table logs (
    id integer generated always as identity primary key,
    hash bytea not null unique check (hash = sha256(convert_to(origin, 'UTF8'))),
    origin text not null,
    key text not null,
    created_at timestamptz not null
  )`,

  // Without a foreign key, which would cost as much as the row itself, as the next two: append_log alone writes to them.
  `create table log_entries (
    log_id integer not null,
    index bigint not null check (index >= 0),
    entry bytea not null check (length(entry) = 57),
    primary key (log_id, index)
  )`,
  // By the leaf: which statements were dropped, or not acknowledged.
  `create index log_entries_ended on log_entries (substr(entry, 18, 32)) where get_byte(entry, 0) in (2, 3)`,
  `create index log_entries_boots on log_entries (log_id, index) where get_byte(entry, 0) = 0`,

  // The hashes in the tiles of levels from 1 on: each the root of a full tile of the level below.
  `create table log_nodes (
    log_id integer not null,
    level smallint not null check (level > 0),
    index bigint not null check (index >= 0),
    hash bytea not null check (length(hash) = 32),
    primary key (log_id, level, index)
  )`,

  // As the enclave signed them.
  `create table log_checkpoints (
    log_id integer not null,
    size bigint not null check (size >= 0),
    boot_id bytea not null check (length(boot_id) = 16),
    root bytea not null check (length(root) = 32),
    note text not null,
    created_at timestamptz not null,
    primary key (log_id, size)
  )`,

  // The same with cosignatures. No note is of a checkpoint that is not written.
  `create table log_notes (
    hash bytea primary key check (hash = sha256(convert_to(note, 'UTF8'))),
    log_id integer not null,
    size bigint not null,
    note text not null,
    created_at timestamptz not null,
    constraint log_notes_checkpoint_fkey foreign key (log_id, size) references log_checkpoints
  )`,
  `create index log_notes_newest on log_notes (log_id, size, created_at)`,

  ...['logs', 'log_entries', 'log_nodes', 'log_checkpoints', 'log_notes'].flatMap((table) => [
    `create trigger ${table}_immutable before update on ${table}
      for each row when (old.* is distinct from new.*) execute function refuse_change()`,
    `create trigger ${table}_kept before delete on ${table} for each row execute function refuse_change()`,
  ]),

  `create table claims (
    wallet_id uuid not null,
    digest bytea not null check (length(digest) = 32),
    leaf bytea not null check (length(leaf) = 32),
    log_id integer not null,
    boot_id bytea not null check (length(boot_id) = 16),
    created_at timestamptz not null,
    primary key (wallet_id, digest)
  )`,

  // The note by which the statements of one call were released, and where in the log the entry of each is.
  `alter table verifications add column log_note bytea references log_notes`,
  `alter table attestations add column log_index bigint check (log_index >= 0)`,
  `create trigger attestations_logged before update on attestations
    for each row when (old.log_index is distinct from new.log_index) execute function refuse_change()`,

  // The root of a full tile, RFC 6962: hashes side by side, as many as a power of two.
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

  // Each statement of a function sees what was committed before it: so what comes after the lock sees all that others wrote under it.
  `create function append_log(
    the_origin text, the_key text, the_boot bytea, first_index bigint, added bytea, the_root bytea, the_note text,
    wallets uuid[], digests text[], leaves text[], expired_before timestamptz, at timestamptz,
    out missing bigint, out lost text[]
  ) language plpgsql as $$
  declare
    the_hash constant bytea := sha256(convert_to(the_origin, 'UTF8'));
    count constant bigint := length(added) / 57;
    the_size constant bigint := first_index + count;
    log logs;
    old_size bigint;
    known bigint;
    tile_level integer := 0;
    done bigint;
    complete bigint;
    taken bigint;
  begin
    perform pg_advisory_xact_lock(${0x6c_6f_67_01}, ('x' || encode(substr(the_hash, 1, 4), 'hex'))::bit(32)::integer);
    select * into log from logs where hash = the_hash;
    old_size := coalesce((select max(index) + 1 from log_entries where log_id = log.id), 0);
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

    known := least(old_size - first_index, count);
    if substr(added, 1, (57 * known)::integer) <> coalesce((
      select string_agg(entry, ''::bytea order by index) from log_entries
      where log_id = log.id and index >= first_index and index < first_index + known
    ), ''::bytea) then
      raise exception 'another entry is recorded' using errcode = 'restrict_violation', constraint = 'logs_same';
    end if;
    insert into log_entries (log_id, index, entry)
    select log.id, first_index + place, substr(added, 57 * place + 1, 57)
    from generate_series(known::integer, count::integer - 1) as place;
    if exists (
      select from generate_series(known::integer, count::integer - 1) as place where get_byte(added, 57 * place) = 0
    ) then
      -- Once for each boot: claims that nobody gave up, because their coordinator died. Only here they are not found by a key.
      delete from claims where (wallet_id, digest) in (
        select wallet_id, digest from claims where created_at < expired_before - interval '1 day' for update skip locked
      );
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
          select log.id, 1, tile, hash_log_tile(string_agg(sha256('\\x00'::bytea || entry), ''::bytea order by index))
          from log_entries where log_id = log.id and index >= 256::bigint * tile and index < 256::bigint * (tile + 1);
        else
          insert into log_nodes (log_id, level, index, hash)
          select log.id, tile_level, tile, hash_log_tile(string_agg(hash, ''::bytea order by index))
          from log_nodes
          where log_id = log.id and level = tile_level - 1 and index >= 256::bigint * tile and index < 256::bigint * (tile + 1);
        end if;
      end loop;
    end loop;

    insert into log_checkpoints (log_id, size, boot_id, root, note, created_at)
    values (log.id, the_size, the_boot, the_root, the_note, at)
    on conflict do nothing;
    if not found and the_root <> (select root from log_checkpoints where log_id = log.id and size = the_size) then
      raise exception 'another tree of this size is recorded'
        using errcode = 'restrict_violation', constraint = 'logs_same';
    end if;

    if cardinality(leaves) = 0 then
      return;
    end if;
    -- In the order of all coordinators, so that none waits for another in a circle.
    insert into claims (wallet_id, digest, leaf, log_id, boot_id, created_at)
    select distinct on (wallet_id, digest) wallet_id, decode(digest, 'hex'), decode(leaf, 'hex'), log.id, the_boot, at
    from unnest(wallets, digests, leaves) with ordinality as asked (wallet_id, digest, leaf, place)
    order by wallet_id, digest, place
    on conflict (wallet_id, digest) do update
    set leaf = excluded.leaf, log_id = excluded.log_id, boot_id = excluded.boot_id, created_at = excluded.created_at
    where claims.leaf <> excluded.leaf and (
      claims.created_at < expired_before
      or exists (
        select from log_entries
        where substr(entry, 18, 32) = claims.leaf and get_byte(entry, 0) in (2, 3) and log_id = claims.log_id
      )
      or claims.boot_id <> (
        select substr(entry, 2, 16) from log_entries
        where log_id = claims.log_id and get_byte(entry, 0) = 0 order by index desc limit 1
      )
    );
    get diagnostics taken = row_count;
    -- A signing is stored and its claim deleted at once: where the claim was free because of that, this sees the signing.
    lost := array(
      select asked.leaf
      from unnest(wallets, digests, leaves) with ordinality as asked (wallet_id, digest, leaf, place)
      where (taken < cardinality(leaves) and not exists (
        select from claims as c
        where c.wallet_id = asked.wallet_id and c.digest = decode(asked.digest, 'hex') and c.leaf = decode(asked.leaf, 'hex')
      )) or exists (
        select from pending_transactions as p
        where p.wallet_id = asked.wallet_id and p.digest = decode(asked.digest, 'hex')
      )
      order by place
    );
    if cardinality(lost) > 0 then
      delete from claims as c
      using unnest(wallets, digests, leaves) as asked (wallet_id, digest, leaf)
      where asked.leaf = any (lost) and c.wallet_id = asked.wallet_id and c.digest = decode(asked.digest, 'hex')
        and c.leaf = decode(asked.leaf, 'hex');
    end if;
  end $$`,
]
