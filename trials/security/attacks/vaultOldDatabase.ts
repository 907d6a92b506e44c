import { openQuery, type Query } from '../../openQuery.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import { createCaller } from '../createCaller.ts'
import { callSign, createLarge, signHonestly, toCookie } from '../vaults/callSign.ts'
import { listForgeries } from '../vaults/forgeApprovals.ts'
import { setUpVaults, type Vaults } from '../vaults/setUpVaults.ts'
import { createTally } from '../vaults/tally.ts'

const TRIES = { full: 250, short: 40 } as const
const COPY = 'copied'

/** What an operator can do to rows: the database's own rules do not bind its owner. */
const EDITS: Record<string, (query: Query, vaults: Vaults) => Promise<unknown>> = {
  'as it was before': async () => {},
  'the vault under other rules': (query, { vault, open }) =>
    query('update wallets set policy_hash = $1 where address = $2', [toBytes(open.policyHash), toBytes(vault.address)]),
  'the vault under other rules, with the key of those': (query, { open, vault }) =>
    query('update wallets set kms_key_id = $1 where address = $2', [toBytes(open.keyId), toBytes(vault.address)]),
  'other rules under the same hash': async (query, { open, vault }) => {
    const row = [toBytes(vault.address), toBytes(vault.policyHash), toBytes(vault.keyId)]
    await query('update wallets set policy_hash = $2, kms_key_id = $3 where address = $1', row)
    await query('alter table policies drop constraint if exists policies_check')
    await query('update policies set bytes = $1 where hash = $2', [Buffer.from(open.text), toBytes(vault.policyHash)])
  },
}

/**
 * The database is copied, used, and put back to the copy; then its rows are changed, one thing after the other. Nothing above the
 * threshold may be signed: what a vault may do is in no table.
 */
export async function vaultOldDatabase({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const { backend } = target
  const databaseUrl = backend.databaseUrl
  const copyUrl = toDatabaseUrl(databaseUrl, COPY)
  const vaults = await setUpVaults(target)
  const caller = createCaller({ port: target.port, connections: 8 })
  const as = { caller, ...toCookie(target) }
  const tally = createTally()
  const faults: string[] = []
  const restart = async (url?: string) => {
    await backend.stopCoordinator('SIGTERM')
    await backend.startCoordinator(url === undefined ? {} : { DATABASE_URL: url })
  }
  try {
    await signHonestly(as, vaults)
    await backend.stopCoordinator('SIGTERM')
    await withQuery(toDatabaseUrl(databaseUrl, 'postgres'), (query) =>
      query(`create database ${COPY} template "${new URL(databaseUrl).pathname.slice(1)}"`),
    )
    await backend.startCoordinator()
    const seen = await signHonestly(as, vaults)
    const forgeries = listForgeries(vaults, { random, seen })
    for (const [edit, change] of Object.entries(EDITS)) {
      say(edit)
      await backend.stopCoordinator('SIGTERM')
      await withQuery(copyUrl, async (query) => {
        for (const table of ['wallets', 'policies']) await query(`alter table ${table} disable trigger all`)
        // One wallet for each policy: the one that has it is in the way.
        await query(`delete from wallets where address = $1`, [toBytes(vaults.open.address)])
        await change(query, vaults)
      })
      await backend.startCoordinator({ DATABASE_URL: copyUrl })
      for (let made = 0; made < TRIES[size]; made++) {
        const { name, forge } = forgeries[made % forgeries.length] as (typeof forgeries)[number]
        const payment = createLarge(random)
        const approvals = forge(payment.digest)
        const outcome = await callSign(as, { ...payment, wallet: vaults.vault.address, approvals })
        tally.add(`${edit}: ${name}`, outcome)
      }
      if (edit === 'as it was before') await signHonestly(as, vaults, 1)
    }
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error))
  } finally {
    caller.close()
    await restart()
  }
  return {
    name: 'vault: old database',
    tried: tally.tried(),
    figures: tally.figures(),
    faults: [...tally.faults(), ...faults],
  }
}

const toBytes = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')

function toDatabaseUrl(url: string, name: string): string {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

async function withQuery(url: string, run: (query: Query) => Promise<unknown>) {
  const { query, close } = await openQuery(url)
  try {
    await run(query)
  } finally {
    await close()
  }
}
