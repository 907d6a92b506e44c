import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import {
  type EntropySetting,
  type Hex,
  hashMessage,
  type Opening,
  type PolicyRefusal,
  quicknet,
  type SignedBatch,
  type SignItem,
  type SignItemError,
  toEventHash,
  toHex,
} from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { describe, expect, test } from 'vitest'
import { createPasskey } from '../../../../packages/policy/src/passkey.fake.ts'
import { createSigningEnclave, createTestWalletKey, type SignedItemV2 } from '../../test/signingEnclave.ts'
import { coordinatorErrors } from '../errors.ts'
import { createFakeClock, createFakeEntropy, createFakeLog, createFakeWitness } from '../ports.fake.ts'
import { assertItemSigned, type ExpectedItem } from './checkItem.ts'
import type { SigningRequest } from './request.ts'
import { type SignDeps, signBatch } from './signBatch.ts'
import { createVaultRules } from './vaultRules.ts'

const NOW = Date.parse('2026-06-15T12:00:00.000Z')
const COORDINATOR = 'c0'.repeat(32)
const vaultKey = createTestWalletKey('vault')
const other = createTestWalletKey('other')
const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
const payment = { kind: 'transaction', chainIds: 'any', to: 'any', maxFeeWei: '100000', approvals: 0 } as const
const policy = createPolicy({
  version: 1,
  log: null,
  approvers: [passkey.approver],
  rules: [
    { ...payment, maxValueWei: '1' },
    { ...payment, maxValueWei: '9', approvals: 1 },
  ],
})
const stored = { hash: toHex(hashPolicy(policy)), text: Buffer.from(toPolicyBytes(policy)).toString() }
const approve = (expiresMs: number) => {
  const digest = new Uint8Array(32)
  const { address: vaultAddress } = vaultKey
  return [passkey.approve({ vaultAddress, policyHash: hashPolicy(policy), kind: 'message', digest, expiresMs }, 0)]
}
const approvals = approve(NOW)
const message = { message: '0x68656c6c6f' } as const
const txMetadata = createTx(0)

describe('what the enclave states of a vault', () => {
  const vault = { policy: stored.hash, approvals }
  const granted = { sid: '51'.repeat(32), grant: 'grant', keyId: vaultKey.keyId, vault, witness: createFakeWitness(0) }
  const subject = { address: vaultKey.address, policy: stored.hash }
  const kinds = {
    transaction: {
      item: { kind: 'transaction', statementVersion: 2, ...granted, digest: toDigest(txMetadata), txMetadata },
      digest: toDigest(txMetadata),
    },
    message: {
      item: { kind: 'message', ...granted, content: message },
      digest: `0x${toHex(hashMessage(message.message))}`,
    },
    address: {
      item: { kind: 'address', ...granted, vault: { policy: stored.hash } },
      digest: toEventHash({ kind: 'address', subject }),
    },
  } as const satisfies Record<string, { item: SignItem; digest: Hex }>
  const names = Object.keys(kinds) as (keyof typeof kinds)[]

  async function sign(kind: keyof typeof kinds, lie: (signed: SignedItemV2) => object = () => ({})) {
    const clock = { now: () => NOW }
    const enclave = createSigningEnclave({ clock, coordinatorKey: COORDINATOR, wallets: [vaultKey, other] })
    enclave.stateV2 = (signed) => ({ ...signed, ...lie(signed as SignedItemV2) })
    const { item, digest } = kinds[kind]
    const { batches, results } = await enclave.signItems([item])
    const call = { beganAt: NOW, endedAt: NOW }
    const expected: ExpectedItem = { item, digest, address: vaultKey.address, coordinatorKey: COORDINATOR, call }
    return assertItemSigned(expected, results[0] as SignedItemV2, batches[0] as SignedBatch)
  }

  test('of a transaction is kept with its approvals; of a message without, since they are in its opening', async () => {
    expect((await sign('transaction')).stated).toMatchObject({ version: 2, approvals })
    const { stated, opening } = await sign('message')
    expect(stated).not.toHaveProperty('approvals')
    expect(opening?.content).toMatchObject({ approvals })
    expect(JSON.stringify(stated)).not.toContain(approvals[0]?.clientDataJSON)
  })

  test('of an address is the address with the hash of its rules, and claims no signature', async () => {
    const { stated, claim } = await sign('address')
    expect(stated).toMatchObject({ signed: { kind: 'address', subject } })
    expect(claim).toBeUndefined()
  })

  const lies: [string, (signed: SignedItemV2) => object][] = [
    ['no policy', () => ({ policy: null })],
    ['another policy', () => ({ policy: 'ab'.repeat(32) })],
    ['other approvals', () => ({ approvals: 'ab'.repeat(32) })],
    ['another wallet', () => ({ keyId: other.keyId, address: other.address, publicKey: toHex(other.publicKey) })],
    ['another key id', () => ({ keyId: other.keyId })],
  ]
  const invalid = expect.objectContaining({ code: 'attestation_invalid' })
  describe.each(names)('a %s', (kind) => {
    test.each(lies)('stated with %s is refused', async (_, lie) => {
      const change = (signed: SignedItemV2) => ({ statement: { ...signed.statement, ...lie(signed) } })
      await expect(sign(kind, change)).rejects.toEqual(invalid)
    })
  })

  test.each(['transaction', 'message'] as const)('a %s stated without the approvals is refused', async (kind) => {
    const change = (signed: SignedItemV2) => ({ statement: { ...signed.statement, approvals: null } })
    await expect(sign(kind, change)).rejects.toEqual(invalid)
  })

  test('an address stated with the key of another is refused', async () => {
    const publicKey = toHex(other.publicKey)
    const change = (signed: SignedItemV2) => ({ statement: { ...signed.statement, publicKey } })
    await expect(sign('address', change)).rejects.toEqual(invalid)
  })

  test.each([
    ['without approvals', undefined],
    ['with others', approve(NOW + 1)],
  ])('a message whose opening is %s is refused', async (_, given) => {
    const change = ({ opening }: SignedItemV2) => {
      const { content, signature } = opening as Exclude<Opening, string> & { content: object }
      const { approvals: _, ...rest } = content as { approvals: unknown }
      return { opening: { content: { ...rest, ...(given && { approvals: given }) }, signature } }
    }
    await expect(sign('message', change)).rejects.toEqual(invalid)
  })
})

describe('an enclave that does not know a policy', () => {
  const request = (
    nonce: number,
    vault: SigningRequest['vault'] = { policy: stored, rules: policy },
  ): SigningRequest => {
    const txMetadata = createTx(nonce)
    const asked = { kind: 'transaction', digest: toDigest(txMetadata), txMetadata } as const
    const { keyId, address } = vaultKey
    return { sid: '51'.repeat(32), grant: 'grant', keyId, walletId: 'vault', address, vault, asked }
  }

  /** Answers each call with these errors, in turn. */
  async function run(requests: SigningRequest[], answers: SignItemError[][]) {
    const calls: { items: readonly SignItem[]; policies: readonly string[] | undefined }[] = []
    const entropy = createFakeEntropy()
    const deps = {
      entropy,
      clock: createFakeClock(),
      selfReport: { publicKey: COORDINATOR },
      receiptVersion: 1,
      log: createFakeLog(),
      enclave: {
        async signItems(items: readonly SignItem[], policies?: readonly string[]) {
          calls.push({ items, policies })
          return { batches: [], results: answers[calls.length - 1] ?? [] }
        },
      },
    } as unknown as SignDeps
    const failures = new Map<SigningRequest, { code: string; details?: string }>()
    await signBatch(deps, requests, {
      onSent() {},
      answer: (asked, result) => void failures.set(asked, (result as PromiseRejectedResult).reason),
    })
    return { calls, taken: entropy.taken, failures: requests.map((one) => failures.get(one)) }
  }

  test('is asked once more, with the texts, each once, and the same samples: only about those', async () => {
    const requests = [request(0), request(1), request(2)]
    const { calls, taken, failures } = await run(requests, [
      [{ error: 'policy_unknown' }, { error: 'grant_invalid' }, { error: 'policy_unknown' }],
      [{ error: 'approvals_missing', missing: 2 }, { error: 'policy_unknown' }],
    ])
    expect(calls.map(({ policies }) => policies)).toEqual([undefined, [stored.text]])
    expect(calls[1]?.items).toEqual([calls[0]?.items[0], calls[0]?.items[2]])
    expect(calls[0]?.items[0]).toMatchObject({ statementVersion: 2, vault: { policy: stored.hash } })
    expect(taken).toBe(3)
    expect(failures).toMatchObject([
      { code: 'approvals_missing', details: '2 more approvals are needed' },
      { code: 'grant_invalid' },
      { code: 'enclave_unavailable' },
    ])
  })

  test('lets a due payment be retried if the sample was bought before the due time', async () => {
    const refusal = (rules: PolicyRefusal['rules']) =>
      [
        { error: 'policy_refused', details: { reasons: ['nonce_not_due'], rules, nearest: 0 } },
      ] satisfies SignItemError[]
    const matching = { rule: 1, reasons: [] }
    const early = await run([request(0)], [refusal([{ rule: 0, reasons: [{ code: 'value_above_max' }] }, matching])])
    expect(early.failures).toMatchObject([{ code: 'entropy_unavailable' }])
    expect(coordinatorErrors.entropy_unavailable.retryable).toBe(true)
    const never = await run([request(0)], [refusal([{ rule: 0, reasons: [{ code: 'value_above_max' }] }])])
    expect(never.failures).toMatchObject([{ code: 'policy_refused' }])
  })

  test('what it refuses is told in words', async () => {
    const rules = [{ rule: 0, reasons: [{ code: 'value_above_max' as const }] }]
    const { failures } = await run(
      [request(0), request(1, { policy: stored, rules: policy, approvals }), request(2)],
      [
        [
          { error: 'policy_refused', details: { reasons: ['nonce_not_due'], rules, nearest: 0 } },
          { error: 'approval_invalid', index: 0, reason: 'approval_expired' },
          { error: 'policy_not_supported' },
        ],
      ],
    )
    expect(failures).toMatchObject([
      {
        code: 'policy_refused',
        details: expect.stringMatching(/^The schedule does not allow.* The amount is above/),
        refusal: { reasons: ['nonce_not_due'], rules, nearest: 0 },
      },
      { code: 'approval_invalid', details: 'approvals[0]: approval_expired' },
      { code: 'policy_refused' },
    ])
  })
})

describe('rules before a sample is spent', () => {
  const clock = createFakeClock(NOW)
  const satellite = {
    kind: 'satellite',
    key: '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11',
  } as const
  const scheduled = createPolicy({
    version: 1,
    time: [{ kind: 'drand', ...quicknet }, satellite],
    log: null,
    approvers: [],
    schedule: { startsAtMs: NOW, everyS: 3600, count: 1 },
    rules: [{ ...payment, maxValueWei: '1' }],
  })
  const text = Buffer.from(toPolicyBytes(scheduled)).toString()
  const other = { kind: 'satellite', key: '5a'.repeat(32) } as const
  const rules = createVaultRules({ clock, entropySources: [other, satellite] })
  const ask =
    (nonce: number, by = rules) =>
    () => {
      const txMetadata = createTx(nonce)
      const asked = { kind: 'transaction', digest: toDigest(txMetadata), txMetadata } as const
      const policy = { hash: toHex(hashPolicy(scheduled)), text }
      by.assertAllowed({ vault: { policy, rules: by.read(policy) }, asked })
    }

  test('a schedule is judged by the latest sample that there can be', () => {
    expect(ask(0)).not.toThrow()
    expect(ask(1)).toThrow(expect.objectContaining({ code: 'policy_refused' }))
    clock.advance(3_595_000)
    expect(ask(1)).not.toThrow()
    expect(ask(2)).toThrow(expect.objectContaining({ code: 'policy_refused' }))
  })

  test.each<[string, EntropySetting[]]>([
    ['another satellite', [other]],
    ['a source that does not sign', [{ kind: 'unsigned' }]],
  ])('a schedule is not due by %s, of which alone there are samples', (_, entropySources) => {
    const details = expect.stringContaining('not of a source that the vault names')
    expect(ask(0, createVaultRules({ clock, entropySources }))).toThrow(
      expect.objectContaining({ code: 'policy_refused', details }),
    )
  })

  test('without a vault, and for an address, there are none', () => {
    const asked = { kind: 'address', digest: `0x${'00'.repeat(32)}` } as const
    expect(() => rules.assertAllowed({ asked })).not.toThrow()
    const vault = { policy: { hash: toHex(hashPolicy(scheduled)), text }, rules: scheduled }
    expect(() => rules.assertAllowed({ asked, vault })).not.toThrow()
  })

  test('a policy is parsed once for all requests of its vault', () => {
    const policy = { hash: toHex(hashPolicy(scheduled)), text }
    expect(rules.read(policy)).toEqual(scheduled)
    expect(rules.read({ ...policy })).toBe(rules.read(policy))
  })
})
