import { type Kysely, sql } from 'kysely'

/**
 * The receipt of a final proof may leave the database, once and for ever, and nothing else of the proof with it. `receipt_dropped` is how
 * many bytes it took here; the database itself writes it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Not checked for the rows that are there, which the earlier and stricter constraint has let in.
  `alter table attestations
    add column receipt_dropped integer,
    drop constraint attestations_pinned,
    add constraint attestations_pinned check (
      case when status in ('pending_pin', 'pin_failed') then ipfs_cid is null
      else ipfs_cid is not null and (receipt_bytes is not null or receipt_dropped is not null) end
    ) not valid,
    add constraint attestations_dropped check (
      receipt_dropped is null or (status = 'complete' and receipt_bytes is null)
    ) not valid`,

  // The receipts that may still be dropped, in the order of signing.
  `create index attestations_held on attestations (pending_transaction_id)
    where status = 'complete' and receipt_bytes is not null`,

  // Every change but this one is guarded as before.
  `drop trigger attestations_guarded on attestations`,
  `create trigger attestations_guarded before update on attestations for each row
    when (old.receipt_bytes is null or new.receipt_bytes is not null) execute function guard_attestation()`,

  `create function guard_dropped_receipt() returns trigger language plpgsql as $$
  declare
    before attestations := old;
    after attestations := new;
  begin
    before.receipt_bytes := null;
    after.receipt_bytes := null;
    if before is distinct from after then
      raise exception 'a receipt is dropped alone' using errcode = 'restrict_violation', table = 'attestations';
    end if;
    -- A final publication stays final, so that it needs no lock.
    if old.status <> 'complete' or not exists (select from publications where id = old.publication_id and status = 'final') then
      raise exception 'only the receipt of a final proof is dropped' using errcode = 'restrict_violation', table = 'attestations';
    end if;
    new.receipt_dropped := pg_column_size(old.receipt_bytes);
    return new;
  end $$`,
  `create trigger attestations_receipt_dropped before update on attestations for each row
    when (old.receipt_bytes is not null and new.receipt_bytes is null) execute function guard_dropped_receipt()`,
  // It cannot be claimed for a receipt that is here, and what was dropped does not come back.
  `create trigger attestations_receipt_gone before update on attestations for each row
    when ((old.receipt_bytes is null or new.receipt_bytes is not null) and old.receipt_dropped is distinct from new.receipt_dropped
      or old.receipt_dropped is not null and new.receipt_bytes is not null)
    execute function refuse_change()`,
]
