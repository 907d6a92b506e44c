import { type Kysely, sql } from 'kysely'

/**
 * Vaults: wallets of a user under the rules of a policy, and what is stated about an address. A policy is kept before its vault is
 * shown to anybody, and for ever, since the vault's key follows from it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Canonical JSON as bytes. pinned_at: when its block was read back from where it was pinned.
  `create table policies (
    hash bytea primary key check (hash = sha256(bytes)),
    bytes bytea not null,
    created_at timestamptz not null,
    pinned_at timestamptz
  )`,
  // For the sweep, which looks for those few every ten seconds.
  `create index policies_unpinned on policies (created_at) where pinned_at is null`,
  `create trigger policies_immutable before update on policies
    for each row when ((old.hash, old.bytes, old.created_at) is distinct from (new.hash, new.bytes, new.created_at)
      or old.pinned_at is not null and old.pinned_at is distinct from new.pinned_at) execute function refuse_change()`,
  `create trigger policies_kept before delete on policies for each row execute function refuse_change()`,

  // A user has one wallet without a policy, and one for each policy. A vault has no witness of its own: its key follows from its rules.
  `alter table wallets
    add column policy_hash bytea references policies,
    alter column entropy_hash drop not null,
    alter column entropy_sig drop not null,
    alter column satellite_source drop not null,
    alter column witness drop not null,
    drop constraint wallets_user_id_key,
    add constraint wallets_provenance check (
      num_nulls(entropy_hash, entropy_sig, satellite_source, witness) = case when policy_hash is null then 0 else 4 end
    ) not valid`,
  `create unique index wallets_own on wallets (user_id) where policy_hash is null`,
  `create unique index wallets_vaults on wallets (user_id, policy_hash) where policy_hash is not null`,
  `create unique index wallets_addresses on wallets (user_id, address)`,

  // What is stated about an address has the hash of its subject as digest, so that there is one for each wallet.
  `alter table pending_transactions
    drop constraint pending_transactions_kind,
    add constraint pending_transactions_kind check (
      case kind
        when 'off-chain' then digest is null and signature is null and tx_metadata is null and chain_id = 0
          and subject is not null and subject - 'commitment' = '{}' and subject ->> 'commitment' = encode(tx_hash, 'hex')
        when 'address' then digest is not null and digest = tx_hash and signature is null and tx_metadata is null
          and chain_id = 0 and subject is not null
        when 'authorization' then digest is not null and signature is not null and tx_metadata is null and chain_id > 0
          and subject is not null
        when 'transaction' then digest is not null and signature is not null and chain_id > 0
          and (tx_metadata is null) <> (subject is null)
        else false
      end
    ) not valid`,

  // The approvals of a transaction, which its receipt shows. Those of what is signed off the chain are in its opening only.
  `alter table attestations add column approvals jsonb`,
  `create trigger attestations_approved before update on attestations
    for each row when (old.approvals is distinct from new.approvals) execute function refuse_change()`,
]
