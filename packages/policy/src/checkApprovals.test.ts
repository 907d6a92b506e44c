import { createPublicKey, verify } from 'node:crypto'
import {
  type Approval,
  type ApprovalReason,
  fromHex,
  type Hex,
  type PasskeyApproval,
  toHex,
  verifyEd25519,
} from '@countersign/protocol'
import { p256 } from '@noble/curves/nist.js'
import { describe, expect, test } from 'vitest'
import { createAgent } from '../test/agentKey.ts'
import { type AssertionChanges, createPasskey, toDer } from '../test/passkey.ts'
import { agent, budgeted, full, limited, passkeys } from '../test/policies.ts'
import { hashApprovals } from './approval.ts'
import { hashPolicy } from './assertPolicy.ts'
import {
  checkApprovals,
  MAX_AGENT_APPROVAL_MS,
  MAX_APPROVAL_MS,
  type VerifyEs256,
  verifyEs256,
} from './checkApprovals.ts'
import type { Policy } from './policy.ts'

const { n } = p256.Point.CURVE()
const nowMs = Date.UTC(2027, 0, 1)
const vaultAddress: Hex = `0x${'5a'.repeat(20)}`
const request = {
  vaultAddress,
  policyHash: hashPolicy(full),
  rule: 0,
  kind: 'transaction',
  digest: new Uint8Array(32).fill(0xd1),
  expiresMs: nowMs + 60_000,
} as const

/** The passkey at an index of the policy's approvers, which are sorted by their bytes. */
function passkeyAt(index: number, policy: Policy = full) {
  const passkey = passkeys.find(({ approver }) => approver.publicKey === policy.approvers[index]?.publicKey)
  if (passkey === undefined) throw new Error('no such approver')
  return passkey
}
const approve = (index: number, changes: AssertionChanges = {}, other: Partial<typeof request> = {}): PasskeyApproval =>
  passkeyAt(index).approve({ ...request, ...other }, index, changes)

const good = approve(0)
function check(approvals: unknown, changes: Partial<Parameters<typeof checkApprovals>[1]> = {}) {
  const { rule, kind, digest } = request
  return checkApprovals(
    { verifyEs256, verifyEd25519 },
    { policy: full, vaultAddress, rule, kind, digest, approvals, required: 1, nowMs, ...changes },
  )
}
const toText = (approval: PasskeyApproval) => new TextDecoder().decode(fromHex(approval.clientDataJSON))
const withFlags = (flags: number) => approve(0, { flags })

describe('valid approvals', () => {
  test.each<[string, Approval[], number]>([
    ['one', [good], 1],
    ['two of three', [approve(0), approve(2)], 2],
    ['all three, where two are asked for', [approve(0), approve(1), approve(2)], 2],
    ['none, where none is asked for', [], 0],
    ['one, where none is asked for', [good], 0],
  ])('%s', (_, approvals, required) => {
    expect(check(approvals, { required })).toEqual({ valid: true })
  })

  test.each<[string, AssertionChanges]>([
    ['without crossOrigin', { clientData: { crossOrigin: undefined } }],
    ['with an escaped surrogate pair', { clientDataText: (text) => text.replace('}', ',"more":"\\ud83d\\ude00"}') }],
    ['with the letters of an escape', { clientDataText: (text) => text.replace('}', ',"more":"\\\\ud800"}') }],
    [
      'with members that a browser adds',
      { clientData: { other_keys_can_be_added_here: 'do not compare', tokenBinding: { status: 'supported' } } },
    ],
    [
      'with white space and another order',
      { clientDataText: (text) => JSON.stringify(JSON.parse(text), undefined, 2) },
    ],
    ['of a key that is not backed up', { flags: 0x05 }],
    ['of a key that could be, and is not', { flags: 0x0d }],
    ['with a high s', { signature: ({ r, s }) => toDer({ r, s: s > n / 2n ? s : n - s }) }],
    ['with a low s', { signature: ({ r, s }) => toDer({ r, s: s > n / 2n ? n - s : s }) }],
  ])('an assertion %s', (_, changes) => {
    expect(check([approve(0, changes)])).toEqual({ valid: true })
  })

  test('in the last millisecond before expiry', () => {
    expect(check([good], { nowMs: good.expiresMs - 1 })).toEqual({ valid: true })
  })

  test('up to 86,400 seconds before expiry, and not a millisecond more', () => {
    expect(check([good], { nowMs: good.expiresMs - 86_400_000 })).toEqual({ valid: true })
    const early = { valid: false, reason: 'approval_too_long', index: 0 }
    expect(check([good], { nowMs: good.expiresMs - 86_400_001 })).toEqual(early)
    expect(MAX_APPROVAL_MS / 1000).toBe(86_400)
  })

  test('with node:crypto as with noble', () => {
    const verifyWithNode: VerifyEs256 = (publicKey, signature, message) => {
      const [x, y] = [publicKey.subarray(1, 33), publicKey.subarray(33)].map((part) =>
        Buffer.from(part).toString('base64url'),
      )
      const key = createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x: x as string, y: y as string } })
      return verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
    }
    const { rule, kind, digest } = request
    const deps = { verifyEs256: verifyWithNode, verifyEd25519 }
    const parameters = { policy: full, vaultAddress, rule, kind, digest, required: 1, nowMs }
    expect(checkApprovals(deps, { ...parameters, approvals: [good] })).toEqual({
      valid: true,
    })
    const forged = { ...good, signature: approve(1).signature }
    expect(checkApprovals(deps, { ...parameters, approvals: [forged] })).toMatchObject({
      valid: false,
    })
  })
})

describe('rejected approvals, each signed with one wrong part', () => {
  test.each<[string, Approval, string]>([
    ['another type', approve(0, { clientData: { type: 'webauthn.create' } }), 'client_data_type'],
    ['a payment instead', approve(0, { clientData: { type: 'payment.get' } }), 'client_data_type'],
    ['no type', approve(0, { clientData: { type: undefined } }), 'client_data_type'],
    ['a type that is a list', approve(0, { clientData: { type: ['webauthn.get'] } }), 'client_data_type'],
    ['another challenge', approve(0, { clientData: { challenge: 'A'.repeat(43) } }), 'challenge_mismatch'],
    ['no challenge', approve(0, { clientData: { challenge: undefined } }), 'challenge_mismatch'],
    [
      'padding after the challenge',
      approve(0, { clientDataText: (text) => text.replace(/("challenge":"[^"]*)/, '$1=') }),
      'challenge_mismatch',
    ],
    ['the challenge in the other alphabet', toOtherAlphabet(), 'challenge_mismatch'],
    [
      'bits beyond the last byte of the challenge',
      approve(0, { clientDataText: changeLastDigit }),
      'challenge_mismatch',
    ],
    ['another origin', approve(0, { clientData: { origin: 'https://evil.example' } }), 'origin_not_allowed'],
    [
      'an origin below the listed one',
      approve(0, { clientData: { origin: 'https://a.vault.example' } }),
      'origin_not_allowed',
    ],
    ['the origin over http', approve(0, { clientData: { origin: 'http://vault.example' } }), 'origin_not_allowed'],
    [
      'the origin with a port',
      approve(0, { clientData: { origin: 'https://vault.example:8443' } }),
      'origin_not_allowed',
    ],
    ['no origin', approve(0, { clientData: { origin: undefined } }), 'origin_not_allowed'],
    ['a frame of another site', approve(0, { clientData: { crossOrigin: true } }), 'cross_origin'],
    ['crossOrigin as a text', approve(0, { clientData: { crossOrigin: 'false' } }), 'cross_origin'],
    ['crossOrigin as null', approve(0, { clientData: { crossOrigin: null } }), 'cross_origin'],
    ['a top origin', approve(0, { clientData: { topOrigin: 'https://vault.example' } }), 'cross_origin'],
    ['a top origin of null', approve(0, { clientData: { topOrigin: null } }), 'cross_origin'],
    [
      'the challenge twice',
      approve(0, { clientDataText: (text) => text.replace('{', '{"challenge":"AAAA",') }),
      'client_data_malformed',
    ],
    [
      'the type twice, once escaped',
      approve(0, { clientDataText: (text) => text.replace('}', ',"\\u0074ype":"webauthn.get"}') }),
      'client_data_malformed',
    ],
    [
      'a token binding with an unknown status',
      approve(0, { clientData: { tokenBinding: { status: 'absent' } } }),
      'client_data_malformed',
    ],
    ['a token binding of null', approve(0, { clientData: { tokenBinding: null } }), 'client_data_malformed'],
    [
      'a token binding whose status is a list',
      approve(0, { clientData: { tokenBinding: { status: ['present'] } } }),
      'client_data_malformed',
    ],
    ['client data that is not JSON', approve(0, { clientDataText: (text) => `${text},` }), 'client_data_malformed'],
    [
      'client data with a byte order mark',
      approve(0, { clientDataText: (text) => `\ufeff${text}` }),
      'client_data_malformed',
    ],
    ...['"more":"\\ud800"', '"more":["\\udc00\\ud800"]', '"more":{"a":{"\\uDFFF":1}}'].map(
      (member): [string, Approval, ApprovalReason] => [
        `an unpaired surrogate in an ignored member: ${member}`,
        approve(0, { clientDataText: (text) => text.replace('}', `,${member}}`) }),
        'client_data_malformed',
      ],
    ),
    ['client data that is a list', approve(0, { clientDataText: (text) => `[${text}]` }), 'client_data_malformed'],
    ['client data that is null', approve(0, { clientDataText: () => 'null' }), 'client_data_malformed'],
    ['members on the prototype', approve(0, { clientDataText: (text) => `{"__proto__":${text}}` }), 'client_data_type'],
    ['another domain', approve(0, { rpId: 'evil.example' }), 'rp_id_mismatch'],
    ['the origin instead of the domain', approve(0, { rpId: 'https://vault.example' }), 'rp_id_mismatch'],
    ['user not present', withFlags(0x04), 'user_not_present'],
    ['user not verified', withFlags(0x01), 'user_not_verified'],
    ['no flags', withFlags(0x00), 'user_not_present'],
    ['credential data announced', withFlags(0x05 | 0x40), 'authenticator_data_extended'],
    ['extensions announced', withFlags(0x05 | 0x80), 'authenticator_data_extended'],
    ['backed up, but not eligible', withFlags(0x05 | 0x10), 'backup_state_impossible'],
    ['signed by another approver', { ...approve(1), approver: 0 }, 'approval_signature_invalid'],
    [
      'signed by no approver',
      createPasskey({ seed: 9, rpId: 'vault.example' }).approve(request, 0),
      'approval_signature_invalid',
    ],
    ['for another digest', approve(0, {}, { digest: new Uint8Array(32).fill(0xd2) }), 'challenge_mismatch'],
    ['for a message', approve(0, {}, { kind: 'message' as 'transaction' }), 'challenge_mismatch'],
    ['for typed data', approve(0, {}, { kind: 'typed-data' as 'transaction' }), 'challenge_mismatch'],
    [
      'for another vault of the same policy',
      approve(0, {}, { vaultAddress: `0x${'5b'.repeat(20)}` }),
      'challenge_mismatch',
    ],
    ['for another policy', approve(0, {}, { policyHash: hashPolicy(limited) }), 'challenge_mismatch'],
    ['its end moved after signing', { ...good, expiresMs: good.expiresMs + 1 }, 'challenge_mismatch'],
    ['ended now', approve(0, {}, { expiresMs: nowMs }), 'approval_expired'],
    ['ended long ago', approve(0, {}, { expiresMs: 0 }), 'approval_expired'],
    ['ending a millisecond after 24 hours', approve(0, {}, { expiresMs: nowMs + 86_400_001 }), 'approval_too_long'],
    ['of an approver that is none', { ...good, approver: 3 }, 'approver_unknown'],
    ['an s of zero', approve(0, { signature: ({ r }) => toDer({ r, s: 0n }) }), 'approval_signature_invalid'],
    ['an r of zero', approve(0, { signature: ({ s }) => toDer({ r: 0n, s }) }), 'approval_signature_invalid'],
    ['an s of n', approve(0, { signature: ({ r }) => toDer({ r, s: n }) }), 'approval_signature_invalid'],
    ['r and s exchanged', approve(0, { signature: ({ r, s }) => toDer({ r: s, s: r }) }), 'approval_signature_invalid'],
    [
      'a signature without DER',
      approve(0, { signature: ({ r, s }) => fromHex(toHex64(r) + toHex64(s)) }),
      'approval_signature_invalid',
    ],
    [
      'a counter changed after signing',
      { ...good, authenticatorData: good.authenticatorData.replace(/07$/, '08') },
      'approval_signature_invalid',
    ],
    [
      'white space added after signing',
      { ...good, clientDataJSON: toHex(new TextEncoder().encode(`${toText(good)} `)) },
      'approval_signature_invalid',
    ],
  ])('%s', (_, approval, reason) => {
    expect(check([approval])).toEqual({ valid: false, reason, index: 0 })
    // It also fails next to a valid one, even if one is enough.
    if (approval.approver === 0) expect(check([approval, approve(1)])).toEqual({ valid: false, reason, index: 0 })
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('a time of %s', (time) => {
    expect(check([good], { nowMs: time })).toMatchObject({ valid: false, reason: 'approval_expired' })
  })

  test('replayed for another request of the same vault', () => {
    expect(check([good], { digest: new Uint8Array(32).fill(0xd2) })).toMatchObject({ reason: 'challenge_mismatch' })
    expect(check([good], { kind: 'message' })).toMatchObject({ reason: 'challenge_mismatch' })
    expect(check([good], { vaultAddress: `0x${'5b'.repeat(20)}` })).toMatchObject({ reason: 'challenge_mismatch' })
    expect(check([good], { policy: limited })).toMatchObject({ valid: false })
  })

  test('compared with the policy’s hash, computed here or by the caller, and no other', () => {
    for (const policyHash of [undefined, hashPolicy(full)]) {
      expect(check([good], { policyHash })).toEqual({ valid: true })
    }
    expect(check([good], { policyHash: hashPolicy(limited) })).toMatchObject({ reason: 'challenge_mismatch' })
  })

  test('too few', () => {
    expect(check([], { required: 2 })).toEqual({ valid: false, reason: 'approvals_missing', missing: 2 })
    expect(check([good], { required: 2 })).toEqual({ valid: false, reason: 'approvals_missing', missing: 1 })
    expect(check([good], { required: Number.NaN })).toMatchObject({ valid: false, reason: 'approvals_missing' })
  })

  test.each<[string, unknown]>([
    ['the same approver twice', [good, good]],
    ['the same approver twice, with two assertions', [good, approve(0, { flags: 0x05 })]],
    ['approvers out of order', [approve(1), approve(0)]],
    ['no list', { 0: good }],
    ['nothing', undefined],
    ['null in the list', [null]],
    ['a member more', [{ ...good, credentialId: 'ab' }]],
    ['a member less', [{ ...good, signature: undefined }]],
    ['an approver before the first', [{ ...good, approver: -1 }]],
    ['an approver as a text', [{ ...good, approver: '0' }]],
    ['an approver that every list has', [{ ...good, approver: 'length' }]],
    ['an end that is not an integer', [{ ...good, expiresMs: 0.5 }]],
    ['hex in upper case', [{ ...good, signature: good.signature.toUpperCase() }]],
    ['hex with 0x', [{ ...good, clientDataJSON: `0x${good.clientDataJSON}` }]],
    ['no signature', [{ ...good, signature: '' }]],
    ['bytes after the authenticator data', [approve(0, { extra: new Uint8Array(1) })]],
    ['credential data', [approve(0, { flags: 0x45, extra: new Uint8Array(60) })]],
    ['authenticator data too short', [{ ...good, authenticatorData: good.authenticatorData.slice(2) }]],
    ['client data of more than 2,048 bytes', [approve(0, { clientData: { more: 'x'.repeat(2048) } })]],
    ['a signature of 73 bytes', [{ ...good, signature: '30'.repeat(73) }]],
  ])('a list with %s', (_, approvals) => {
    expect(check(approvals)).toEqual({ valid: false, reason: 'approvals_malformed' })
    expect(() => hashApprovals(approvals as Approval[])).toThrow(
      expect.objectContaining({ name: 'VaultPolicyError', code: 'approvals_malformed' }),
    )
  })

  test('every bit of an assertion counts', () => {
    const flip = (hex: string, bit: number) => {
      const bytes = fromHex(hex)
      bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
      return toHex(bytes)
    }
    // Every bit where the check is fast; fewer where each takes a signature verification.
    const faults = [
      ...Array.from({ length: 37 * 8 }, (_, bit) => ({
        ...good,
        authenticatorData: flip(good.authenticatorData, bit),
      })),
      ...Array.from({ length: Math.floor((good.clientDataJSON.length * 4) / 9) }, (_, step) => ({
        ...good,
        clientDataJSON: flip(good.clientDataJSON, 9 * step),
      })),
      ...Array.from({ length: 64 }, (_, step) => ({
        ...good,
        signature: flip(good.signature, 9 * step),
      })),
    ]
    for (const fault of faults) expect(check([fault])).toMatchObject({ valid: false })
  })
})

// `policy-v1.vectors.json` has approvals for other rules, and by approvers of another type.
describe('approvals by the key of a program', () => {
  const rule = budgeted.rules.findIndex(({ kind }) => kind === 'spend')
  const place = budgeted.approvers.findIndex(({ type }) => type === 'key')
  const asked = { ...request, policyHash: hashPolicy(budgeted), rule }
  const approval = agent.approve(asked, place)
  const checkAgent = (approvals: unknown, changes: Partial<Parameters<typeof checkApprovals>[1]> = {}) =>
    check(approvals, { policy: budgeted, rule, ...changes })
  const flip = (hex: string, bit: number) => {
    const bytes = fromHex(hex)
    bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
    return toHex(bytes)
  }

  test('are valid, and last at most 10 minutes', () => {
    expect(checkAgent([approval])).toEqual({ valid: true })
    expect(checkAgent([approval], { nowMs: approval.expiresMs - 1 })).toEqual({ valid: true })
    expect(checkAgent([approval], { nowMs: approval.expiresMs - 600_000 })).toEqual({ valid: true })
    const early = { valid: false, reason: 'approval_too_long', index: 0 }
    expect(checkAgent([approval], { nowMs: approval.expiresMs - 600_001 })).toEqual(early)
    const late = { valid: false, reason: 'approval_expired', index: 0 }
    expect(checkAgent([approval], { nowMs: approval.expiresMs })).toEqual(late)
    expect(MAX_AGENT_APPROVAL_MS).toBe(600_000)
  })

  test.each<[string, object]>([
    ['another vault', { vaultAddress: `0x${'5b'.repeat(20)}` }],
    ['another policy', { policyHash: hashPolicy(full) }],
    ['another rule', { rule: rule + 1 }],
    ['another kind', { kind: 'typed-data' }],
    ['another digest', { digest: new Uint8Array(32) }],
    ['another expiry', { expiresMs: request.expiresMs - 1 }],
  ])('for %s are rejected', (_, changes) => {
    const other = { ...agent.approve({ ...asked, ...changes }, place), expiresMs: request.expiresMs }
    expect(checkAgent([other])).toEqual({ valid: false, reason: 'approval_signature_invalid', index: 0 })
  })

  test('by another key, or with any bit changed, are rejected', () => {
    const forged = createAgent(10).approve(asked, place)
    const faults = Array.from({ length: 512 }, (_, bit) => ({ ...approval, signature: flip(approval.signature, bit) }))
    for (const one of [forged, ...faults]) {
      expect(checkAgent([one])).toEqual({ valid: false, reason: 'approval_signature_invalid', index: 0 })
    }
  })

  test.each<[string, unknown]>([
    ['a signature of 63 bytes', { ...approval, signature: approval.signature.slice(2) }],
    ['a signature of 65 bytes', { ...approval, signature: `${approval.signature}00` }],
    ['hex in upper case', { ...approval, signature: approval.signature.toUpperCase() }],
    ['a member of a passkey’s approval', { ...approval, clientDataJSON: '7b7d' }],
    ['a type', { ...approval, type: 'key' }],
  ])('with %s are malformed', (_, one) => {
    expect(checkAgent([one])).toEqual({ valid: false, reason: 'approvals_malformed' })
  })

  test('do not count for a rule that does not list the key, or that the policy does not have', () => {
    const other = budgeted.rules.findIndex(({ kind }) => kind === 'transaction')
    for (const one of [other, budgeted.rules.length, -1]) {
      const given = one < 0 ? approval : agent.approve({ ...asked, rule: one }, place)
      expect(checkAgent([given], { rule: one })).toEqual({ valid: false, reason: 'approver_not_allowed', index: 0 })
    }
  })
})

test('the hash of a list covers its canonical JSON', () => {
  expect(toHex(hashApprovals([good]))).not.toBe(toHex(hashApprovals([{ ...good, expiresMs: good.expiresMs + 1 }])))
  const { approver, authenticatorData, clientDataJSON, expiresMs, signature } = good
  expect(hashApprovals([{ signature, expiresMs, clientDataJSON, authenticatorData, approver }])).toEqual(
    hashApprovals([good]),
  )
})

function toHex64(value: bigint): string {
  return value.toString(16).padStart(64, '0')
}

/** In base64url, 32 bytes end with two unused bits. */
function changeLastDigit(text: string): string {
  return text.replace(/("challenge":"[\w-]{42})([\w-])/, (_, head: string, digit: string) => {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    return head + digits.charAt(digits.indexOf(digit) | 1)
  })
}

/** An approval whose challenge has a digit that differs between the alphabets, from the wrong one. */
function toOtherAlphabet(): Approval {
  for (let more = 0; ; more++) {
    const expiresMs = (request.expiresMs + more) as typeof request.expiresMs
    if (!/"challenge":"[^"]*[-_]/.test(toText(approve(0, {}, { expiresMs })))) continue
    const toBase64 = (text: string) =>
      text.replace(/(?<="challenge":")[^"]*/, (value) => value.replaceAll('-', '+').replaceAll('_', '/'))
    return approve(0, { clientDataText: toBase64 }, { expiresMs })
  }
}
