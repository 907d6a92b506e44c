import { type Kysely, sql } from 'kysely'

/**
 * Every kind of signature, and receipts of version 2. Of a signature that is off the chain nothing is kept but its commitment: the
 * database itself refuses a digest, a signature or anything else of it. Constraints on tables that may be large are not checked for
 * the rows that are there, which the earlier and stricter ones have let in.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // tx_hash is what the event names: the transaction's hash, that of the signed authorization, or the commitment.
  `alter table pending_transactions
    add column kind text not null default 'transaction',
    add column subject jsonb,
    alter column digest drop not null,
    alter column signature drop not null,
    alter column tx_metadata drop not null,
    drop constraint pending_transactions_chain_id_check,
    add constraint pending_transactions_kind check (
      case kind
        when 'off-chain' then digest is null and signature is null and tx_metadata is null and chain_id = 0
          and subject is not null and subject - 'commitment' = '{}' and subject ->> 'commitment' = encode(tx_hash, 'hex')
        when 'authorization' then digest is not null and signature is not null and tx_metadata is null and chain_id > 0
          and subject is not null
        when 'transaction' then digest is not null and signature is not null and chain_id > 0
          and (tx_metadata is null) <> (subject is null)
        else false
      end
    ) not valid`,
  `create unique index pending_transactions_commitment on pending_transactions (wallet_id, tx_hash) where kind = 'off-chain'`,

  // A round of a beacon serves many signatures, and has no entropy_hash here. Releases of version 2 have a table of their own.
  `alter table attestations
    add column version smallint not null default 1,
    alter column release drop not null,
    alter column entropy_hash drop not null,
    add constraint attestations_version check (
      case version
        when 1 then release is not null and entropy_hash is not null
        when 2 then release is null
        else false
      end
    ) not valid`,

  // The block that a coordinator's release names: its report over both of its keys, as canonical JSON.
  `create table coordinator_blocks (
    hash bytea primary key check (hash = sha256(bytes)),
    bytes bytea not null
  )`,

  // Both signatures of one coordinator over one batch. They are not the same twice, so the first that is stored is the one.
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
  ...['coordinator_blocks', 'releases'].flatMap((table) => [
    `create trigger ${table}_immutable before update on ${table}
      for each row when (old.* is distinct from new.*) execute function refuse_change()`,
    `create trigger ${table}_kept before delete on ${table} for each row execute function refuse_change()`,
  ]),

  `create or replace function guard_attestation() returns trigger language plpgsql as $$
  begin
    if old.status <> new.status and not is_proof_transition(old.status, new.status) then
      raise exception 'a proof does not move from % to %', old.status, new.status
        using errcode = 'restrict_violation', table = 'attestations', column = 'status';
    end if;
    if (old.receipt_bytes is not null and old.receipt_bytes is distinct from new.receipt_bytes)
      or (old.ipfs_cid is not null and old.ipfs_cid is distinct from new.ipfs_cid) then
      raise exception 'a receipt never changes' using errcode = 'restrict_violation', table = 'attestations';
    end if;
    if (old.pending_transaction_id, old.slug, old.verification_id, old.version, old.statement, old.leaf_index, old.path,
        old.witness, old.entropy_hash, old.release, old.created_at)
      is distinct from
       (new.pending_transaction_id, new.slug, new.verification_id, new.version, new.statement, new.leaf_index, new.path,
        new.witness, new.entropy_hash, new.release, new.created_at) then
      raise exception 'what was signed never changes' using errcode = 'restrict_violation', table = 'attestations';
    end if;
    return new;
  end $$`,
]
