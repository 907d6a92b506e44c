import { type Approval, enclavePaths, type SignItem, type SignItemsResponse } from '@countersign/protocol'
import { callEnclave, type TestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import type { Choices } from '../createChoices.ts'
import { createLarge, SIGNED } from './callSign.ts'
import { listForgeries } from './forgeApprovals.ts'
import {
  type AttackedVault,
  approve,
  createPayment,
  findLargeRule,
  largeRule,
  smallRule,
  THRESHOLD_WEI,
  type Vaults,
} from './setUpVaults.ts'

export type Session = { sid: string; grant: string }

/** An item that must not be signed, and policies to send with it. */
export type EnclaveAttempt = { name: string; make(): { item: SignItem | object; policies?: readonly string[] } }

/** How far a sample's time may be ahead of the clock. */
const TOLERANCE_MS = 65_000

/** Requests that an operator's own code can send to the enclave, with the sessions of the vault's owner and of another user. */
export function listEnclaveAttempts(
  vaults: Vaults,
  parameters: { session: Session; own: Session; random: Choices; seen: readonly Approval[] },
): EnclaveAttempt[] {
  const { session, own, random, seen } = parameters
  const { vault, twin, open, twofold, scheduled } = vaults
  const large = () => createLarge(random)
  type Use = Pick<AttackedVault, 'keyId' | 'policyHash' | 'policy'>
  const toUse = (
    { keyId, policyHash, policy }: Use,
    approvals?: readonly Approval[],
    rule = findLargeRule(policy),
  ) => ({
    keyId,
    vault: { policy: policyHash, rule, ...(approvals && { approvals }) },
  })
  const toItem = (use: object, payment = large()) => ({
    kind: 'transaction',
    statementVersion: 2,
    ...session,
    witness: createWitness(),
    ...payment,
    ...use,
  })
  const policies = [vault.text]
  const forged = listForgeries(vaults, { random, seen }).map(
    ({ name, forge }): EnclaveAttempt => ({
      name,
      make() {
        const payment = large()
        return { item: toItem(toUse(vault, forge(payment.digest)), payment), policies }
      },
    }),
  )
  const one = (name: string, item: () => object, texts: readonly string[] = policies): EnclaveAttempt => ({
    name,
    make: () => ({ item: item(), policies: texts }),
  })
  return [
    ...forged,
    one('other rules sent for the known address', () => toItem(toUse(vault)), [open.text]),
    one('other rules sent for the known address, by their index', () => {
      return toItem(toUse(vault, undefined, findLargeRule(open.policy)))
    }, [open.text]),
    one('the rule for small payments', () => toItem(toUse(vault, undefined, smallRule))),
    one('a rule that the policy lacks', () => toItem(toUse(vault, undefined, vault.policy.rules.length))),
    one('no rule named', () => toItem({ keyId: vault.keyId, vault: { policy: vault.policyHash } })),
    one('a stamp in a session without a client key', () => {
      return { ...toItem(toUse(vault)), stamp: { issuedMs: Date.now(), signature: '77'.repeat(64) } }
    }),
    one('no rules sent', () => toItem(toUse(vault)), []),
    one('the key of the vault under other rules', () => toItem(toUse({ ...open, keyId: vault.keyId })), [open.text]),
    one("the key of the vault as a wallet's key", () => toItem({ keyId: vault.keyId })),
    one('a policy that is not canonical', () => toItem(toUse(vault)), [` ${vault.text}`]),
    one('the session of another owner', () => toItem({ ...toUse(vault), ...own })),
    one("another owner's session and vault", () => toItem({ ...toUse({ ...twin, keyId: vault.keyId }), ...own })),
    one('the grant of another session', () => toItem({ ...toUse(vault), grant: own.grant })),
    one('a grant with one changed character', () =>
      toItem({ ...toUse(vault), grant: changeText(session.grant, random) }),
    ),
    one('a statement of version 1', () => toItem({ ...toUse(vault), statementVersion: 1 })),
    one('the digest of another payment', () => ({ ...toItem(toUse(vault)), txMetadata: createPayment(1n).txMetadata })),
    one('approvals of another payment', () => {
      const small = createPayment(THRESHOLD_WEI)
      return toItem(toUse(vault, [approve({ vault, digest: small.digest })]))
    }),
    one('one approval of two', () => {
      const payment = large()
      const approvals = [approve({ vault: twofold, digest: payment.digest, by: random.below(2) })]
      return toItem(toUse(twofold, approvals), payment)
    }, [twofold.text]),
    one('before the schedule starts', () => toItem(toUse(scheduled)), [scheduled.text]),
    one('before the schedule starts, with a sample from the future', () => {
      const witness = createWitness(Date.now() + TOLERANCE_MS + random.below(2 * 86_400_000))
      return toItem({ ...toUse(scheduled), witness })
    }, [scheduled.text]),
    one('code for the account', () => {
      const authorization = { chainId: 1, address: `0x${'77'.repeat(20)}`, nonce: random.below(1000) }
      return { kind: 'authorization', ...session, ...toUse(vault), witness: createWitness(), authorization }
    }),
    one('a message', () => {
      return { kind: 'message', ...session, ...toUse(vault), witness: createWitness(), content: { message: '0x00' } }
    }),
  ]
}

function changeText(text: string, random: Choices): string {
  const at = random.below(text.length)
  return text.slice(0, at) + (text.charAt(at) === 'A' ? 'B' : 'A') + text.slice(at + 1)
}

/** Sends a request to an enclave as a coordinator with its own code. Returns `signed` or the error. */
export async function callSignItems(
  { url, coordinator }: { url: string; coordinator: TestCoordinator },
  item: object,
  policies: readonly string[] = [],
): Promise<string> {
  const request = { items: [item], ...(policies.length > 0 && { policies }) }
  const { status, body } = await callEnclave(url, coordinator, enclavePaths.sign, request)
  if (status !== 200) return `status ${status}`
  const [result] = (body as SignItemsResponse).results
  return result === undefined ? 'no result' : 'error' in result ? result.error : SIGNED
}

/** An honest request: above the threshold, with an approval. */
export function toHonestItem({ vault }: Vaults, session: Session, payment = createPayment(THRESHOLD_WEI + 1n)) {
  const approvals = [approve({ vault, digest: payment.digest })]
  const use = { keyId: vault.keyId, vault: { policy: vault.policyHash, rule: largeRule, approvals } }
  return { kind: 'transaction', statementVersion: 2, ...session, witness: createWitness(), ...payment, ...use }
}
