import { checkApprovals, checkPolicy, hashApprovals, hashPolicy, parsePolicy, toPolicyBytes } from '@countersign/policy'
import { type Approval, fromHex, parseStrictJson, toHex } from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { createPasskey } from '../../packages/policy/test/passkey.ts'
import { budgeted, full, limited, passkeys, scheduled } from '../../packages/policy/test/policies.ts'
import type { Subject } from './subject.ts'

const NOW = Date.parse('2026-06-15T00:00:00Z')
const MAX_LENGTH = 65_536

/** Policies and approvals, as callers of the service send them. */
export function createVaultSubjects(): Subject[] {
  const txMetadata = createTx(0, { chainId: 1 })
  const digest = fromHex(toDigest(txMetadata).slice(2))
  const request = {
    vaultAddress: `0x${'5a'.repeat(20)}`,
    policyHash: hashPolicy(limited),
    rule: 0,
    kind: 'transaction',
    digest,
  } as const
  const passkey = passkeys.find(({ approver }) => approver.publicKey === limited.approvers[0]?.publicKey)
  const approval = (passkey ?? createPasskey({ seed: 1, rpId: 'vault.example' })).approve(
    { ...request, expiresMs: NOW + 60_000 },
    0,
  )
  // Accepts every signature, so that all parts of an approval are parsed.
  const deps = { verifyEs256: () => true, verifyEd25519: () => true }
  const check = (approvals: unknown) =>
    checkApprovals(deps, { policy: limited, ...request, approvals, required: 1, nowMs: NOW })
  if (!check([approval]).valid) throw new Error('the valid approval is rejected')
  const write = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

  return [
    {
      name: 'policy',
      parse(bytes) {
        // A parsed policy must also be checkable.
        checkPolicy(parsePolicy(bytes), { kind: 'transaction', txMetadata })
      },
      seeds: [limited, full, scheduled, budgeted].map(toPolicyBytes),
    },
    {
      name: 'approvals',
      parse(bytes) {
        const approvals = parseStrictJson(bytes, { maxLength: MAX_LENGTH })
        check(approvals)
        hashApprovals(approvals as Approval[])
      },
      seeds: [write([approval]), write([approval, { ...approval, approver: 1 }])],
    },
    {
      name: 'client data',
      parse: (bytes) => check([{ ...approval, clientDataJSON: toHex(bytes) }]),
      seeds: [fromHex(approval.clientDataJSON)],
    },
    {
      name: 'DER signature',
      parse: (bytes) => check([{ ...approval, signature: toHex(bytes) }]),
      seeds: [fromHex(approval.signature)],
    },
  ]
}
