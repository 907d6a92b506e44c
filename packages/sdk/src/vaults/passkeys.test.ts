import { checkApprovals, verifyEs256 } from '@countersign/policy'
import { fromHex, verifyEd25519 } from '@countersign/protocol'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bob, type StartedVault, startVault, toFailure, toPolicy } from '../../test/vaults/vaults.ts'
import { createTestPasskeys, type TestPasskeys } from '../testing/testPasskeys.ts'
import { approve } from './approve.ts'
import { createPasskey } from './createPasskey.ts'
import { prepare } from './prepare.ts'
import { type Prepared, parsePrepared } from './prepared.ts'
import { createVault } from './vaultCalls.ts'

describe('createPasskey', () => {
  let authenticator: TestPasskeys
  let uninstall: () => void

  beforeEach(() => {
    authenticator = createTestPasskeys({ origin: 'https://vault.example' })
    uninstall = authenticator.install()
  })
  // In reverse order of the stubs.
  afterEach(() => {
    vi.unstubAllGlobals()
    uninstall()
  })

  test('requests a discoverable ES256 key of this page with user verification', async () => {
    const create = vi.spyOn(navigator.credentials, 'create')
    const { approver, credentialId, transports } = await createPasskey({ name: 'ada@example.com' })
    expect(approver).toMatchObject({ rpId: 'vault.example', origins: ['https://vault.example'] })
    expect(approver.publicKey).toMatch(/^04[0-9a-f]{128}$/)
    expect(authenticator.credentialIds).toContain(credentialId)
    expect(transports).toEqual(['internal'])
    expect(create.mock.calls[0]?.[0]?.publicKey).toMatchObject({
      rp: { id: 'vault.example' },
      pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      attestation: 'none',
    })
  })

  test('rejects with passkey_cancelled if the user closes the dialog; the next one works', async () => {
    authenticator.cancelNext()
    expect((await toFailure(createPasskey({ name: 'ada' }))).code).toBe('passkey_cancelled')
    expect((await createPasskey({ name: 'ada' })).credentialId).toBeTruthy()
  })

  test('rejects with passkey_exists for an excluded passkey', async () => {
    const { credentialId } = await createPasskey({ name: 'ada' })
    const excludeCredentialIds = [credentialId]
    expect((await toFailure(createPasskey({ name: 'ada', excludeCredentialIds }))).code).toBe('passkey_exists')
    expect(authenticator.credentialIds).toEqual([credentialId])
  })

  test('rejects with passkey_failed for another page’s domain', async () => {
    const error = await toFailure(createPasskey({ name: 'ada', rpId: 'other.example' }))
    expect(error).toMatchObject({ code: 'passkey_failed', details: 'SecurityError' })
  })

  test.each([
    ['no WebAuthn', () => vi.stubGlobal('PublicKeyCredential', undefined)],
    ['no page', () => vi.stubGlobal('location', undefined)],
    ['a page without an origin', () => vi.stubGlobal('location', { origin: 'null' })],
  ])('rejects with passkey_unsupported: %s', async (_name, remove) => {
    remove()
    expect((await toFailure(createPasskey({ name: 'ada' }))).code).toBe('passkey_unsupported')
  })

  test.each([
    ['NotSupportedError', 'passkey_unsuitable'],
    ['ConstraintError', 'passkey_unsuitable'],
    ['AbortError', 'passkey_cancelled'],
    ['UnknownError', 'passkey_failed'],
  ])('the browser’s %s becomes %s', async (name, code) => {
    vi.spyOn(navigator.credentials, 'create').mockRejectedValue(new DOMException('no', name))
    expect((await toFailure(createPasskey({ name: 'ada' }))).code).toBe(code)
  })

  const point = `04${'11'.repeat(64)}`
  const prefix = '3059301306072a8648ce3d020106082a8648ce3d030107034200'
  test.each([
    ['another algorithm', -257, prefix + point],
    ['no key', -7, undefined],
    ['a compressed point', -7, `${prefix}02${'11'.repeat(32)}`],
    ['a byte too many', -7, `${prefix}${point}00`],
    ['a byte too few', -7, `${prefix}${point.slice(2)}`],
    ['a point of another curve', -7, `${prefix.replace('0107034200', '0108034200')}${point}`],
  ])('rejects %s', async (_name, algorithm, spki) => {
    const response = {
      getPublicKeyAlgorithm: () => algorithm,
      getPublicKey: () => (spki === undefined ? null : fromHex(spki).buffer),
    }
    vi.spyOn(navigator.credentials, 'create').mockResolvedValue({ id: 'a', response } as never)
    expect((await toFailure(createPasskey({ name: 'ada' }))).code).toBe('passkey_unsuitable')
  })

  test('rejects an id that is not base64url with invalid_request', async () => {
    expect((await toFailure(createPasskey({ name: 'ada', excludeCredentialIds: ['§'] }))).code).toBe('invalid_request')
  })
})

describe('approve', () => {
  let started: StartedVault
  let prepared: Prepared

  beforeEach(async () => {
    started = await startVault()
    prepared = await prepare(started.client, started.vault, { kind: 'transaction', to: bob, value: '1' })
  })
  afterEach(() => {
    vi.unstubAllGlobals()
    started.stop()
  })

  const runCheck = (approval: unknown, changes: object = {}) =>
    checkApprovals(
      { verifyEs256, verifyEd25519 },
      {
        policy: prepared.policy,
        vaultAddress: prepared.address,
        rule: prepared.rule,
        kind: prepared.kind,
        digest: fromHex(prepared.digest.slice(2)),
        approvals: [approval],
        required: 1,
        nowMs: Date.now(),
        ...changes,
      },
    )

  test('needs only the JSON on another device, no session and no service', async () => {
    const text = JSON.stringify(prepared)
    started.service.signOut()
    const before = started.service.requests.length
    const approval = await approve(parsePrepared(text))
    expect(started.service.requests).toHaveLength(before)
    expect(runCheck(approval)).toEqual({ valid: true })
    expect(runCheck(approval, { kind: 'message' })).toMatchObject({ valid: false })
    expect(runCheck(approval, { vaultAddress: bob })).toMatchObject({ valid: false })
  })

  test.each([0, 1] as const)('finds the approver of two: %i', async (index) => {
    const { credentialId, approver } = started.passkeys[index]
    const approval = await approve(prepared, { credentials: [{ credentialId }] })
    expect(prepared.policy.approvers[approval.approver]?.publicKey).toBe(approver.publicKey)
  })

  test('rejects a passkey of this site that is not an approver', async () => {
    const { credentialId, transports } = await createPasskey({ name: 'stranger' })
    const error = await toFailure(approve(prepared, { credentials: [{ credentialId, transports }] }))
    expect(error.code).toBe('passkey_not_approver')
  })

  test('rejects a digest of other content without a dialog', async () => {
    const get = vi.spyOn(navigator.credentials, 'get')
    const other = { ...prepared, digest: `0x${'ab'.repeat(32)}` } as Prepared
    expect((await toFailure(approve(other))).code).toBe('prepared_mismatch')
    expect(get).not.toHaveBeenCalled()
  })

  test.each([
    ['has ended', -1, 'prepared_expired'],
    ['ends more than 24 hours from now', 86_400_000 + 60_000, 'prepared_early'],
  ])('rejects a request that %s without a dialog', async (_, inMs, code) => {
    const get = vi.spyOn(navigator.credentials, 'get')
    expect((await toFailure(approve({ ...prepared, expiresMs: Date.now() + inMs }))).code).toBe(code)
    expect(get).not.toHaveBeenCalled()
  })

  test('names the approvers’ pages if none works on this page', async () => {
    vi.stubGlobal('location', { origin: 'https://elsewhere.example' })
    const error = await toFailure(approve(prepared))
    expect(error).toMatchObject({ code: 'passkey_elsewhere', details: 'open https://vault.example' })
    vi.stubGlobal('location', { origin: 'https://vault.example' })
    expect((await toFailure(approve(prepared, { rpId: 'other.example' }))).code).toBe('passkey_elsewhere')
  })

  test('tries only the approvers of this page', async () => {
    const [one, two] = started.passkeys
    const elsewhere = { ...one.approver, rpId: 'other.example', origins: ['https://other.example'] }
    const above = { ...one.approver, origins: ['https://sub.vault.example'] }
    for (const first of [elsewhere, above]) {
      const vault = await createVault(started.client, toPolicy([{ ...one, approver: first }, two]))
      const mixed = await prepare(started.client, vault, { kind: 'transaction', to: bob, value: '1' })
      const approval = await approve(mixed, { credentials: [two] })
      expect(vault.policy.approvers[approval.approver]?.publicKey).toBe(two.approver.publicKey)
      expect((await toFailure(approve(mixed, { credentials: [one] }))).code).toBe('passkey_not_approver')
    }
  })

  test('accepts only the approvers that the rule lists', async () => {
    const [one, two] = started.passkeys
    const { rules, ...policy } = toPolicy([one, two])
    const listed = rules.map((rule) => (rule.approvals === 1 ? { ...rule, approvers: [1] } : rule)) as typeof rules
    const vault = await createVault(started.client, { ...policy, rules: listed })
    const request = await prepare(started.client, vault, { kind: 'transaction', to: bob, value: '1' })
    const approval = await approve(request, { credentials: [two] })
    expect(vault.policy.approvers[approval.approver]?.publicKey).toBe(two.approver.publicKey)
    expect((await toFailure(approve(request, { credentials: [one] }))).code).toBe('passkey_not_approver')
  })

  test('rejects a vault without approvers', async () => {
    const policy = { ...toPolicy([]), rules: toPolicy([]).rules.slice(0, 1) }
    const vault = await createVault(started.client, policy)
    const open = await prepare(started.client, vault, {
      kind: 'transaction',
      to: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
    })
    expect(open.approvals).toBe(0)
    expect((await toFailure(approve(open))).details).toBe('no passkey can approve this')
  })

  test('rejects with a code if the dialog is closed or the browser returns nothing', async () => {
    started.authenticator.cancelNext()
    expect((await toFailure(approve(prepared))).code).toBe('passkey_cancelled')
    vi.spyOn(navigator.credentials, 'get').mockResolvedValueOnce(null)
    expect((await toFailure(approve(prepared))).code).toBe('passkey_failed')
  })

  test('rejects an assertion that the vault would reject: in another site’s frame', async () => {
    const { get } = navigator.credentials
    vi.spyOn(navigator.credentials, 'get').mockImplementationOnce(async (options) => {
      const { response } = (await get.call(navigator.credentials, options)) as unknown as {
        response: { clientDataJSON: ArrayBuffer }
      }
      const text = new TextDecoder().decode(response.clientDataJSON).replace(':false', ':true')
      return { response: { ...response, clientDataJSON: new TextEncoder().encode(text).buffer } } as never
    })
    const error = await toFailure(approve(prepared))
    expect(error.code).toBe('approval_invalid')
    expect(error.details).toContain('another site’s frame')
  })
})
