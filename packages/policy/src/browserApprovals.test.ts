import { fromHex, type Hex, verifyEd25519 } from '@countersign/protocol'
import { p256 } from '@noble/curves/nist.js'
import { expect, test } from 'vitest'
import vectors from '../vectors/browser-approvals.vectors.json' with { type: 'json' }
import { assertPolicy } from './assertPolicy.ts'
import { checkApprovals, verifyEs256 } from './checkApprovals.ts'
import { fromDerSignature } from './derSignature.ts'

const { policy, approvals, rule, required, nowMs } = vectors
assertPolicy(policy)
const digest = fromHex(vectors.digest.slice(2))
const parameters = {
  policy,
  approvals,
  rule,
  required,
  nowMs,
  digest,
  kind: 'message',
  vaultAddress: vectors.vaultAddress as Hex,
} as const

test('accepts assertions from browsers and their authenticators', () => {
  expect(checkApprovals({ verifyEs256, verifyEd25519 }, parameters)).toEqual({ valid: true })
})

test('rejects them for other requests', () => {
  const other = Uint8Array.from(digest, (byte) => byte ^ 1)
  for (const changes of [{ digest: other }, { kind: 'transaction' }, { nowMs: nowMs + 3_600_000 }] as const) {
    expect(checkApprovals({ verifyEs256, verifyEd25519 }, { ...parameters, ...changes })).toMatchObject({
      valid: false,
      index: 0,
    })
  }
})

test('they include a high s and an unknown member, which are valid', () => {
  const { n } = p256.Point.CURVE()
  for (const { signature } of approvals) {
    const bytes = fromDerSignature(fromHex(signature)) ?? new Uint8Array(64)
    expect(p256.Signature.fromBytes(bytes).s > n / 2n).toBe(true)
  }
  const [first] = approvals.map(({ clientDataJSON }) => JSON.parse(new TextDecoder().decode(fromHex(clientDataJSON))))
  expect(Object.keys(first)).toContain('other_keys_can_be_added_here')
})
