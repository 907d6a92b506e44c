import { createPolicy, hashPolicy } from '@countersign/policy'
import {
  hashAuthorization,
  hashMessage,
  hashTypedData,
  type Opening,
  type SignItem,
  toEventHash,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { describe, expect, test } from 'vitest'
import { createPasskey } from '../../../../packages/policy/test/passkey.ts'
import { createFakeWitness } from '../../test/ports.ts'
import { createSigningEnclave, type SignedItem, type SignedItemV2, TEST_OWNER } from '../../test/signingEnclave.ts'
import { alice, bob, createGrant, createJob, NOW, signJob, vaultKey } from '../../test/signService.ts'
import { assertItemSigned } from './checkItem.ts'
import type { SignContent } from './contents.ts'
import type { SignJob } from './job.ts'

type SignedJob = SignJob<'item' | 'leaf' | 'time'>

const invalid = expect.objectContaining({ code: 'attestation_invalid' })
const COORDINATOR = 'c0'.repeat(32)
const txMetadata = createTx(0)
const message = { message: '0x68656c6c6f' } as const
const typedData = {
  domain: { name: 'Permit', chainId: 1 },
  types: { Permit: [{ name: 'spender', type: 'address' }] },
  primaryType: 'Permit',
  message: { spender: `0x${'Ab'.repeat(20)}` },
}
const authorization = { chainId: 31337, address: `0x${'22'.repeat(20)}` as const, nonce: 3 }
const contents = {
  transaction: { kind: 'transaction', digest: toDigest(txMetadata), txMetadata },
  authorization: { kind: 'authorization', digest: toPrefixedHex(hashAuthorization(authorization)), authorization },
  message: { kind: 'message', digest: toPrefixedHex(hashMessage(message.message)), content: message },
  'typed-data': { kind: 'typed-data', digest: toPrefixedHex(hashTypedData(typedData)), content: typedData },
} as const satisfies Record<string, SignContent>
const granted = createGrant()
const items = {
  transaction: { ...contents.transaction, statementVersion: 2, ...granted },
  authorization: { kind: 'authorization', authorization, ...granted },
  message: { kind: 'message', content: message, ...granted },
  'typed-data': { kind: 'typed-data', content: typedData, ...granted },
} as const satisfies Record<keyof typeof contents, SignItem>
const kinds = Object.keys(items) as (keyof typeof items)[]
const offChain = ['message', 'typed-data'] as const

describe('a statement of version 1', () => {
  /** Two items of one batch, in their places. */
  async function sign() {
    const enclave = createSigningEnclave({
      clock: { now: () => NOW },
      coordinatorKey: COORDINATOR,
      wallets: [alice],
    })
    const item = { ...items.transaction, statementVersion: 1 } as const
    const other = { ...item, txMetadata: createTx(1), digest: toDigest(createTx(1)) }
    const { batches, results } = await enclave.signItems([item, other])
    const { job } = await signJob(createJob(contents.transaction), item)
    const [batch] = batches
    const hash = batch?.leaves[0] ?? ''
    return { job: { ...job, leaf: { ...job.leaf, hash } }, result: results[0] as SignedItem, hashes: batch?.leaves }
  }

  test('returns the statement of an item in its batch', async () => {
    const { job, result } = await sign()
    const { stated } = assertItemSigned(job, result)
    expect(stated).toEqual({ version: 1, statement: result.statement, txMetadata })
  })

  test.each([
    ['changed after quoting', { txHash: `0x${'00'.repeat(32)}` }],
    ['with a member more', { more: 1 }],
    ['with a member less', { txHash: undefined }],
    ['of another type', { type: 'something else' }],
  ])('one %s is refused', async (_, changes) => {
    const { job, result } = await sign()
    const statement = { ...result.statement, ...changes } as typeof result.statement
    expect(() => assertItemSigned(job, { statement })).toThrow(invalid)
  })

  test.each([1, 2])('rejects an item at place %i, which is wrong or missing', async (place) => {
    const { job, result, hashes } = await sign()
    const leaf = { ...job.leaf, hash: hashes?.[place] ?? '' }
    expect(() => assertItemSigned({ ...job, leaf }, result)).toThrow(invalid)
  })

  test.each<[string, (job: SignedJob) => Partial<SignedJob>]>([
    ['digest', ({ item }) => ({ item: { ...item, digest: `0x${'00'.repeat(32)}` } as SignItem })],
    ['key', ({ item }) => ({ item: { ...item, keyId: bob.keyId } })],
    ['sample', ({ item }) => ({ item: { ...item, witness: createFakeWitness(1) } })],
    ['chain', ({ item }) => ({ item: { ...item, txMetadata: { ...txMetadata, chainId: 1 } } as SignItem })],
    ['address', () => ({ address: bob.address })],
    ['coordinator', ({ leaf }) => ({ leaf: { ...leaf, call: { ...leaf.call, coordinatorKey: '00'.repeat(32) } } })],
    ['time', () => ({ time: { signedAtMs: NOW + 1, entryIndex: 0 } })],
  ])('one in the batch about another %s than asked is refused', async (_, change) => {
    const { job, result } = await sign()
    expect(() => assertItemSigned({ ...job, ...change(job) }, result)).toThrow(invalid)
  })

  test('rejects version 2 as version 1, and the other way round', async () => {
    const { job, result } = await sign()
    const next = await signJob(createJob(contents.transaction), items.transaction)
    expect(() => assertItemSigned({ ...job, item: items.transaction }, result)).toThrow(invalid)
    expect(() => assertItemSigned({ ...next.job, item: job.item }, next.result)).toThrow(invalid)
  })
})

describe('a statement of version 2', () => {
  const sign = (kind: keyof typeof items, lie?: (signed: SignedItemV2) => object) =>
    signJob(createJob(contents[kind]), items[kind], lie)

  test.each(kinds)('of a %s returns the stored and the claimed values', async (kind) => {
    const { job, result } = await sign(kind)
    const { stated, claim, opening } = assertItemSigned(job, result)
    expect(stated).toMatchObject({ version: 2, statement: result.statement, signed: { subject: result.subject } })
    expect(claim).toMatchObject({ digest: job.content.digest, address: alice.address })
    expect(opening).toEqual(result.opening)
  })

  test.each(offChain)('of a %s stores nothing of content, digest, signature or salts', async (kind) => {
    const { job, result } = await sign(kind)
    const { stated, claim, opening } = assertItemSigned(job, result)
    const text = JSON.stringify(stated).toLowerCase()
    const { content, signature } = opening as { content: { salt: string }; signature: { salt: string } }
    const private_ = [
      job.content.digest,
      claim?.signature ?? '',
      content.salt,
      signature.salt,
      'abababab',
      '68656c6c6f',
    ]
    for (const part of private_) expect(text).not.toContain(part.replace('0x', ''))
  })

  const lies: [string, (kind: string) => object][] = [
    ['another kind', (kind) => ({ kind: kind === 'transaction' ? 'off-chain' : 'transaction' })],
    ['another key', () => ({ keyId: bob.keyId })],
    ['another address', () => ({ address: bob.address })],
    ['another subject', () => ({ subject: '00'.repeat(32) })],
    ['another sample', () => ({ witness: '00'.repeat(32) })],
    ['another coordinator', () => ({ coordinatorKey: '00'.repeat(32) })],
    ['a policy', () => ({ policy: '00'.repeat(32) })],
    ['the session of a client key', () => ({ session: '00'.repeat(16) })],
    ['approvals', () => ({ approvals: '00'.repeat(32) })],
    ['a time that is long past', () => ({ signedAt: '2025-06-15T12:00:00.000Z' })],
  ]
  test.each(kinds.flatMap((kind) => lies.map(([name, lie]) => [kind, name, lie] as const)))(
    'of a %s, quoted with %s, is refused',
    async (kind, _, lie) => {
      const { job, result } = await sign(kind, ({ statement }) => ({ statement: { ...statement, ...lie(kind) } }))
      expect(() => assertItemSigned(job, result)).toThrow(invalid)
    },
  )

  test.each(kinds)('of a %s is rejected if it was changed after quoting or lacks a part', async (kind) => {
    const { job, result } = await sign(kind)
    const { statement } = result
    const changed = { ...result, statement: { ...statement, publicKey: toHex(bob.publicKey) } }
    expect(() => assertItemSigned(job, changed)).toThrow(invalid)
    expect(() => assertItemSigned(job, { statement } as SignedItemV2)).toThrow(invalid)
  })

  test.each<[string, (opening: Opening) => unknown]>([
    ['with its content withheld', (opening) => ({ ...opening, content: '00'.repeat(32) })],
    ['with its signature withheld', (opening) => ({ ...opening, signature: '00'.repeat(32) })],
    [
      'with another salt',
      (opening) => ({ ...opening, signature: { ...(opening.signature as object), salt: '00'.repeat(32) } }),
    ],
    [
      'of another digest',
      (opening) => ({ ...opening, content: { ...(opening.content as object), digest: `0x${'00'.repeat(32)}` } }),
    ],
    ['with approvals', (opening) => ({ ...opening, content: { ...(opening.content as object), approvals: [] } })],
    ['with a member more', (opening) => ({ ...opening, more: 1 })],
    ['that is missing', () => null],
  ])('an opening %s is refused, and no error repeats it', async (_, change) => {
    for (const kind of offChain) {
      const { job, result } = await sign(kind)
      const opening = change(result.opening as Opening) as Opening
      let thrown: unknown
      try {
        assertItemSigned(job, { ...result, opening })
      } catch (error) {
        thrown = error
      }
      expect(thrown).toEqual(invalid)
      const { message, details, cause } = thrown as { message: string; details: string; cause: unknown }
      expect(`${message} ${details}`).not.toContain(job.content.digest.slice(2))
      expect(cause).toBeUndefined()
    }
  })

  test.each(kinds)('of a %s, signed with a stamp, must name the session of a client key', async (kind) => {
    const item = { ...items[kind], stamp: { issuedMs: NOW, signature: '77'.repeat(64) } }
    const bound = ({ statement }: SignedItemV2) => ({ statement: { ...statement, session: 'ab'.repeat(16) } })
    const { job, result } = await signJob(createJob(contents[kind]), item, bound)
    expect(assertItemSigned(job, result).stated.statement).toMatchObject({ session: 'ab'.repeat(16) })
    const lying = await signJob(createJob(contents[kind]), item)
    expect(() => assertItemSigned(lying.job, lying.result)).toThrow(invalid)
  })

  test('rejects a valid opening of other content', async () => {
    const { job, result } = await sign('message')
    const item = { ...items.message, content: { message: '0x00' } as const }
    expect(() => assertItemSigned({ ...job, item }, result)).toThrow(invalid)
  })
})

describe('statements about a vault', () => {
  const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
  const payment = {
    kind: 'transaction',
    chainIds: 'any',
    to: 'any',
    maxFeeWei: '100000',
    maxValueWei: '9',
    approvers: 'any',
  } as const
  const rules = [{ ...payment, approvals: 1 }]
  const policyHash = hashPolicy(createPolicy({ version: 1, log: null, approvers: [passkey.approver], rules }))
  const policy = toHex(policyHash)
  const approve = (expiresMs: number) => {
    const request = { vaultAddress: vaultKey.address, policyHash, rule: 0, digest: new Uint8Array(32), expiresMs }
    return [passkey.approve({ ...request, kind: 'message' }, 0)]
  }
  const approvals = approve(NOW)
  const use = { ...createGrant(vaultKey), vault: { policy, rule: 0, approvals } }
  const subject = { address: vaultKey.address, policy, owner: TEST_OWNER }
  const vaultItems = {
    transaction: { ...items.transaction, ...use },
    message: { ...items.message, ...use },
    address: { kind: 'address', ...use, vault: { policy } },
  } as const satisfies Record<string, SignItem>
  const vaultContents = {
    ...contents,
    address: { kind: 'address', digest: toEventHash({ kind: 'address', subject }), owner: TEST_OWNER },
  }
  const names = Object.keys(vaultItems) as (keyof typeof vaultItems)[]

  async function sign(kind: keyof typeof vaultItems, lie?: (signed: SignedItemV2) => object) {
    const { job, result } = await signJob(
      createJob(vaultContents[kind] as SignContent, vaultKey),
      vaultItems[kind],
      lie,
    )
    return assertItemSigned(job, result)
  }

  test('a transaction is stored with its approvals; a message’s approvals are in its opening', async () => {
    expect((await sign('transaction')).stated).toMatchObject({ version: 2, approvals })
    const { stated, opening } = await sign('message')
    expect(stated).not.toHaveProperty('approvals')
    expect(opening?.content).toMatchObject({ approvals })
    expect(JSON.stringify(stated)).not.toContain(approvals[0]?.clientDataJSON)
  })

  test('an address is stated with the hash of its rules and claims no signature', async () => {
    const { stated, claim } = await sign('address')
    expect(stated).toMatchObject({ signed: { kind: 'address', subject } })
    expect(claim).toBeUndefined()
  })

  const lies: [string, object][] = [
    ['no policy', { policy: null, rule: null }],
    ['another policy', { policy: 'ab'.repeat(32) }],
    ['other approvals', { approvals: 'ab'.repeat(32) }],
    ['another rule', { rule: 1 }],
    ['the session of a client key', { session: '00'.repeat(16) }],
    ['another wallet', { keyId: bob.keyId, address: bob.address, publicKey: toHex(bob.publicKey) }],
    ['another key id', { keyId: bob.keyId }],
  ]
  test.each(names.flatMap((kind) => lies.map(([name, lie]) => [kind, name, lie] as const)))(
    'a %s stated with %s is refused',
    async (kind, _, lie) => {
      const change = ({ statement }: SignedItemV2) => ({ statement: { ...statement, ...lie } })
      await expect(sign(kind, change)).rejects.toEqual(invalid)
    },
  )

  test.each(['transaction', 'message'] as const)('rejects a %s stated without the approvals', async (kind) => {
    const change = ({ statement }: SignedItemV2) => ({ statement: { ...statement, approvals: null } })
    await expect(sign(kind, change)).rejects.toEqual(invalid)
  })

  test('rejects a transaction stated without the rule', async () => {
    const change = ({ statement }: SignedItemV2) => ({ statement: { ...statement, rule: null } })
    await expect(sign('transaction', change)).rejects.toEqual(invalid)
  })

  test('rejects an address of another owner, as when one user’s call is made in another’s name', async () => {
    const { job, result } = await signJob(createJob(vaultContents.address as SignContent, vaultKey), vaultItems.address)
    expect(() => assertItemSigned(job, result)).not.toThrow()
    const content = { ...vaultContents.address, owner: '0f'.repeat(32) } as SignContent
    expect(() => assertItemSigned({ ...job, content }, result)).toThrow(invalid)
    const without = { ...result, subject: { address: vaultKey.address, policy } } as SignedItemV2
    expect(() => assertItemSigned({ ...job, content }, without)).toThrow(invalid)
  })

  test('rejects an address stated with another wallet’s key', async () => {
    const publicKey = toHex(bob.publicKey)
    const change = ({ statement }: SignedItemV2) => ({ statement: { ...statement, publicKey } })
    await expect(sign('address', change)).rejects.toEqual(invalid)
  })

  test.each([
    ['without approvals', undefined],
    ['with others', approve(NOW + 1)],
  ])('rejects a message whose opening is %s', async (_, given) => {
    const change = ({ opening }: SignedItemV2) => {
      const { content, signature } = opening as Exclude<Opening, string> & { content: object }
      const { approvals: _, ...rest } = content as { approvals: unknown }
      return { opening: { content: { ...rest, ...(given && { approvals: given }) }, signature } }
    }
    await expect(sign('message', change)).rejects.toEqual(invalid)
  })
})
