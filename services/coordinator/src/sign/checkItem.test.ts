import {
  type Hex,
  hashAuthorization,
  hashMessage,
  hashTypedData,
  type Opening,
  type SignedBatch,
  type SignItem,
  type Statement,
  type TransactionItem,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import type { SignedItem, SignedItemV2 } from '../../test/signingEnclave.ts'
import { createFakeWitness } from '../ports.fake.ts'
import { assertItemSigned, type ExpectedItem } from './checkItem.ts'
import { alice, bob, COORDINATOR, createEnclave, createItem, NOW } from './checks.fake.ts'

describe('a statement of version 1', () => {
  async function sign() {
    const items = [createItem(0), createItem(1), createItem(2, bob)]
    const { batches, results } = await createEnclave().signItems(items)
    return { items, batch: batches[0] as SignedBatch, results: results as SignedItem[] }
  }
  const expected = (item: TransactionItem) => ({
    item,
    digest: item.digest,
    address: alice.address,
    coordinatorKey: COORDINATOR,
    call: { beganAt: NOW, endedAt: NOW },
  })

  test('gives the statement of an item in its batch', async () => {
    const { items, batch, results } = await sign()
    for (const index of [0, 1]) {
      const { statement } = results[index] as SignedItem
      const item = items[index] as TransactionItem
      const { txMetadata } = item
      const { stated } = assertItemSigned(expected(item), results[index] as SignedItem, batch)
      expect(stated).toEqual({ version: 1, statement, txMetadata })
    }
  })

  const invalid = expect.objectContaining({ code: 'attestation_invalid' })
  const withStatement = (changes: Record<string, unknown>) => (result: SignedItem) => ({
    ...result,
    statement: { ...result.statement, ...changes } as Statement,
  })
  test.each<[string, (result: SignedItem) => SignedItem]>([
    ['another place', (result) => ({ ...result, leafIndex: 1 })],
    ['a place outside', (result) => ({ ...result, leafIndex: 3 })],
    ['a statement changed after quoting', withStatement({ txHash: `0x${'00'.repeat(32)}` })],
    ['a statement with a member more', withStatement({ more: 1 })],
    ['a statement with a member less', withStatement({ txHash: undefined })],
    ['a statement of another type', withStatement({ type: 'something else' })],
  ])('%s is refused', async (_, change) => {
    const { items, batch, results } = await sign()
    const result = change(results[0] as SignedItem)
    expect(() => assertItemSigned(expected(items[0] as TransactionItem), result, batch)).toThrow(invalid)
  })

  test.each<[string, (item: TransactionItem) => object]>([
    ['digest', (item) => ({ item: { ...item, digest: `0x${'00'.repeat(32)}` } })],
    ['key', (item) => ({ item: { ...item, keyId: bob.keyId } })],
    ['sample', (item) => ({ item: { ...item, witness: createFakeWitness(1) } })],
    ['chain', (item) => ({ item: { ...item, txMetadata: { ...item.txMetadata, chainId: 1 } } })],
    ['address', () => ({ address: bob.address })],
    ['coordinator', () => ({ coordinatorKey: '00'.repeat(32) })],
  ])('a statement in the batch about another %s than asked is refused', async (_, change) => {
    const { items, batch, results } = await sign()
    const item = items[0] as TransactionItem
    expect(() => assertItemSigned({ ...expected(item), ...change(item) }, results[0] as SignedItem, batch)).toThrow(
      invalid,
    )
  })
})

describe('a statement of version 2', () => {
  const granted = { sid: '51'.repeat(32), grant: 'grant', keyId: alice.keyId, witness: createFakeWitness(0) }
  const message = { message: '0x68656c6c6f' } as const
  const typedData = {
    domain: { name: 'Permit', chainId: 1 },
    types: { Permit: [{ name: 'spender', type: 'address' }] },
    primaryType: 'Permit',
    message: { spender: `0x${'Ab'.repeat(20)}` },
  }
  const authorization = { chainId: 31337, address: `0x${'22'.repeat(20)}` as const, nonce: 3 }
  const { digest } = createItem(0)
  const kinds = {
    transaction: { item: { ...createItem(0), statementVersion: 2 }, digest },
    authorization: {
      item: { kind: 'authorization', ...granted, authorization },
      digest: toPrefixedHex(hashAuthorization(authorization)),
    },
    message: {
      item: { kind: 'message', ...granted, content: message },
      digest: toPrefixedHex(hashMessage(message.message)),
    },
    'typed-data': {
      item: { kind: 'typed-data', ...granted, content: typedData },
      digest: toPrefixedHex(hashTypedData(typedData)),
    },
  } as const satisfies Record<string, { item: SignItem; digest: Hex }>
  type Kind = keyof typeof kinds
  const names = Object.keys(kinds) as Kind[]
  const offChain = ['message', 'typed-data'] as const

  async function sign(kind: Kind, lie: (signed: SignedItemV2) => Partial<SignedItemV2> = () => ({})) {
    const enclave = createEnclave()
    enclave.stateV2 = (signed) => ({ ...signed, ...lie(signed as SignedItemV2) })
    const { item, digest } = kinds[kind]
    const { batches, results } = await enclave.signItems([item])
    const call = { beganAt: NOW, endedAt: NOW }
    const expected: ExpectedItem = { item, digest, address: alice.address, coordinatorKey: COORDINATOR, call }
    return { expected, result: results[0] as SignedItemV2, batch: batches[0] as SignedBatch }
  }

  test.each(names)('of a %s gives what is stored and what is claimed', async (kind) => {
    const { expected, result, batch } = await sign(kind)
    const { stated, claim, opening } = assertItemSigned(expected, result, batch)
    expect(stated).toMatchObject({ version: 2, statement: result.statement, signed: { subject: result.subject } })
    expect(claim).toMatchObject({ digest: expected.digest, address: alice.address })
    expect(opening).toEqual(result.opening)
  })

  test.each(offChain)('of a %s has nothing of content, digest, signature or salts in what is stored', async (kind) => {
    const { expected, result, batch } = await sign(kind)
    const { stated, claim, opening } = assertItemSigned(expected, result, batch)
    const text = JSON.stringify(stated).toLowerCase()
    const { content, signature } = opening as { content: { salt: string }; signature: { salt: string } }
    const private_ = [expected.digest, claim?.signature ?? '', content.salt, signature.salt, 'abababab', '68656c6c6f']
    for (const part of private_) expect(text).not.toContain(part.replace('0x', ''))
  })

  const invalid = expect.objectContaining({ code: 'attestation_invalid' })

  describe.each(names)('%s', (kind) => {
    test.each<[string, (signed: SignedItemV2) => Partial<SignedItemV2>]>([
      [
        'another kind',
        ({ statement }) => ({
          statement: { ...statement, kind: kind === 'transaction' ? 'off-chain' : 'transaction' },
        }),
      ],
      ['another key', ({ statement }) => ({ statement: { ...statement, keyId: bob.keyId } })],
      ['another address', ({ statement }) => ({ statement: { ...statement, address: bob.address } })],
      ['another subject', ({ statement }) => ({ statement: { ...statement, subject: '00'.repeat(32) } })],
      ['another sample', ({ statement }) => ({ statement: { ...statement, witness: '00'.repeat(32) } })],
      ['another coordinator', ({ statement }) => ({ statement: { ...statement, coordinatorKey: '00'.repeat(32) } })],
      ['a policy', ({ statement }) => ({ statement: { ...statement, policy: '00'.repeat(32) } })],
      ['approvals', ({ statement }) => ({ statement: { ...statement, approvals: '00'.repeat(32) } })],
      [
        'a time that is long past',
        ({ statement }) => ({ statement: { ...statement, signedAt: '2025-06-15T12:00:00.000Z' } }),
      ],
    ])('quoted with %s is refused', async (_, lie) => {
      const { expected, result, batch } = await sign(kind, lie)
      expect(() => assertItemSigned(expected, result, batch)).toThrow(invalid)
    })

    test('changed after quoting, or at another place, is refused', async () => {
      const { expected, result, batch } = await sign(kind)
      const statement = { ...result.statement, publicKey: toHex(bob.publicKey) }
      expect(() => assertItemSigned(expected, { ...result, statement }, batch)).toThrow(invalid)
      expect(() => assertItemSigned(expected, { ...result, leafIndex: 1 }, batch)).toThrow(invalid)
    })

    test('without what belongs to it is refused', async () => {
      const { expected, result, batch } = await sign(kind)
      const { statement, leafIndex } = result
      const bare = { statement, batch: 0, leafIndex } as unknown as SignedItemV2
      expect(() => assertItemSigned(expected, bare, batch)).toThrow(invalid)
    })

    test('of version 1 is refused', async () => {
      const { expected, batch } = await sign(kind)
      const old = (await createEnclave().signItems([createItem(0)])).results[0] as SignedItem
      expect(() => assertItemSigned(expected, old, batch)).toThrow(invalid)
    })
  })

  test('version 2 does not pass where version 1 was asked for', async () => {
    const { expected, result, batch } = await sign('transaction')
    expect(() => assertItemSigned({ ...expected, item: createItem(0) }, result, batch)).toThrow(invalid)
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
    ['that is none', () => null],
  ])('an opening %s is refused, and no error repeats it', async (_, change) => {
    for (const kind of offChain) {
      const { expected, result, batch } = await sign(kind)
      const opening = change(result.opening as Opening) as Opening
      let thrown: unknown
      try {
        assertItemSigned(expected, { ...result, opening }, batch)
      } catch (error) {
        thrown = error
      }
      expect(thrown).toEqual(invalid)
      const { message, details, cause } = thrown as { message: string; details: string; cause: unknown }
      expect(`${message} ${details}`).not.toContain(expected.digest.slice(2))
      expect(cause).toBeUndefined()
    }
  })

  test('an opening that commits, but to other content than was asked, is refused', async () => {
    const { expected, batch, result } = await sign('message')
    const item = { ...kinds.message.item, content: { message: '0x00' } as const }
    expect(() => assertItemSigned({ ...expected, item }, result, batch)).toThrow(invalid)
  })
})
