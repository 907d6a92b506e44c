import { type Kysely, sql } from 'kysely'

/**
 * From signature to public proof. A publication is one nonce of the publisher's account, with every transaction that was ever
 * signed for it: what is not stored here has never been sent.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
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
  // The ones that somebody has to look at.
  `create index publications_open on publications (nonce) where status in ('pending', 'confirmed')`,

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

  `alter table attestations
    add column pin_attempts integer not null default 0,
    add column failure text,
    add column pinned_at timestamptz,
    add column publication_id bigint references publications,
    add column publish_limit integer not null default 200 check (publish_limit between 1 and 200)`,
  `create index attestations_published_by on attestations (publication_id) where publication_id is not null`,
  // The ones that wait for a publication, in the order in which they were pinned.
  `create index attestations_due on attestations (pinned_at) where status = 'pending_onchain' and publication_id is null`,
  // Claims that are too old to matter are deleted.
  `create index entropy_samples_claimed_at on entropy_samples (claimed_at)`,
  // For a user's list, newest first.
  `create index pending_transactions_of on pending_transactions (wallet_id, id desc)`,

  `create function guard_publication() returns trigger language plpgsql as $$
  begin
    if (old.chain_id, old.account, old.nonce, old.contract, old.calldata, old.created_at)
      is distinct from (new.chain_id, new.account, new.nonce, new.contract, new.calldata, new.created_at) then
      raise exception 'a publication never changes' using errcode = 'restrict_violation', table = 'publications';
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
  `create trigger publications_kept before delete on publications for each row execute function refuse_change()`,
  `create trigger publication_transactions_kept before delete on publication_transactions
    for each row execute function refuse_change()`,
  `create trigger publication_transactions_immutable before update on publication_transactions
    for each row when ((old.tx_hash, old.publication_id, old.kind, old.raw) is distinct from
      (new.tx_hash, new.publication_id, new.kind, new.raw)) execute function refuse_change()`,
]
