import type { Approval } from '@countersign/protocol'
import { toEnclaveEnv } from '@countersign/testing/launcher'
import { createTestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { startEnclave } from '../../../services/enclave/test/enclaveProcess.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import { createDatabase, openQuery, type Query } from '../../openQuery.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import { callSign, createLarge, SIGNED, signHonestly, toCaller } from '../vaults/callSign.ts'
import { askEnclave, listEnclaveTries, toHonestItem } from '../vaults/enclaveForgeries.ts'
import { listForgeries } from '../vaults/forgeApprovals.ts'
import { approve, createPayment, readSession, setUpVaults, THRESHOLD_WEI, type Vaults } from '../vaults/setUpVaults.ts'

/* Attacks on vaults. Nothing above the threshold may be signed: a signature is the one fault that counts. */

const AT_ONCE = 16

type Attempt = {
  context: AttackContext
  vaults: Vaults
  as: Parameters<typeof callSign>[0]
  /** Approvals of payments that were signed. */
  seen: Approval[]
  add(name: string, outcome: string): void
}

/** Sets up vaults, has honest payments signed, runs the attack, and counts how its tries ended. */
async function attackVaults(
  context: AttackContext,
  run: (attempt: Attempt) => Promise<string[]>,
): Promise<AttackResult> {
  const { target } = context
  const vaults = await setUpVaults(target)
  const as = toCaller(target)
  const outcomes = new Map<string, number>()
  const signed = new Set<string>()
  let tried = 0
  const add = (each: string, outcome: string) => {
    tried += 1
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (outcome === SIGNED) signed.add(each)
  }
  const seen = await signHonestly(as, vaults)
  const faults = await run({ context, vaults, as, seen, add })
  const refusals = [...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', ')
  return {
    tried,
    figures: { signatures: signed.size, refusals },
    faults: [...signed].map((each) => `signed: ${each}`).concat(faults),
  }
}

/** A thief has the session of a vault's owner, and everything but the passkeys. */
export const vaultStolenSession = (context: AttackContext) =>
  attackVaults(context, async ({ vaults, as, seen, add }) => {
    const { size, random, say } = context
    const { vault, twin, twofold, scheduled } = vaults
    const codes = new Set<string>()
    const typedData = { domain: { name: 'x' }, types: { A: [{ name: 'a', type: 'string' }] }, primaryType: 'A' }
    const forged = listForgeries(vaults, { random, seen }).map(({ name, forge }) => {
      const run = () => {
        const payment = createLarge(random)
        return callSign(as, { ...payment, wallet: vault.address, approvals: forge(payment.digest) })
      }
      return [name, run] as const
    })
    /** Other ways in than an approval that is none. */
    const ways: Record<string, () => Promise<string>> = {
      'the metadata of a small payment'() {
        const { digest } = createLarge(random)
        const { txMetadata } = createPayment(THRESHOLD_WEI)
        return callSign(as, { digest, txMetadata, wallet: vault.address })
      },
      'the vault of another user': () => callSign(as, { ...createLarge(random), wallet: twin.address }),
      'one approval of two'() {
        const payment = createLarge(random)
        const approvals = [approve({ digest: payment.digest, vault: twofold, by: random.below(2) })]
        return callSign(as, { ...payment, wallet: twofold.address, approvals })
      },
      'before its time': () => callSign(as, { ...createLarge(random), wallet: scheduled.address }),
      'a message': () => callSign(as, { message: '0x00', wallet: vault.address }, '/sign/message'),
      'typed data': () =>
        callSign(as, { ...typedData, message: { a: 'b' }, wallet: vault.address }, '/sign/typed-data'),
      'code for the account'() {
        const authorization = { chainId: 1, address: `0x${'77'.repeat(20)}`, nonce: random.below(1000) }
        return callSign(as, { ...authorization, wallet: vault.address }, '/sign/authorization')
      },
    }
    const tries = [...forged, ...Object.entries(ways)]
    const most = size === 'full' ? 4000 : 150
    for (let made = 0; made < most; made += AT_ONCE) {
      const places = Array.from({ length: Math.min(AT_ONCE, most - made) }, (_, index) => (made + index) % tries.length)
      const chosen = places.map((place) => tries[place] as (typeof tries)[number])
      await Promise.all(
        chosen.map(async ([name, run]) => {
          const outcome = await run()
          codes.add(outcome)
          add(name, outcome)
        }),
      )
      if (made % 1600 === 0 && made > 0) say(`${made} of ${most}`)
    }
    await signHonestly(as, vaults, 1)
    // An attack that meets an internal error is not refused by a rule.
    const odd = ['internal', 'enclave_unavailable', 'attestation_invalid'].filter((code) => codes.has(code))
    return odd.map((code) => `answered ${code}`)
  })

/** An operator runs other code in the place of the coordinator: it has every session, and asks the enclave for anything. */
export const vaultOwnCoordinator = (context: AttackContext) =>
  attackVaults(context, async ({ vaults, seen, add }) => {
    const { target, size, random, say } = context
    const session = await readSession(target, target.alice)
    const own = await readSession(target, target.mallory)
    const enclave = { url: target.backend.enclaveUrl, coordinator: createTestCoordinator() }
    const tries = listEnclaveTries(vaults, { session, own, random, seen })
    const most = size === 'full' ? 4000 : 200
    const faults = await signApproved(enclave, vaults, session)
    for (let made = 0; made < most; made++) {
      const { name, make } = tries[made % tries.length] as (typeof tries)[number]
      const { item, policies } = make()
      add(name, await askEnclave(enclave, item, policies))
      if (made % 1000 === 0 && made > 0) say(`${made} of ${most}`)
    }
    return [...faults, ...(await signApproved(enclave, vaults, session))]
  })

/** What has an approval must be signed, or refusals prove nothing. */
async function signApproved(
  enclave: Parameters<typeof askEnclave>[0],
  vaults: Vaults,
  session: Awaited<ReturnType<typeof readSession>>,
): Promise<string[]> {
  const outcome = await askEnclave(enclave, toHonestItem(vaults, session), [vaults.vault.text])
  return outcome === SIGNED ? [] : [`what was approved is refused: ${outcome}`]
}

/**
 * Two enclaves with one root secret know nothing of each other. What one refuses the other must refuse, also where each is shown a part:
 * one approval each, the rules in only one of them, the same at the same time.
 */
export const vaultSecondEnclave = (context: AttackContext) =>
  attackVaults(context, async ({ vaults, seen, add }) => {
    const { target, size, random } = context
    const session = await readSession(target, target.alice)
    const own = await readSession(target, target.mallory)
    const { rootSecretFile, oidc, enclaveUrl, satellite } = target.backend
    const second = await startEnclave(
      toEnclaveEnv({ rootSecretFile, oidc, entropyKey: satellite.publicKey, quoteLatencyMs: 5 }),
    )
    const coordinator = createTestCoordinator()
    const enclaves = [enclaveUrl, second.url].map((url) => ({ url, coordinator }))
    const askBoth = (name: string, make: (enclave: number) => { item: object; policies?: readonly string[] }) =>
      Promise.all(
        enclaves.map(async (enclave, index) => {
          const { item, policies } = make(index)
          add(name, await askEnclave(enclave, item, policies))
        }),
      )
    try {
      const tries = listEnclaveTries(vaults, { session, own, random, seen })
      const { twofold } = vaults
      for (let made = 0; made < (size === 'full' ? 1000 : 50); made++) {
        const { name, make } = tries[made % tries.length] as (typeof tries)[number]
        const { item, policies } = make()
        // The second has seen no rules but those that it is sent.
        await askBoth(name, (enclave) => ({ item, ...(enclave === made % 2 && policies && { policies }) }))
        const payment = createLarge(random)
        await askBoth('one approval of two for each enclave', (by) => ({
          item: {
            kind: 'transaction',
            statementVersion: 2,
            ...session,
            witness: createWitness(),
            ...payment,
            keyId: twofold.keyId,
            vault: { policy: twofold.policyHash, approvals: [approve({ digest: payment.digest, vault: twofold, by })] },
          },
          policies: [twofold.text],
        }))
      }
      return (await Promise.all(enclaves.map((enclave) => signApproved(enclave, vaults, session)))).flat()
    } finally {
      await second.kill('SIGKILL')
    }
  })

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

const toBytes = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')

/** The database is copied, used, and put back to the copy. Then its rows are changed, one thing after the other. */
export const vaultOldDatabase = (context: AttackContext) =>
  attackVaults(context, async ({ vaults, as, add }) => {
    const { target, size, random, say } = context
    const { backend } = target
    const { databaseUrl } = backend
    try {
      await backend.stopCoordinator('SIGTERM')
      const copyUrl = await createDatabase(databaseUrl, new URL(databaseUrl).pathname.slice(1))
      await backend.startCoordinator()
      const forgeries = listForgeries(vaults, { random, seen: await signHonestly(as, vaults) })
      for (const [edit, change] of Object.entries(EDITS)) {
        say(edit)
        await backend.stopCoordinator('SIGTERM')
        const { query, close } = await openQuery(copyUrl)
        for (const table of ['wallets', 'policies']) await query(`alter table ${table} disable trigger all`)
        // One wallet for each policy: the one that has it is in the way.
        await query('delete from wallets where address = $1', [toBytes(vaults.open.address)])
        await change(query, vaults).finally(close)
        await backend.startCoordinator({ DATABASE_URL: copyUrl })
        for (let made = 0; made < (size === 'full' ? 250 : 40); made++) {
          const { name, forge } = forgeries[made % forgeries.length] as (typeof forgeries)[number]
          const payment = createLarge(random)
          const approvals = forge(payment.digest)
          const outcome = await callSign(as, { ...payment, wallet: vaults.vault.address, approvals })
          add(`${edit}: ${name}`, outcome)
        }
        if (edit === 'as it was before') await signHonestly(as, vaults, 1)
      }
      return []
    } finally {
      await backend.stopCoordinator('SIGTERM')
      await backend.startCoordinator()
    }
  })
