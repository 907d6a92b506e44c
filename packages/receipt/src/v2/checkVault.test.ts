import { createPolicy, hashPolicy, type Policy, toPolicyBytes } from '@countersign/policy'
import {
  type AttestationReceiptV2,
  computeCommitment,
  fromHex,
  type Opening,
  type OwnerOpening,
  type TransactionSubject,
  toCanonicalJson,
  toHex,
  withholdHalf,
} from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { describe, expect, test } from 'vitest'
import { GOLDEN_SIGNED_AT, issueGolden } from '../../spec/createSpecFiles.ts'
import { createVaultTamperings, tamperVault } from '../../spec/tamperedVault.ts'
import { check, detailOf, failures, issue, type Steps, statusOf } from '../../test/checkReceipt.ts'
import {
  type ApproveOptions,
  approved,
  approvedTwice,
  approveWith,
  goldenVaults,
  scheduled,
} from '../../test/vaults.ts'
import { createTranscript, vaultSteps } from '../check/steps.ts'
import { toCid } from '../cid.ts'
import { findRule, type SimulatedAttestation, type SimulatedAttestationOptions } from '../simulator/index.ts'
import { encodeReceiptCar, parseReceiptCar } from './car.ts'
import { checkVault } from './checkVault.ts'

const vaultStatuses = (result: Steps) => vaultSteps.map((id) => statusOf(result, id))

/** The same bytes except for members of the receipt, from a dishonest sender. */
function withMembers(files: SimulatedAttestation, members: object): SimulatedAttestation {
  return { ...files, bytes: toCanonicalJson({ ...JSON.parse(new TextDecoder().decode(files.bytes)), ...members }) }
}

function withoutMember(files: SimulatedAttestation, name: keyof AttestationReceiptV2): SimulatedAttestation {
  const { [name]: _, ...rest } = files.receipt
  return { ...files, bytes: toCanonicalJson(rest) }
}

const honest = await issueGolden({ kind: 'transaction' }, goldenVaults.transaction)
const wallet = await issue({})

/** Only the vault's steps, for a receipt whose statement names these approvals, as from a broken enclave. */
async function runCheck(
  policy: Policy,
  approve: ReturnType<typeof approveWith>,
  subject: Partial<TransactionSubject> = {},
): Promise<Steps> {
  const { receipt } = honest
  if (receipt.kind !== 'transaction') throw new Error('not a transaction')
  const { statement } = receipt.signer
  const block = toPolicyBytes(policy)
  const policyHash = hashPolicy(policy)
  const digest = fromHex(receipt.subject.digestSigned.slice(2))
  const rule = findRule(policy, { transaction: receipt.subject })
  const list = approve({ vaultAddress: statement.address, policyHash, rule, kind: 'transaction', digest })
  const approvals = list.length === 0 ? undefined : list
  const stated = approvals === undefined ? null : toHex(sha256(toCanonicalJson(approvals)))
  const signer = {
    ...receipt.signer,
    statement: { ...statement, policy: toHex(policyHash), approvals: stated, rule },
  }
  const changed = { ...receipt, signer, approvals, policy: toCid(block), subject: { ...receipt.subject, ...subject } }
  const transcript = createTranscript()
  await checkVault(transcript, changed, { block, content: undefined, isLogKnown: true, logged: undefined })
  return transcript
}

describe('an honest receipt of a vault', () => {
  test.each([
    ['transaction', ['pass', 'pass', 'pass']],
    ['scheduled', ['pass', 'pass', 'pass']],
    ['off-chain', ['pass', 'skip', 'skip']],
    ['address', ['pass', undefined, undefined]],
    ['wallet-address', [undefined, undefined, undefined]],
  ] as const)('%s: has the steps of its kind, and the rest as every receipt', async (name, statuses) => {
    const { signing, vault } = goldenVaults[name]
    const result = await check(await issueGolden(signing, { ...(vault && { vault }) }))
    expect(result).toMatchObject({ verdict: 'mock', isKnownCode: true })
    expect(vaultStatuses(result)).toEqual(statuses)
    expect(result.policy).toEqual(vault?.policy)
  })

  test.each(['message', 'typed-data'] as const)('%s: its opening shows that the rules allowed it', async (kind) => {
    const files = await issue({ signing: { kind }, vault: { policy: approved, approve: approveWith(approved) } })
    for (const opening of [files.opening as Opening, withholdHalf(files.opening as Opening, 'signature')]) {
      const result = await check(files, { opening: toCanonicalJson(opening) })
      expect([result.verdict, ...vaultStatuses(result)]).toEqual(['mock', 'pass', 'pass', 'pass'])
    }
    const hidden = withholdHalf(files.opening as Opening, 'content')
    const result = await check(files, { opening: toCanonicalJson(hidden) })
    expect([result.verdict, ...vaultStatuses(result)]).toEqual(['mock', 'pass', 'skip', 'skip'])
    expect(detailOf(result, 'vault-rule')).toContain('Its owner can show it')
  })

  test('the blocks do not reveal off-chain approvers', async () => {
    const vault = { policy: approved, approve: approveWith(approved) }
    const files = await issue({ signing: { kind: 'message' }, vault })
    const { content } = files.opening as Opening
    const [approval] = (typeof content === 'object' && content.approvals) || []
    const { clientDataJSON, signature, authenticatorData } = approval as Record<string, string>
    const all = [files.bytes, ...Object.values(files.blocks)].map((block) => new TextDecoder().decode(block)).join()
    for (const secret of [clientDataJSON, signature, authenticatorData] as string[])
      expect(all.includes(secret)).toBe(false)
  })

  test('extra approvals are checked too', async () => {
    expect(failures(await runCheck(approvedTwice, approveWith(approvedTwice, { by: [0, 1, 2] })))).toEqual([])
    const forged = approveWith(approvedTwice, { by: [2], changes: { rpId: 'evil.example' } })
    const genuine = approveWith(approvedTwice, { by: [0, 1] })
    const result = await runCheck(approvedTwice, (request) => [...genuine(request), ...forged(request)])
    expect(failures(result)).toEqual(['vault-approvals'])
    expect(detailOf(result, 'vault-approvals')).toBe('Approval 3 is invalid: it was given for another domain.')
  })

  test('all blocks fit in one file, which rejects another policy', async () => {
    const parsed = parseReceiptCar(encodeReceiptCar(honest))
    expect(parsed.blocks.policy).toEqual(honest.blocks.policy)
    const other = { ...honest.blocks, policy: toPolicyBytes(scheduled) }
    const withCode = expect.objectContaining({ code: 'car_mismatch' })
    expect(() => parseReceiptCar(encodeReceiptCar({ ...honest, blocks: other }))).toThrow(withCode)
    const both = encodeReceiptCar({ ...wallet, blocks: { ...wallet.blocks, policy: toPolicyBytes(scheduled) } })
    expect(() => parseReceiptCar(both)).toThrow(withCode)
  })
})

describe('the golden receipt of a vault', () => {
  const tamperings = createVaultTamperings(honest)
  test.each(tamperings.map((tampering) => [tampering.name, tampering.step, tampering] as const))(
    '%s is caught by %s',
    async (_, step, tampering) => {
      const result = await check({ ...honest, ...tamperVault(honest, tampering) })
      expect(result.verdict).toBe('failed')
      expect(failures(result)[0]).toBe(step)
    },
  )
})

describe('the policy', () => {
  test('is missing evidence if it is not given', async () => {
    const { policy: _, ...blocks } = honest.blocks
    const result = await check({ ...honest, blocks })
    expect([result.verdict, ...vaultStatuses(result)]).toEqual(['incomplete', 'skip', 'skip', 'skip'])
  })

  test('cannot be replaced by another one that allows as much', async () => {
    const other = toPolicyBytes(createPolicy({ ...approved, approvers: approved.approvers.slice(0, 1) }))
    const given = { ...honest, blocks: { ...honest.blocks, policy: other } }
    const named = withMembers(given, { policy: toCid(other) })
    for (const files of [given, named]) expect(failures(await check(files))).toEqual(['vault-policy'])
  })

  test('and its statement must agree', async () => {
    const policy = toPolicyBytes(approved)
    const stranger = withMembers(wallet, { policy: toCid(policy) })
    expect(failures(await check({ ...stranger, blocks: { ...wallet.blocks, policy } }))).toEqual(['statement'])
    expect(failures(await check(withoutMember(honest, 'policy')))).toEqual(['statement'])
    const { approvals } = honest.receipt
    expect(failures(await check(withMembers(wallet, { approvals })))).toEqual(['statement'])
  })

  test('is rejected for an authorization, in the receipt and in the statement', async () => {
    const authorization = await issue({ signing: { kind: 'authorization' } })
    const { policy } = honest.receipt
    expect(failures(await check(withMembers(authorization, { policy })))).toEqual(['format'])
    const { signer } = authorization.receipt
    const statement = { ...signer.statement, policy: honest.receipt.signer.statement.policy }
    expect(failures(await check(withMembers(authorization, { signer: { ...signer, statement } })))[0]).toBe('statement')
  })

  test('approvals of off-chain kinds and of addresses are rejected in the receipt', async () => {
    const { approvals } = honest.receipt
    for (const kind of ['message', 'address'] as const) {
      const files = await issue({ signing: { kind }, vault: { policy: approved } })
      expect(failures(await check(withMembers(files, { approvals })))).toEqual(['format'])
    }
  })
})

/* From here on, the enclave itself is dishonest or broken. All other steps pass, and only one step fails. */

test('a payment that no rule allows, or without the required approvals, fails by exactly one step', async () => {
  const approve = approveWith(approved)
  const above = await issue({ txMetadata: { value: '2000000000000000001' }, vault: { policy: approved, approve } })
  expect(failures(await check(above))).toEqual(['vault-rule'])
  expect(failures(await check(await issue({ vault: { policy: approved } })))).toEqual(['vault-approvals'])
})

describe('a rule that does not allow the signature', () => {
  const log = createPolicy({
    ...approved,
    log: { witnesses: ['d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'], quorum: 1 },
  })

  test.each<[string, Partial<TransactionSubject>, string, Policy?]>([
    ['amount', { value: '2000000000000000001' }, 'The amount is above the limit'],
    ['recipient', { to: `0x${'ee'.repeat(20)}` }, 'The recipient is not on the list.'],
    ['chain', { chainId: 1 }, 'The chain is not'],
    ['fee', { gas: '10000000' }, 'The fee can be above the limit'],
    ['data', { data: '0x00' }, 'Only payments without data are allowed.'],
    ['an invalid amount', { value: '01' }, 'malformed'],
    ['log', {}, 'The policy requires a log', log],
  ])('%s', async (_, subject, sentence, policy = approved) => {
    const result = await runCheck(policy, approveWith(policy), subject)
    expect(vaultStatuses(result)).toEqual(['pass', 'fail', 'skip'])
    expect(detailOf(result, 'vault-rule')).toContain(sentence)
  })

  const kinds = [{ kind: 'message' }, { kind: 'typed-data' }] as const
  const without = (...kinds: string[]) =>
    createPolicy({ ...approved, rules: approved.rules.filter(({ kind }) => !kinds.includes(kind)) })

  test.each(kinds)('$kind, with a rule only for the other kind: needs the opening', async (signing) => {
    const policy = without(signing.kind)
    const rule = policy.rules.findIndex(({ kind }) => kind !== 'transaction')
    const files = await issue({ signing, vault: { policy, rule, approve: approveWith(policy) } })
    expect(failures(await check(files))).toEqual([])
    const result = await check(files, { opening: toCanonicalJson(files.opening) })
    expect(failures(result)).toEqual(['vault-rule'])
    expect(detailOf(result, 'vault-rule')).toContain('The rule is for another kind of signature.')
  })

  test.each(kinds)('$kind, without a rule for either: fails without an opening too', async (signing) => {
    const policy = without('message', 'typed-data')
    const files = await issue({ signing, vault: { policy, approve: approveWith(policy) } })
    for (const shown of [{}, { opening: toCanonicalJson(files.opening) }]) {
      const result = await check(files, shown)
      expect([result.verdict, ...failures(result)]).toEqual(['failed', 'vault-rule'])
    }
  })
})

describe('the rule in the statement', () => {
  test('is the only one that counts', async () => {
    const approve = approveWith(approved)
    const results = approved.rules.map(async (_, rule) =>
      failures(await check(await issue({ vault: { policy: approved, approve, rule } }))),
    )
    const expected = approved.rules.map((_, rule) =>
      rule === honest.receipt.signer.statement.rule ? [] : ['vault-rule'],
    )
    expect(await Promise.all(results)).toEqual(expected)
    const beyond = await issue({ vault: { policy: approved, approve, rule: approved.rules.length } })
    expect(failures(await check(beyond))).toEqual(['vault-rule'])
  })

  test.each(['message', 'typed-data'] as const)(
    'of %s must exist in the policy, without an opening too',
    async (kind) => {
      const vault = { policy: approved, approve: approveWith(approved), rule: approved.rules.length }
      const files = await issue({ signing: { kind }, vault })
      for (const shown of [{}, { opening: toCanonicalJson(files.opening) }]) {
        const result = await check(files, shown)
        expect([result.verdict, ...failures(result)]).toEqual(['failed', 'vault-rule'])
      }
    },
  )

  test('is there exactly if a vault signed', async () => {
    const change = (files: typeof wallet, rule: number | null) => {
      const { signer } = files.receipt
      return check(withMembers(files, { signer: { ...signer, statement: { ...signer.statement, rule } } }))
    }
    expect(failures(await change(wallet, 0))[0]).toBe('statement')
    expect(failures(await change(honest, null))[0]).toBe('statement')
  })
})

describe('the session in the statement', () => {
  const clientKey = `04${'ab'.repeat(64)}`
  const settings = { sessions: 'bound' } as const

  test.each([
    ['a cookie under settings that allow any', {}, []],
    ['a browser key', { clientKey }, []],
    ['a browser key under settings that require one', { clientKey, settings }, []],
    ['a cookie under settings that require a key', { settings }, ['statement']],
  ])('%s', async (_, options, expected) => {
    expect(failures(await check(await issue(options)))).toEqual(expected)
  })
})

describe('the owner of an address', () => {
  test('is sealed without an opening, and named with it', async () => {
    const files = await issue({ signing: { kind: 'address' } })
    const sealed = await check(files)
    expect([sealed.verdict, statusOf(sealed, 'opening')]).toEqual(['mock', 'skip'])
    const named = await check(files, { opening: toCanonicalJson(files.owner) })
    expect([named.verdict, statusOf(named, 'opening')]).toEqual(['mock', 'pass'])
    expect(detailOf(named, 'opening')).toContain('alice@example.com')
  })

  test.each([
    ['issuer', { issuer: 'https://other.example' }],
    ['subject', { subject: 'bob' }],
    ['e-mail address', { email: 'bob@example.com' }],
    ['missing e-mail address', { email: null }],
  ])('fails with another %s', async (_, change) => {
    const files = await issue({ signing: { kind: 'address' } })
    const { salt, identity } = files.owner as OwnerOpening
    const opening = toCanonicalJson({ salt, identity: { ...identity, ...change } })
    expect(failures(await check(files, { opening }))).toEqual(['opening'])
  })

  test('fails with the opening of another address of the same person', async () => {
    const files = await issue({ signing: { kind: 'address' } })
    const vault = await issue({ signing: { kind: 'address' }, vault: { policy: approved } })
    expect(vault.owner?.identity).toEqual(files.owner?.identity)
    expect(failures(await check(files, { opening: toCanonicalJson(vault.owner) }))).toEqual(['opening'])
  })
})

describe('a schedule', () => {
  const sign = (options: Partial<SimulatedAttestationOptions>) => issue({ vault: { policy: scheduled }, ...options })

  test('is compared with the time of the sample, not of the signing', async () => {
    // One nonce a day, starting 24 hours before. By the time of the sample, 800 ms earlier, the second day's is not due yet.
    const late = await check(await sign({ txMetadata: { nonce: 1 } }))
    expect(failures(late)).toEqual(['vault-rule'])
    expect(detailOf(late, 'vault-rule')).toContain('The schedule does not allow this transaction yet.')
    expect(failures(await check(await sign({ txMetadata: { nonce: 1 }, sampleAgeMs: 0 })))).toEqual([])
  })

  test.each<[string, Partial<SimulatedAttestationOptions>]>([
    ['another satellite', { satelliteSeed: 'evil' }],
    ['a beacon', { isBeacon: true }],
  ])('takes no time from %s, though the settings name it', async (_, options) => {
    const result = await check(await sign(options))
    expect(failures(result)).toEqual(['vault-rule'])
    expect(detailOf(result, 'vault-rule')).toContain('no sample for the time')
  })
})

describe('approvals', () => {
  const expiresMs = GOLDEN_SIGNED_AT.getTime()
  const digest = new Uint8Array(32).fill(1)

  test.each<[string, ApproveOptions, string]>([
    ['of another digest', { request: { digest } }, 'for another signature'],
    ['of another kind', { request: { kind: 'message' } }, 'for another signature'],
    ['of another vault', { request: { vaultAddress: `0x${'11'.repeat(20)}` } }, 'for another signature'],
    ['of another policy', { request: { policyHash: digest } }, 'for another signature'],
    ['that had expired', { expiresMs }, 'it had expired'],
    ['for longer than a day', { expiresMs: expiresMs + 86_400_001 }, 'valid for too long'],
    ['at another origin', { changes: { clientData: { origin: 'https://evil.example' } } }, 'does not name'],
    ['in a frame', { changes: { clientData: { crossOrigin: true } } }, 'another site’s frame'],
    [
      'with an unpaired surrogate in an ignored member',
      { changes: { clientDataText: (text) => text.replace('}', ',"more":"\\ud800"}') } },
      'data is malformed',
    ],
    ['without verifying the user', { changes: { flags: 0x01 } }, 'did not verify'],
    ['that are none', { by: [] }, '1 more is needed'],
  ])('%s', async (_, options, sentence) => {
    const result = await runCheck(approved, approveWith(approved, options))
    expect(vaultStatuses(result)).toEqual(['pass', 'pass', 'fail'])
    expect(detailOf(result, 'vault-approvals')).toContain(sentence)
  })

  test('are valid until the last moment of the day', async () => {
    for (const until of [expiresMs + 1, expiresMs + 86_400_000]) {
      expect(failures(await runCheck(approved, approveWith(approved, { expiresMs: until })))).toEqual([])
    }
  })

  test.each([
    ['too few', [0]],
    ['reordered', [1, 0]],
    ['one twice', [1, 1]],
  ])('%s', async (_, by) => {
    const result = await runCheck(approvedTwice, approveWith(approvedTwice, { by }))
    expect(vaultStatuses(result)).toEqual(['pass', 'pass', 'fail'])
  })

  test('differ from the statement if removed or reordered later', async () => {
    const approve = approveWith(approvedTwice, { by: [0, 1] })
    const files = await issue({ vault: { policy: approvedTwice, approve } })
    const { approvals = [] } = files.receipt
    for (const changed of [
      withoutMember(files, 'approvals'),
      withMembers(files, { approvals: approvals.toReversed() }),
      withMembers(files, { approvals: approvals.slice(0, 1) }),
    ]) {
      expect(failures(await check(changed))).toEqual(['vault-approvals'])
    }
  })

  test('of a message: missing, malformed, of another message', async () => {
    const signing = { kind: 'message' } as const
    const malformed = () => [{ approver: 0 }] as never
    for (const approve of [undefined, malformed, approveWith(approved, { request: { digest } })]) {
      const files = await issue({ signing, vault: { policy: approved, ...(approve && { approve }) } })
      const result = await check(files, { opening: toCanonicalJson(files.opening) })
      expect(failures(result)).toEqual(['vault-approvals'])
    }
  })

  test.each(['message', 'typed-data'] as const)(
    'of a %s without approvals in the statement: fails without an opening too',
    async (kind) => {
      const files = await issue({ signing: { kind }, vault: { policy: approved } })
      const result = await check(files)
      expect([result.verdict, ...vaultStatuses(result)]).toEqual(['failed', 'pass', 'skip', 'fail'])
      expect(detailOf(result, 'vault-approvals')).toContain('Nobody approved it')
    },
  )

  test('are rejected in the opening of a wallet without rules', async () => {
    const { opening, receipt, ...files } = await issue({ signing: { kind: 'message' } })
    const { content, signature } = opening as Opening
    if (typeof content !== 'object') throw new Error('not shown')
    const changed: Opening = { content: { ...content, approvals: [] }, signature }
    const commitment = toHex(computeCommitment(changed))
    const lying = withMembers({ ...files, receipt, opening: changed }, { subject: { commitment } })
    const result = await check(lying, { opening: toCanonicalJson(changed) })
    expect([statusOf(result, 'opening'), failures(result)[0]]).toEqual(['pass', 'statement'])
  })
})

describe('an address', () => {
  test('rejects another policy or wallet than the statement’s', async () => {
    const files = await issue({ signing: { kind: 'address' }, vault: { policy: approved } })
    const other = await issue({ signing: { kind: 'address' }, vault: { policy: scheduled } })
    const { subject } = files.receipt
    for (const changed of [
      { ...subject, policy: other.receipt.signer.statement.policy },
      { ...subject, policy: null },
      { ...subject, address: other.receipt.signer.statement.address },
    ]) {
      expect(failures(await check(withMembers(files, { subject: changed })))).toEqual(['statement'])
    }
    const { policy } = other.blocks
    const swapped = withMembers(files, { policy: other.receipt.policy })
    expect(failures(await check({ ...swapped, blocks: { ...files.blocks, ...(policy && { policy }) } }))).toEqual([
      'vault-policy',
    ])
  })

  test('accepts no opening', async () => {
    const files = await issue({ signing: { kind: 'address' } })
    expect(failures(await check(files, { opening: toCanonicalJson({}) }))).toEqual(['opening'])
  })
})
