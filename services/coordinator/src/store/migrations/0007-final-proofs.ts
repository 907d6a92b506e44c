import { type Kysely, sql } from 'kysely'

/**
 * A proof whose publication is final never changes again: coordinators keep its answer without asking. The other columns that are told
 * never change at all.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create function guard_final_attestation() returns trigger language plpgsql as $$
  declare
    publication_status text;
  begin
    -- Locked whatever its status is, so that it does not become final between this look and the change.
    select status into publication_status from publications where id = old.publication_id for share;
    if publication_status = 'final' then
      raise exception 'a final proof never changes' using errcode = 'restrict_violation', table = 'attestations';
    end if;
    return new;
  end $$`,
  `create trigger attestations_final before update on attestations for each row
    when (old.status = 'complete' and (old.onchain_tx_hash, old.onchain_block_number, old.publication_id)
      is distinct from (new.onchain_tx_hash, new.onchain_block_number, new.publication_id))
    execute function guard_final_attestation()`,
]
