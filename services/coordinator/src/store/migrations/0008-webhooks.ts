import { type Kysely, sql } from 'kysely'

/**
 * Webhooks: who gets them, what happened, and how far each has come. Triggers write what happened in the transaction in which it does:
 * no event is lost, and none is of something that did not happen. Without a receiver nothing is written.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // As the settings of the worker that started last. The URL itself, which may hold a secret, is in no row.
  `create table webhook_receivers (
    id integer generated always as identity primary key,
    url_hash bytea not null unique check (length(url_hash) = 32),
    origin text not null,
    is_active boolean not null
  )`,
  // Public ones, of the same settings: for coordinators to show.
  `create table webhook_keys (
    key bytea primary key check (length(key) = 32),
    place integer,
    created_at timestamptz not null
  )`,

  // cause: of what may be told only so often. The others are their own cause.
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

  // due_at: when to try, or try again; of one under way, when its worker is given up. queued_at: from when the deadline counts.
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
  // Since when the oldest waits, and what is old enough to be forgotten.
  `create index webhook_deliveries_pending on webhook_deliveries (receiver_id, queued_at) where status = 'pending'`,
  `create index webhook_deliveries_delivered on webhook_deliveries (receiver_id, settled_at) where status = 'delivered'`,
  `create index webhook_deliveries_dead on webhook_deliveries (receiver_id, queued_at) where status = 'dead'`,

  // Under a lock of the cause, so that two that notice the same thing at once tell it once.
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
        'slug', new.slug, 'status', new.status, 'kind', p.kind, 'txHash', '0x' || encode(p.tx_hash, 'hex'),
        'chainId', p.chain_id, 'walletAddress', '0x' || encode(w.address, 'hex'), 'ipfsCid', new.ipfs_cid
      ) || case new.status
        when 'complete' then jsonb_build_object(
          'onchainTxHash', '0x' || encode(new.onchain_tx_hash, 'hex'), 'onchainBlockNumber', new.onchain_block_number
        )
        else jsonb_build_object('failure', new.failure)
      end,
      now(), null, null, null
    )
    from pending_transactions as p join wallets as w on w.id = p.wallet_id where p.id = new.pending_transaction_id;
    return null;
  end $$`,
  `create trigger attestations_told after update on attestations for each row
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
]
