import { type Kysely, sql } from 'kysely'

/**
 * Whether a digest is signed already was asked by `exists`. The planner may answer that from a hash table of all signings, which it did as
 * long as it took the table for small: the time of a call grew with everything that was ever signed, while the log was locked. A subquery for
 * a value is never hashed: it is run for each row, which it finds by its index.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(takeClaims).execute(db)
}

const takeClaims = `create or replace function take_claims(
  the_log integer, the_boot bytea, wallets uuid[], digests text[], leaves text[], expired_before timestamptz, at timestamptz,
  out lost text[]
) language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  taken bigint := cardinality(leaves);
begin
  -- In the order of all coordinators, so that none waits for another in a circle.
  begin
    insert into claims (wallet_id, digest, leaf, log_id, boot_id, created_at)
    select wallet_id, decode(digest, 'hex'), decode(leaf, 'hex'), the_log, the_boot, at
    from unnest(wallets, digests, leaves) as asked (wallet_id, digest, leaf)
    order by wallet_id, digest;
  exception when unique_violation then
    insert into claims (wallet_id, digest, leaf, log_id, boot_id, created_at)
    select distinct on (wallet_id, digest) wallet_id, decode(digest, 'hex'), decode(leaf, 'hex'), the_log, the_boot, at
    from unnest(wallets, digests, leaves) with ordinality as asked (wallet_id, digest, leaf, place)
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
    select asked.leaf
    from unnest(wallets, digests, leaves) with ordinality as asked (wallet_id, digest, leaf, place)
    where (
      select true from pending_transactions as p
      where p.wallet_id = asked.wallet_id and p.digest = decode(asked.digest, 'hex')
      limit 1
    ) or (taken < cardinality(leaves) and (
      select true from claims as c
      where c.wallet_id = asked.wallet_id and c.digest = decode(asked.digest, 'hex') and c.leaf = decode(asked.leaf, 'hex')
      limit 1
    ) is null)
    order by place
  );
  if cardinality(lost) > 0 then
    delete from claims as c
    using unnest(wallets, digests, leaves) as asked (wallet_id, digest, leaf)
    where asked.leaf = any (lost) and c.wallet_id = asked.wallet_id and c.digest = decode(asked.digest, 'hex')
      and c.leaf = decode(asked.leaf, 'hex');
  end if;
end $$`
