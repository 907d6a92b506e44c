import { hash } from 'node:crypto'
import { createPolicy, hashApprovals, hashPolicy, type TimedSample } from '@countersign/policy'
import {
  type Approval,
  assertOpening,
  assertStatementV2,
  computeCommitment,
  fromHex,
  hashLeaf,
  hashMessage,
  hashOwner,
  hashSubject,
  hashTypedData,
  type Opening,
  type SignItem,
  toHex,
  type VaultUse,
} from '@countersign/protocol'
import { recoverAddress } from 'viem'
import { describe, expect, test } from 'vitest'
import {
  agent,
  beacon,
  budgeted,
  full,
  limited,
  satellite,
  scheduled,
} from '../../../../packages/policy/test/policies.ts'
import { tryVaults } from '../../fuzz/randomVaults.ts'
import { permit } from '../../test/typedData.ts'
import {
  approve,
  createVault,
  implementation,
  keyring,
  large,
  now,
  openSession,
  payment,
  SESSION_MS,
  sign,
  type TestVault,
  toTransaction,
} from '../../test/vault.ts'
import type { SignedItem } from '../sign/signItem.ts'

type SignedV2 = Extract<SignedItem, { subject: unknown }>

const owner = openSession('alice')
const vault = createVault(owner)
const rules = { policy: vault.text }
const withoutLog = createPolicy({ ...full, log: null })
const lax = createVault(owner, withoutLog)

/** The item with approvals, each for this item by default. */
function approved<Item extends SignItem & { vault: VaultUse }>(item: Item, ...approvals: Approval[]): Item {
  return { ...item, vault: { ...item.vault, approvals } }
}
const largeItem = toTransaction(vault, large)
const approval = approve(vault, { digest: largeItem.digest })

/** The common content of a vault's statements. */
function signVault(item: SignItem, { policy }: { policy: string }, of: TestVault): SignedV2 {
  const signed = sign(item, { policy }) as SignedV2
  expect(() => assertStatementV2(signed.statement)).not.toThrow()
  const approvals = item.vault?.approvals
  expect(signed.statement).toMatchObject({
    keyId: of.keyId,
    address: of.address,
    policy: of.hash,
    approvals: approvals === undefined ? null : toHex(hashApprovals(approvals)),
    subject: toHex(hashSubject(signed.subject)),
  })
  expect(toHex(signed.leaf)).toBe(toHex(hashLeaf(signed.statement)))
  return signed
}

describe('a vault signs what its rules allow', () => {
  test('a payment within the limit, with its own key', async () => {
    const item = toTransaction(vault, payment)
    const { subject } = signVault(item, rules, vault)
    const { signature, from } = subject as { signature: `0x${string}`; from: string }
    expect(from).toBe(vault.address)
    expect((await recoverAddress({ hash: item.digest, signature })).toLowerCase()).toBe(vault.address)
  })

  test('one above it, with one or two approvals', () => {
    signVault(approved(largeItem, approval), rules, vault)
    signVault(approved(largeItem, approval, approve(vault, { digest: largeItem.digest, approver: 1 })), rules, vault)
  })

  test('treats an empty list of approvals as none', () => {
    const signed = sign(approved(toTransaction(vault, payment)), rules) as SignedV2
    expect(signed.statement).toMatchObject({ approvals: null })
    expect(sign(approved(largeItem), rules)).toEqual({ error: 'approvals_missing', missing: 1 })
  })

  test.each([
    ['message', { message: '0x6869' }, hashMessage('0x6869')],
    ['typed-data', { ...permit, domain: { name: 'Mail' } }, undefined],
  ] as const)('a %s, with the approvals in its opening', (kind, content, hashed) => {
    const digest = `0x${toHex(hashed ?? hashTypedData(content as never))}`
    const rule = lax.policy.rules.findIndex((each) => each.kind === kind)
    const use = { ...lax.granted, vault: { ...lax.granted.vault, rule } }
    const item = { ...use, kind, content } as SignItem & { vault: VaultUse }
    const approvals = [0, 1, 2].map((approver) => approve(lax, { digest, kind, approver }))
    const { opening, subject, statement } = signVault(approved(item, ...approvals), { policy: lax.text }, lax)
    expect(statement.kind).toBe('off-chain')
    expect(() => assertOpening(opening)).not.toThrow()
    expect(opening).toMatchObject({ content: { kind, digest, approvals } })
    expect(subject).toEqual({ commitment: toHex(computeCommitment(opening as Opening)) })
  })
})

describe('approvals: no signature', () => {
  const other = createVault(owner, createPolicy({ ...limited, approvers: withoutLog.approvers }))
  const bobs = createVault(openSession('bob'))
  const { digest } = largeItem
  const flip = (hex: string, at: number) => `${hex.slice(0, at)}${hex[at] === '0' ? '1' : '0'}${hex.slice(at + 1)}`
  const good = approve(vault, { digest, approver: 1 })

  test('a stolen session without approvals', () => {
    expect(sign(largeItem, rules)).toEqual({ error: 'approvals_missing', missing: 1 })
  })

  test.each<[string, Approval[], number, string]>([
    ['of another digest', [approve(vault, { digest: toTransaction(vault, payment).digest })], 0, 'challenge_mismatch'],
    ['of another kind', [approve(vault, { digest, kind: 'message' })], 0, 'challenge_mismatch'],
    ['of another rule', [approve(vault, { digest, rule: 1 - largeItem.vault.rule })], 0, 'challenge_mismatch'],
    ['of another policy', [approve({ ...vault, hash: other.hash }, { digest })], 0, 'challenge_mismatch'],
    ['of another vault', [approve({ ...vault, address: other.address }, { digest })], 0, 'challenge_mismatch'],
    ['of another user’s vault with the same policy', [approve(bobs, { digest })], 0, 'challenge_mismatch'],
    ['of the wallet', [approve({ ...vault, address: owner.address }, { digest })], 0, 'challenge_mismatch'],
    ['with another expiry', [{ ...approval, expiresMs: approval.expiresMs + 1 }], 0, 'challenge_mismatch'],
    ['that has expired', [approve(vault, { digest, expiresMs: now })], 0, 'approval_expired'],
    ['for too long', [approve(vault, { digest, expiresMs: now + 86_400_001 })], 0, 'approval_too_long'],
    [
      'with an unpaired surrogate in an ignored member',
      [approve(vault, { digest, changes: { clientDataText: (text) => text.replace('}', ',"more":"\\ud800"}') } })],
      0,
      'client_data_malformed',
    ],
    ['of an unknown approver', [approve(vault, { digest, approver: 2 })], 0, 'approver_unknown'],
    ['in the name of another', [{ ...approval, approver: 1 }], 0, 'approval_signature_invalid'],
    [
      'with other authenticator data',
      [{ ...approval, authenticatorData: flip(approval.authenticatorData, 73) }],
      0,
      'approval_signature_invalid',
    ],
    ['with another signature', [{ ...approval, signature: good.signature }], 0, 'approval_signature_invalid'],
    ['next to a valid one', [approval, { ...good, signature: approval.signature }], 1, 'approval_signature_invalid'],
  ])('%s', (_, approvals, index, reason) => {
    expect(sign(approved(largeItem, ...approvals), rules)).toEqual({ error: 'approval_invalid', index, reason })
  })

  test('an invalid one where none is needed', () => {
    expect(sign(approved(toTransaction(vault, payment), approval), rules)).toMatchObject({ error: 'approval_invalid' })
  })

  test.each<[string, Approval[]]>([
    ['the same approver twice', [approval, approval]],
    ['approvers in another order', [good, approval]],
  ])('%s', (_, approvals) => {
    expect(sign(approved(largeItem, ...approvals), rules)).toEqual({ error: 'invalid_request' })
  })

  test('the same approval again is only for the same transaction', () => {
    const again = toTransaction(vault, { ...large, nonce: large.nonce + 1 })
    expect(sign(approved(largeItem, approval), rules)).toHaveProperty('statement')
    expect(sign(approved(again, approval), rules)).toMatchObject({ reason: 'challenge_mismatch' })
  })
})

describe('rules: no signature', () => {
  test('rejects what the named rule does not allow, with its reasons', () => {
    const item = toTransaction(vault, { ...large, to: `0x${'99'.repeat(20)}` })
    const { rule } = item.vault
    expect(sign(approved(item, approve(vault, { digest: item.digest })), rules)).toEqual({
      error: 'policy_refused',
      details: { reasons: [], rules: [{ rule, reasons: [{ code: 'recipient_not_allowed' }] }], nearest: rule },
    })
  })

  test('what another rule than the named one allows', () => {
    const { rule: small } = toTransaction(vault, payment).vault
    const { rule: wide } = largeItem.vault
    expect(small).not.toBe(wide)
    // The wider rule needs an approval for a small payment, too.
    expect(sign(toTransaction(vault, payment, wide), rules)).toEqual({ error: 'approvals_missing', missing: 1 })
    expect(sign(approved(toTransaction(vault, large, small), approval), rules)).toEqual({
      error: 'policy_refused',
      details: { reasons: [], rules: [{ rule: small, reasons: [{ code: 'value_above_max' }] }], nearest: small },
    })
  })

  test.each([2, 254, Number.MAX_SAFE_INTEGER, -1])('by rule %d, which the policy lacks', (rule) => {
    expect(sign(toTransaction(vault, payment, rule), rules)).toMatchObject({ error: 'policy_refused' })
  })

  test('without a rule, even if parsing let it through', () => {
    const { rule: _, ...use } = toTransaction(vault, payment).vault
    expect(sign({ ...toTransaction(vault, payment), vault: use }, rules)).toEqual({ error: 'invalid_request' })
  })

  test('a kind without a rule', () => {
    for (const rule of [0, 1, 2]) {
      const use = { ...vault.granted, vault: { ...vault.granted.vault, rule } }
      const item: SignItem = { ...use, kind: 'message', content: { message: '0x6869' } }
      expect(sign(item, rules)).toMatchObject({ error: 'policy_refused' })
    }
  })

  test('an authorization, under any rules, even of code that wallets may delegate to', () => {
    const authorization = { chainId: 1, address: implementation, nonce: 0 }
    const details = { reasons: ['request_malformed'], rules: [], nearest: null }
    for (const one of [vault, lax]) {
      const item: SignItem = { ...one.granted, kind: 'authorization', authorization }
      expect(sign(item, { policy: one.text })).toEqual({ error: 'policy_refused', details })
    }
  })

  test.each<[string, string | undefined, string]>([
    ['without the text', undefined, 'policy_unknown'],
    ['with the text of other rules', lax.text, 'policy_unknown'],
    ['with the text in another spelling', ` ${vault.text}`, 'policy_unknown'],
  ])('%s', (_, policy, error) => {
    expect(sign(toTransaction(vault, payment), policy === undefined ? undefined : { policy })).toEqual({ error })
  })

  test('with rules that require a log', () => {
    const logged = createVault(owner, full)
    expect(sign(toTransaction(logged, payment), { policy: logged.text })).toEqual({ error: 'policy_not_supported' })
  })

  test('with rules that require witnesses that the settings lack', () => {
    const logged = createVault(owner, full)
    const named = full.log?.witnesses ?? []
    const refused = { error: 'policy_not_supported' }
    const trySign = (witnesses: readonly string[]) =>
      sign(toTransaction(logged, payment), { policy: logged.text }, { log: { origins: [], witnesses, quorum: 2 } })
    expect(trySign([])).toEqual(refused)
    expect(trySign([named[1] ?? '', 'cd'.repeat(32), 'ef'.repeat(32)])).toEqual(refused)
    // The required witnesses are included for the release.
    expect(trySign(named.slice(1))).toMatchObject({ needs: full.log, subject: { from: logged.address } })
    const asked = { log: { origins: [], witnesses: named, quorum: 3 } }
    expect(sign({ ...logged.granted, kind: 'address' }, { policy: logged.text }, asked)).toMatchObject({
      needs: full.log,
    })
    expect(sign(toTransaction(vault, payment), { policy: vault.text }, asked)).not.toHaveProperty('needs')
  })

  test('a payment from budgets whose log is not open, while the passkey’s rule still works', () => {
    const counted = createVault(owner, budgeted)
    const log = { origins: [], witnesses: budgeted.log?.witnesses ?? [], quorum: 2 }
    const spend = budgeted.rules.findIndex(({ kind }) => kind === 'spend')
    const other = budgeted.rules.findIndex(({ kind }) => kind === 'transaction')
    const [paid, moved] = [spend, other].map((rule) => toTransaction(counted, payment, rule))
    if (paid === undefined || moved === undefined) throw new Error('a rule is missing')
    const { digest } = paid
    const key = budgeted.approvers.findIndex(({ type }) => type === 'key')
    const request = {
      vaultAddress: counted.address,
      policyHash: hashPolicy(budgeted),
      rule: spend,
      kind: 'transaction',
      digest: fromHex(digest.slice(2)),
      expiresMs: now + 60_000,
    } as const
    const trySign = (item: SignItem) => sign(item, { policy: counted.text }, { log })
    expect(trySign(approved(paid, agent.approve(request, key)))).toEqual({ error: 'budget_unavailable' })
    const passkey = budgeted.approvers.findIndex(({ type }) => type === 'passkey')
    const approval = approve(counted, { digest, rule: other, approver: passkey })
    expect(trySign(approved(moved, approval))).toHaveProperty('statement')
    expect(trySign({ ...counted.granted, kind: 'address' })).toHaveProperty('statement')
  })

  test('with a text that has the hash but is not a policy', () => {
    for (const text of ['{}', `${vault.text} `, vault.text.replace('"version":1', '"version":2')]) {
      const policy = hash('sha256', text, 'hex')
      const { keyId } = keyring.describe({ owner: owner.owner, policy })
      const item = { ...toTransaction(vault, payment), keyId, vault: { policy } }
      expect(sign(item, { policy: text })).toEqual({ error: 'policy_not_supported' })
    }
  })
})

describe('keys', () => {
  test.each<[string, SignItem]>([
    ['a vault’s key without the vault', { ...toTransaction(vault, payment), vault: undefined } as never],
    ['the wallet’s key with a vault', { ...toTransaction(vault, payment), keyId: owner.keyId }],
    ['a vault’s key with another policy', { ...toTransaction(vault, payment), vault: { policy: lax.hash } }],
    ['another user’s vault', { ...toTransaction(vault, payment), keyId: createVault(openSession('bob')).keyId }],
  ])('%s is not used', (_, item) => {
    expect(sign(item, rules)).toEqual({ error: 'key_binding_mismatch' })
    expect(sign({ ...item, kind: 'address' } as SignItem, rules)).toEqual({ error: 'key_binding_mismatch' })
  })

  test('a vault’s statement always has version 2', () => {
    const item = { ...toTransaction(vault, payment), statementVersion: 1 } as const
    expect((sign(item, rules) as SignedItem).statement).toMatchObject({ policy: vault.hash })
  })

  test('the session’s expiry applies to vaults, too', () => {
    expect(sign(approved(largeItem, approval), rules)).toHaveProperty('statement')
    expect(sign(approved(largeItem, approval), rules, { at: now + SESSION_MS })).toEqual({ error: 'session_expired' })
  })
})

describe('addresses', () => {
  test('states addresses of wallets and vaults without signing', () => {
    const own: SignItem = { ...vault.granted, keyId: owner.keyId, vault: undefined, kind: 'address' } as never
    const wallet = sign(own) as SignedV2
    expect(wallet.statement).toMatchObject({ kind: 'address', address: owner.address, policy: null, approvals: null })
    const toCommitment = (keyId: string) => toHex(hashOwner(keyring.openOwner(keyId, owner.identity)))
    expect(wallet.subject).toEqual({ address: owner.address, policy: null, owner: toCommitment(owner.keyId) })
    const stated = signVault({ ...vault.granted, kind: 'address' }, rules, vault)
    expect(stated.subject).toEqual({ address: vault.address, policy: vault.hash, owner: toCommitment(vault.keyId) })
    expect(toCommitment(vault.keyId)).not.toBe(toCommitment(owner.keyId))
    expect(Object.keys(stated).sort()).toEqual(['leaf', 'statement', 'subject'])
  })

  test('states no address of a vault whose rules are unknown or unsupported', () => {
    const logged = createVault(owner, full)
    expect(sign({ ...logged.granted, kind: 'address' })).toEqual({ error: 'policy_unknown' })
    expect(sign({ ...logged.granted, kind: 'address' }, { policy: logged.text })).toEqual({
      error: 'policy_not_supported',
    })
  })
})

describe('a schedule', () => {
  const timed = createVault(owner, scheduled)
  const startsAt = Date.UTC(2027, 0, 1)
  const reasonsOf = (nonce: number, sample: TimedSample | undefined) => {
    const outcome = sign(toTransaction(timed, { ...payment, nonce }), { policy: timed.text, ...(sample && { sample }) })
    return 'details' in outcome ? outcome.details.reasons : outcome
  }

  test('counts nonces by the time of a sample, for any clock', () => {
    for (const source of [satellite, beacon]) {
      expect(reasonsOf(0, { source, timeMs: startsAt })).toHaveProperty('statement')
      expect(reasonsOf(9, { source, timeMs: startsAt })).toHaveProperty('statement')
      expect(reasonsOf(10, { source, timeMs: startsAt + 86_399_999 })).toEqual(['nonce_not_due'])
      expect(reasonsOf(10, { source, timeMs: startsAt + 86_400_000 })).toHaveProperty('statement')
      expect(reasonsOf(0, { source, timeMs: startsAt - 1 })).toEqual(['nonce_not_due'])
    }
  })

  test('states the address only with a sample of a source that counts for it', () => {
    const state = (source?: TimedSample['source']) =>
      sign(
        { ...timed.granted, kind: 'address' },
        { policy: timed.text, ...(source && { sample: { source, timeMs: startsAt } }) },
      )
    for (const source of [satellite, beacon]) expect(state(source)).toHaveProperty('statement')
    const refused = { error: 'policy_not_supported' }
    expect(state({ kind: 'satellite', key: '22'.repeat(32) })).toEqual(refused)
    expect(state()).toEqual(refused)
  })

  test('uses no sample of a source that the policy does not name', () => {
    const source = { kind: 'satellite', key: '22'.repeat(32) } as const
    expect(reasonsOf(0, { source, timeMs: startsAt })).toEqual(['sample_source_not_allowed'])
    expect(reasonsOf(0, { source: { kind: 'unsigned' }, timeMs: startsAt })).toEqual(['sample_source_not_allowed'])
    expect(reasonsOf(0, undefined)).toEqual(['sample_missing'])
  })
})

// `npm run fuzz:vault` tries 10,000.
test('above the threshold, with anything tampered with: no signature', () => {
  const { tries, signed, errors } = tryVaults({ runs: 300, seed: 3 })
  expect({ tries, signed }).toEqual({ tries: 300, signed: 0 })
  expect(errors.size).toBeGreaterThan(5)
})
