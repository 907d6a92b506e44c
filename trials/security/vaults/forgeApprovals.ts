import type { Approval, Hex } from '@countersign/protocol'
import type { Choices } from '../createChoices.ts'
import { type AttackedVault, approve, createPayment, stranger, THRESHOLD_WEI, type Vaults } from './setUpVaults.ts'

/** Approvals that are none for this digest of this vault. */
export type Forgery = { name: string; forge(digest: Hex): readonly Approval[] | undefined }

/** User present, but not verified. */
const PRESENT_ONLY = 0x01
const DAY_MS = 86_400_000

/**
 * What a thief with the session has in the place of an approval: nothing, approvals of others, of other payments, other vaults and other
 * times, and what can be made of a real one by changing it. `seen` are approvals of payments that were signed.
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
    one('one that was used', () => random.pick(seen)),
    one('of a small payment', () => approve({ vault, digest: createPayment(THRESHOLD_WEI).digest })),
    one('for the vault of another user with the same policy', (digest) =>
      approve({ digest, vault: withRules(twin, vault) }),
    ),
    one('for another vault of the user', (digest) => approve({ digest, vault: withRules(open, open) })),
    one('for other rules of this address', (digest) => approve({ digest, vault: withRules(vault, open) })),
    one('that has ended', (digest) => approve({ digest, vault, expiresMs: Date.now() - 1 - random.below(DAY_MS) })),
    one('for longer than a day', (digest) =>
      approve({ digest, vault, expiresMs: Date.now() + DAY_MS + 60_000 + random.below(DAY_MS) }),
    ),
    one('with another end', (digest) => {
      const approval = approve({ digest, vault })
      return { ...approval, expiresMs: approval.expiresMs + 1 + random.below(1000) }
    }),
    one('of a message', (digest) => approve({ digest, vault, kind: 'message' })),
    one('by a stranger', (digest) => approve({ digest, vault, passkey: stranger })),
    one('as the other approver', (digest) => ({ ...approve({ digest, vault }), approver: 1 })),
    one('as an approver who is none', (digest) => ({ ...approve({ digest, vault }), approver: 2 + random.below(9) })),
    {
      name: 'the same twice, the second as the other',
      forge(digest) {
        const approval = approve({ digest, vault })
        return [approval, { ...approval, approver: 1 }]
      },
    },
    changed('of another page', { clientData: { origin: 'https://evil.example' } }),
    changed('of another site', { rpId: 'evil.example' }),
    changed('inside a frame', { clientData: { crossOrigin: true } }),
    changed('at a registration', { clientData: { type: 'webauthn.create' } }),
    changed('by somebody who was not verified', { flags: PRESENT_ONLY }),
    changed('with two challenges', { clientDataText: (text) => text.replace('{', '{"challenge":"AA",') }),
    one('with a digit changed', (digest) => changeDigit(approve({ digest, vault }), random)),
  ]
}

function changeDigit(approval: Approval, random: Choices): Approval {
  const name = random.pick(['authenticatorData', 'clientDataJSON', 'signature'] as const)
  const at = random.below(approval[name].length)
  const digit = (Number.parseInt(approval[name].charAt(at), 16) ^ (1 + random.below(15))).toString(16)
  return { ...approval, [name]: approval[name].slice(0, at) + digit + approval[name].slice(at + 1) }
}
