import { type Kysely, sql } from 'kysely'

/**
 * Claims took three quarters of what the database did for a log. They come as one value now, and not as three arrays. And those that are over
 * are deleted by a statement of its own (`deleteClaims`): within this transaction the index kept all that were deleted since the last vacuum,
 * and each deletion read them again. The earlier functions stay, with other parameters, for coordinators that still run: a
 * statement that changes one of them must name its parameters.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Side by side, 80 bytes each: wallet, digest, leaf.
  `create function read_claims(claimed bytea, out place integer, out wallet_id uuid, out digest bytea, out leaf bytea)
  returns setof record language sql immutable as $$
    select place, encode(substr(claimed, 80 * place + 1, 16), 'hex')::uuid, substr(claimed, 80 * place + 17, 32),
      substr(claimed, 80 * place + 49, 32)
    from generate_series(0, length(claimed) / 80 - 1) as place
  $$`,

  // The claims are in the order of all coordinators, by wallet and digest, so that none waits for another in a circle.
  `create function take_claims(
    the_log integer, the_boot bytea, claimed bytea, expired_before timestamptz, at timestamptz, out lost text[]
  ) language plpgsql set plan_cache_mode = force_generic_plan as $$
  declare
    count constant bigint := length(claimed) / 80;
    taken bigint := count;
  begin
    if length(claimed) % 80 <> 0 then
      raise exception 'not claims';
    end if;
    begin
      insert into claims (wallet_id, digest, leaf, log_id, boot_id, created_at)
      select wallet_id, digest, leaf, the_log, the_boot, at from read_claims(claimed);
    exception when unique_violation then
      insert into claims (wallet_id, digest, leaf, log_id, boot_id, created_at)
      select distinct on (wallet_id, digest) wallet_id, digest, leaf, the_log, the_boot, at from read_claims(claimed)
      order by wallet_id, digest, place
      on conflict (wallet_id, digest) do update
      set leaf = excluded.leaf, log_id = excluded.log_id, boot_id = excluded.boot_id, created_at = excluded.created_at
      where claims.leaf <> excluded.leaf and (
        claims.created_at < expired_before
        or (
          select true from log_entries
          where substr(entry, 18, 32) = claims.leaf and get_byte(entry, 0) in (2, 3) and log_id = claims.log_id
          limit 1
        )
        or claims.boot_id <> (
          select substr(entry, 2, 16) from log_entries
          where log_id = claims.log_id and get_byte(entry, 0) = 0 order by index desc limit 1
        )
      );
      get diagnostics taken = row_count;
    end;
    -- Where a claim was free because its time is over, this sees the signing.
    lost := array(
      select encode(asked.leaf, 'hex') from read_claims(claimed) as asked
      where (
        select true from pending_transactions as p
        where p.wallet_id = asked.wallet_id and p.digest = asked.digest
        limit 1
      ) or (taken < count and (
        select true from claims as c
        where c.wallet_id = asked.wallet_id and c.digest = asked.digest and c.leaf = asked.leaf
        limit 1
      ) is null)
    );
    if cardinality(lost) > 0 then
      -- By key too, whatever the planner takes the table for.
      delete from claims where ctid = any (array(
        select (
          select c.ctid from claims as c
          where c.wallet_id = asked.wallet_id and c.digest = asked.digest and c.leaf = asked.leaf
          limit 1
        )
        from read_claims(claimed) as asked
        where encode(asked.leaf, 'hex') = any (lost)
      ));
    end if;
  end $$`,

  // Each statement of a function sees what was committed before it: so what comes after the lock sees all that others wrote under it.
  `create function append_log(
    the_origin text, the_key text, the_boot bytea, first_index bigint, added bytea, the_root bytea, the_note text,
    claimed bytea, expired_before timestamptz, at timestamptz,
    out missing bigint, out lost text[]
  ) language plpgsql set plan_cache_mode = force_generic_plan as $$
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
    if length(claimed) > 0 then
      lost := take_claims(log.id, the_boot, claimed, expired_before, at);
    end if;
  end $$`,
]
