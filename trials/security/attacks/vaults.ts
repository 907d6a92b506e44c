import type { Approval } from '@countersign/protocol'
import { toEnclaveEnv } from '@countersign/testing/launcher'
import { createTestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { startEnclave } from '../../../services/enclave/test/enclaveProcess.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import { createDatabase, openQuery, type Query } from '../../openQuery.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import { callSign, createLarge, SIGNED, signHonestly, toCaller } from '../vaults/callSign.ts'
import { callSignItems, listEnclaveAttempts, toHonestItem } from '../vaults/enclaveForgeries.ts'
import { listForgeries } from '../vaults/forgeApprovals.ts'
import {
  approve,
  createPayment,
  largeRule,
  readSession,
  setUpVaults,
  smallRule,
  THRESHOLD_WEI,
  type Vaults,
} from '../vaults/setUpVaults.ts'

/* Attacks on vaults. Signing anything above the threshold is a fault. */

const AT_ONCE = 16

type Attempt = {
  context: AttackContext
  vaults: Vaults
  as: Parameters<typeof callSign>[0]
  /** Approvals of payments that were signed. */
  seen: Approval[]
  add(name: string, outcome: string): void
}

/** Sets up vaults, signs honest payments, runs the attack and counts the outcomes. */
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

/** A thief has the owner's session and everything except the passkeys. */
export const vaultStolenSession = (context: AttackContext) =>
  attackVaults(context, async ({ vaults, as, seen, add }) => {
    const { size, random, say } = context
    const { vault, twin, twofold, scheduled } = vaults
    const codes = new Set<string>()
    const typedData = { domain: { name: 'x' }, types: { A: [{ name: 'a', type: 'string' }] }, primaryType: 'A' }
    const forged = listForgeries(vaults, { random, seen }).map(({ name, forge }) => {
      const run = () => {
        const payment = createLarge(random)
        return callSign(as, { ...payment, wallet: vault.address, rule: largeRule, approvals: forge(payment.digest) })
      }
      return [name, run] as const
    })
    /** Attacks other than invalid approvals. */
    const ways: Record<string, () => Promise<string>> = {
      'the metadata of a small payment'() {
        const { digest } = createLarge(random)
        const { txMetadata } = createPayment(THRESHOLD_WEI)
        return callSign(as, { digest, txMetadata, wallet: vault.address, rule: smallRule })
      },
      'the rule for small payments': () =>
        callSign(as, { ...createLarge(random), wallet: vault.address, rule: smallRule }),
      'a rule that the policy lacks': () =>
        callSign(as, { ...createLarge(random), wallet: vault.address, rule: vault.policy.rules.length }),
      'no rule': () => callSign(as, { ...createLarge(random), wallet: vault.address }),
      'the vault of another user': () =>
        callSign(as, { ...createLarge(random), wallet: twin.address, rule: largeRule }),
      'one approval of two'() {
        const payment = createLarge(random)
        const approvals = [approve({ digest: payment.digest, vault: twofold, by: random.below(2) })]
        return callSign(as, { ...payment, wallet: twofold.address, rule: 0, approvals })
      },
      'before its time': () => callSign(as, { ...createLarge(random), wallet: scheduled.address, rule: 0 }),
      'a message': () => callSign(as, { message: '0x00', wallet: vault.address, rule: largeRule }, '/sign/message'),
      'typed data': () =>
        callSign(as, { ...typedData, message: { a: 'b' }, wallet: vault.address, rule: largeRule }, '/sign/typed-data'),
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
    // An internal error is a fault too: a rule must reject the attack.
    const odd = ['internal', 'enclave_unavailable', 'attestation_invalid'].filter((code) => codes.has(code))
    return odd.map((code) => `answered ${code}`)
  })

/** The operator replaces the coordinator's code: it has every session and can send the enclave any request. */
export const vaultOwnCoordinator = (context: AttackContext) =>
  attackVaults(context, async ({ vaults, seen, add }) => {
    const { target, size, random, say } = context
    const session = await readSession(target, target.alice)
    const own = await readSession(target, target.mallory)
    const enclave = { url: target.backend.enclaveUrl, coordinator: createTestCoordinator() }
    const tries = listEnclaveAttempts(vaults, { session, own, random, seen })
    const most = size === 'full' ? 4000 : 200
    const faults = await signApproved(enclave, vaults, session)
    for (let made = 0; made < most; made++) {
      const { name, make } = tries[made % tries.length] as (typeof tries)[number]
      const { item, policies } = make()
      add(name, await callSignItems(enclave, item, policies))
      if (made % 1000 === 0 && made > 0) say(`${made} of ${most}`)
    }
    return [...faults, ...(await signApproved(enclave, vaults, session))]
  })

/** An approved payment must be signed, or rejections prove nothing. */
async function signApproved(
  enclave: Parameters<typeof callSignItems>[0],
  vaults: Vaults,
  session: Awaited<ReturnType<typeof readSession>>,
): Promise<string[]> {
  const outcome = await callSignItems(enclave, toHonestItem(vaults, session), [vaults.vault.text])
  return outcome === SIGNED ? [] : [`approved payment rejected: ${outcome}`]
}

/**
 * Two enclaves with one root secret share no other state. Both must reject what one rejects, even if each gets only a part: one approval
 * each, the rules in only one of them, or the same request at once.
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
    const callBoth = (name: string, make: (enclave: number) => { item: object; policies?: readonly string[] }) =>
      Promise.all(
        enclaves.map(async (enclave, index) => {
          const { item, policies } = make(index)
          add(name, await callSignItems(enclave, item, policies))
        }),
      )
    try {
      const tries = listEnclaveAttempts(vaults, { session, own, random, seen })
      const { twofold } = vaults
      for (let made = 0; made < (size === 'full' ? 1000 : 50); made++) {
        const { name, make } = tries[made % tries.length] as (typeof tries)[number]
        const { item, policies } = make()
        // The other enclave knows only the rules that it was sent.
        await callBoth(name, (enclave) => ({ item, ...(enclave === made % 2 && policies && { policies }) }))
        const payment = createLarge(random)
        await callBoth('one approval of two per enclave', (by) => ({
          item: {
            kind: 'transaction',
            statementVersion: 2,
            ...session,
            witness: createWitness(),
            ...payment,
            keyId: twofold.keyId,
            vault: {
              policy: twofold.policyHash,
              rule: 0,
              approvals: [approve({ digest: payment.digest, vault: twofold, by })],
            },
          },
          policies: [twofold.text],
        }))
      }
      return (await Promise.all(enclaves.map((enclave) => signApproved(enclave, vaults, session)))).flat()
    } finally {
      await second.kill('SIGKILL')
    }
  })

/** Changes to rows by the operator, who can bypass the database's constraints. */
const EDITS: Record<string, (query: Query, vaults: Vaults) => Promise<unknown>> = {
  unchanged: async () => {},
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

/** Copies the database, uses the original, then restores the copy with changed rows, one change after the other. */
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
        // Each policy has at most one wallet, so its wallet must go first.
        await query('delete from wallets where address = $1', [toBytes(vaults.open.address)])
        await change(query, vaults).finally(close)
        await backend.startCoordinator({ DATABASE_URL: copyUrl })
        for (let made = 0; made < (size === 'full' ? 250 : 40); made++) {
          const { name, forge } = forgeries[made % forgeries.length] as (typeof forgeries)[number]
          const payment = createLarge(random)
          const approvals = forge(payment.digest)
          // Changed rows may have other rules.
          const rule = edit === 'unchanged' ? largeRule : random.below(2)
          const outcome = await callSign(as, { ...payment, wallet: vaults.vault.address, rule, approvals })
          add(`${edit}: ${name}`, outcome)
        }
        if (edit === 'unchanged') await signHonestly(as, vaults, 1)
      }
      return []
    } finally {
      await backend.stopCoordinator('SIGTERM')
      await backend.startCoordinator()
    }
  })
