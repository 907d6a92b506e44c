import type { Approval, Hex, PasskeyApproval } from '@countersign/protocol'
import type { Choices } from '../createChoices.ts'
import {
  type AttackedVault,
  approve,
  createPayment,
  smallRule,
  THRESHOLD_WEI,
  unknownPasskey,
  type Vaults,
} from './setUpVaults.ts'

/** Approvals that are invalid for this digest and vault. */
export type Forgery = { name: string; forge(digest: Hex): readonly Approval[] | undefined }

/** User present but not verified. */
const PRESENT_ONLY = 0x01
const DAY_MS = 86_400_000

/**
 * Approvals available to a thief with a session: none, those for other users, payments, vaults or times, and modified ones. `seen` contains
 * approvals of signed payments.
 */
export function listForgeries(
  { vault, twin, open }: Vaults,
  { random, seen }: { random: Choices; seen: readonly Approval[] },
): Forgery[] {
  const withRules = ({ address }: AttackedVault, { policyHash }: AttackedVault) => ({
    address,
    policyHash,
    policy: vault.policy,
  })
  const one = (name: string, forge: (digest: Hex) => Approval): Forgery => ({
    name,
    forge: (digest) => [forge(digest)],
  })
  const changed = (name: string, changes: Parameters<typeof approve>[0]['changes']) =>
    one(name, (digest) => approve({ digest, vault, changes: changes ?? {} }))
  return [
    { name: 'none', forge: () => undefined },
    { name: 'an empty list', forge: () => [] },
    one('a used approval', () => random.pick(seen)),
    one('for a small payment', () => approve({ vault, digest: createPayment(THRESHOLD_WEI).digest })),
    one('for the vault of another user with the same policy', (digest) =>
      approve({ digest, vault: withRules(twin, vault) }),
    ),
    one('for another vault of the user', (digest) => approve({ digest, vault: withRules(open, open) })),
    one('for other rules with this address', (digest) => approve({ digest, vault: withRules(vault, open) })),
    one('expired', (digest) => approve({ digest, vault, expiresMs: Date.now() - 1 - random.below(DAY_MS) })),
    one('valid for more than a day', (digest) =>
      approve({ digest, vault, expiresMs: Date.now() + DAY_MS + 60_000 + random.below(DAY_MS) }),
    ),
    one('with a changed expiry', (digest) => {
      const approval = approve({ digest, vault })
      return { ...approval, expiresMs: approval.expiresMs + 1 + random.below(1000) }
    }),
    one('for another rule', (digest) => approve({ digest, vault, rule: smallRule })),
    one('for a message', (digest) => approve({ digest, vault, kind: 'message' })),
    one('by an unknown passkey', (digest) => approve({ digest, vault, passkey: unknownPasskey })),
    one('as the other approver', (digest) => ({ ...approve({ digest, vault }), approver: 1 })),
    one('as an unknown approver', (digest) => ({ ...approve({ digest, vault }), approver: 2 + random.below(9) })),
    {
      name: 'the same approval for both approvers',
      forge(digest) {
        const approval = approve({ digest, vault })
        return [approval, { ...approval, approver: 1 }]
      },
    },
    changed('from another page', { clientData: { origin: 'https://evil.example' } }),
    changed('from another site', { rpId: 'evil.example' }),
    changed('inside a frame', { clientData: { crossOrigin: true } }),
    changed('from a registration', { clientData: { type: 'webauthn.create' } }),
    changed('without user verification', { flags: PRESENT_ONLY }),
    changed('with two challenges', { clientDataText: (text) => text.replace('{', '{"challenge":"AA",') }),
    one('with one changed digit', (digest) => changeDigit(approve({ digest, vault }), random)),
  ]
}

function changeDigit(approval: PasskeyApproval, random: Choices): PasskeyApproval {
  const name = random.pick(['authenticatorData', 'clientDataJSON', 'signature'] as const)
  const at = random.below(approval[name].length)
  const digit = (Number.parseInt(approval[name].charAt(at), 16) ^ (1 + random.below(15))).toString(16)
  return { ...approval, [name]: approval[name].slice(0, at) + digit + approval[name].slice(at + 1) }
}
