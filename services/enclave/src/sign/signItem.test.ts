import { randomBytes } from 'node:crypto'
import {
  assertOpening,
  assertStatementV2,
  computeCommitment,
  type Hex,
  hashAuthorization,
  hashEntropy,
  hashLeaf,
  hashSubject,
  hashWitness,
  type Opening,
  type SignItem,
  type Statement,
  type TransactionItem,
  type TxMetadata,
  toHex,
} from '@countersign/protocol'
import { keccak256, recoverAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { compareExecutions } from '../../fuzz/randomExecutions.ts'
import { checkRandomTransactions, toDigest, toViem } from '../../fuzz/randomTransactions.ts'
import { createRound } from '../../test/beacon.ts'
import { noBudgets } from '../../test/noBudgets.ts'
import { permit } from '../../test/typedData.ts'
import { createWitness } from '../../test/witness.ts'
import { createGrant, toSidHash } from '../grant/grant.ts'
import { createKeyring, toOwner } from '../keys/deriveKey.ts'
import { createVerifyEs256 } from '../vault/es256.ts'
import { createPolicies } from '../vault/policies.ts'
import { type SignedItem, signItem } from './signItem.ts'

const rootSecret = Uint8Array.from({ length: 32 }, (_, index) => index + 1)
const configHash = new Uint8Array(32).fill(0xcc)
const keyring = createKeyring(rootSecret, configHash)
const now = Date.parse('2026-06-15T12:00:00.123Z')
const sid = 'ab'.repeat(32)
const coordinatorKey = 'cd'.repeat(32)
const witness = createWitness(now, new Uint8Array(32))
const entropyHash = toHex(hashEntropy(new Uint8Array(32)))

function openSession(subject: string, changes: Partial<Parameters<typeof createGrant>[1]> = {}) {
  const identity = { issuer: 'https://issuer.example', subject, email: null }
  const owner = toOwner(identity)
  const { keyId, address } = keyring.describe(owner)
  const grant = createGrant(keyring.grantKey, {
    owner,
    identity,
    clientKey: null,
    sidHash: toSidHash(sid),
    keyId,
    address,
    exp: now + 1,
    ...changes,
  })
  return { owner, identity, keyId, address, grant }
}

const txMetadata: TxMetadata = {
  chainId: 11155111,
  nonce: 7,
  to: `0x${'11'.repeat(20)}`,
  value: '1000',
  data: '0xabcdef',
  gas: '50000',
  maxFeePerGas: '2000000000',
  maxPriorityFeePerGas: '1000000000',
}

const implementations: Hex[] = [`0x${'77'.repeat(20)}`]
const alice = openSession('alice')

function toItem(changes: Partial<TransactionItem> = {}): TransactionItem {
  return {
    kind: 'transaction',
    statementVersion: 1,
    sid,
    grant: alice.grant,
    keyId: alice.keyId,
    digest: toDigest(txMetadata),
    txMetadata,
    witness,
    ...changes,
  }
}

const signatures = { verifyEs256: createVerifyEs256(), verifyEd25519: () => false }
const vaultDeps = { policies: createPolicies(), ...signatures, ...noBudgets }
const random = (length: number) => new Uint8Array(randomBytes(length))
const sign = (item: SignItem, at = now) =>
  signItem({ keyring, now: at, random, implementations, ...vaultDeps }, item, { coordinatorKey })

test('the statement names key, transaction, entropy and caller, and the signature equals viem’s', async () => {
  const result = sign(toItem()) as SignedItem & { statement: Statement }
  const privateKey = keyring.withPrivateKey(alice.owner, toHex)
  const account = privateKeyToAccount(`0x${privateKey}`)
  expect(result.statement).toMatchObject({
    type: 'countersign/signing/v1',
    keyId: alice.keyId,
    address: account.address.toLowerCase(),
    publicKey: account.publicKey.slice(2),
    chainId: 11155111,
    entropyHash,
    coordinatorKey,
    signedAt: '2026-06-15T12:00:00.123Z',
  })
  expect(result.statement.txHash).toBe(keccak256(await account.signTransaction(toViem(txMetadata))))
})

describe('random transactions', () => {
  // `npm run fuzz:sign` tries 20,000.
  test('address, digest and signature equal an independent implementation’s on the derived key, 500 times', () => {
    checkRandomTransactions({ runs: 500, seed: 1 })
  }, 240_000)

  // `npm run fuzz:sign` tries 2,000.
  test('150 signed transactions, permits and authorizations have the same effect in a second EVM', async () => {
    const { executed, reverted, rejected } = await compareExecutions({ runs: 150, seed: 1 })
    expect(Math.min(executed, reverted, rejected)).toBeGreaterThan(15)
  }, 240_000)

  test('rejects each mutated field, because the digest is of another transaction', () => {
    const mutations: Partial<TxMetadata>[] = [
      { chainId: 1 },
      { nonce: 8 },
      { to: `0x${'22'.repeat(20)}` },
      { value: '1001' },
      { data: '0xabcdee' },
      { gas: '50001' },
      { maxFeePerGas: '2000000001' },
      { maxPriorityFeePerGas: '1000000001' },
    ]
    for (const mutation of mutations) {
      expect(sign(toItem({ txMetadata: { ...txMetadata, ...mutation } }))).toEqual({ error: 'digest_mismatch' })
    }
  })
})

describe('a list of allowed chains', () => {
  const signFor = (item: SignItem) =>
    signItem({ keyring, now, random, implementations, chainIds: [11155111, 31337], ...vaultDeps }, item, {
      coordinatorKey,
    })
  const toTransaction = (chainId: number) => {
    const other = { ...txMetadata, chainId }
    return toItem({ txMetadata: other, digest: toDigest(other) })
  }
  const toTypedData = (chainId: string | number | undefined): SignItem => {
    const { chainId: _, ...unchained } = permit.domain
    const domain = chainId === undefined ? unchained : { ...unchained, chainId }
    return { ...granted, kind: 'typed-data', content: { ...permit, domain } }
  }
  const toAuthorization = (chainId: number): SignItem => ({
    ...granted,
    kind: 'authorization',
    authorization: { ...authorization, chainId },
  })

  test.each([1, 10, 8453, 42161])('signs nothing for %d', (chainId) => {
    const refused = { error: 'invalid_request' }
    expect(signFor(toTransaction(chainId))).toEqual(refused)
    expect(signFor(toTypedData(chainId))).toEqual(refused)
    expect(signFor(toTypedData(String(chainId)))).toEqual(refused)
    expect(signFor(toAuthorization(chainId))).toEqual(refused)
  })

  test('signs nothing that is valid on every chain', () => {
    expect(signFor(toTypedData(undefined))).toEqual({ error: 'invalid_request' })
    expect(sign(toTypedData(undefined))).not.toHaveProperty('error')
    expect(signFor(toAuthorization(0))).toEqual({ error: 'authorization_not_allowed' })
    const hash: SignItem = { ...granted, kind: 'message', content: { message: `0x${'ab'.repeat(32)}` } }
    expect(signFor(hash)).toEqual({ error: 'invalid_request' })
    expect(sign(hash)).not.toHaveProperty('error')
  })

  test('signs for the listed chains, and messages, which have no chain', () => {
    for (const item of [toTransaction(31337), toTypedData(31337), toAuthorization(31337), messageItem]) {
      expect(signFor(item)).not.toHaveProperty('error')
    }
  })
})

test('a grant is authenticated once, and each use still checks its session secret and its time', () => {
  const own = createKeyring(rootSecret, configHash)
  const signAt = (time: number, changes: Partial<TransactionItem> = {}) =>
    signItem({ keyring: own, now: time, random, implementations, ...vaultDeps }, toItem(changes), { coordinatorKey })
  const [payload = '', mac = ''] = alice.grant.split('.')
  expect(signAt(now, { grant: `${payload}.${mac.slice(0, -1)}` })).toEqual({ error: 'grant_invalid' })
  expect(own.grants.size).toBe(0)
  for (const _ of [1, 2]) expect(signAt(now)).toHaveProperty('statement')
  expect([...own.grants.keys()]).toEqual([alice.grant])
  expect(signAt(now, { sid: 'ac'.repeat(32) })).toEqual({ error: 'grant_invalid' })
  expect(signAt(now + 1)).toEqual({ error: 'session_expired' })
  expect(signAt(now, { grant: `${payload}.` })).toEqual({ error: 'grant_invalid' })
})

describe('grant table: no signature', () => {
  const bob = openSession('bob')
  const [payload = '', mac = ''] = alice.grant.split('.')
  const foreign = createKeyring(new Uint8Array(32).fill(7), configHash)
  const flipped = (text: string, index: number) =>
    text.slice(0, index) + (text[index] === 'A' ? 'B' : 'A') + text.slice(index + 1)

  test.each<[string, Partial<TransactionItem>, string]>([
    ['expired this millisecond', { grant: openSession('alice', { exp: now }).grant }, 'session_expired'],
    ['expired long ago', { grant: openSession('alice', { exp: 1 }).grant }, 'session_expired'],
    ['another session secret', { sid: 'ac'.repeat(32) }, 'grant_invalid'],
    ['of another user, with our key id', { grant: bob.grant }, 'key_binding_mismatch'],
    ['ours, with another user’s key id', { keyId: bob.keyId }, 'key_binding_mismatch'],
    [
      'naming another user’s key',
      { grant: openSession('alice', { keyId: bob.keyId }).grant, keyId: bob.keyId },
      'key_binding_mismatch',
    ],
    ['naming another address', { grant: openSession('alice', { address: bob.address }).grant }, 'key_binding_mismatch'],
    [
      'from another root secret',
      {
        grant: createGrant(foreign.grantKey, {
          owner: alice.owner,
          identity: alice.identity,
          clientKey: null,
          sidHash: toSidHash(sid),
          keyId: alice.keyId,
          address: alice.address,
          exp: now + 1,
        }),
      },
      'grant_invalid',
    ],
    [
      'from another configuration',
      {
        grant: createGrant(createKeyring(rootSecret, new Uint8Array(32)).grantKey, {
          owner: alice.owner,
          identity: alice.identity,
          clientKey: null,
          sidHash: toSidHash(sid),
          keyId: alice.keyId,
          address: alice.address,
          exp: now + 1,
        }),
      },
      'grant_invalid',
    ],
    ['an altered payload', { grant: `${flipped(payload, 10)}.${mac}` }, 'grant_invalid'],
    ['an altered mac', { grant: `${payload}.${flipped(mac, 10)}` }, 'grant_invalid'],
    ['a mac cut short', { grant: `${payload}.${mac.slice(0, -2)}` }, 'grant_invalid'],
    ['no mac', { grant: payload }, 'grant_invalid'],
    ['an empty mac', { grant: `${payload}.` }, 'grant_invalid'],
    ['three parts', { grant: `${payload}.${mac}.${mac}` }, 'grant_invalid'],
    ['base64 with padding', { grant: `${payload}=.${mac}` }, 'grant_invalid'],
    ['base64 with a line feed', { grant: `${payload}\n.${mac}` }, 'grant_invalid'],
    ['empty', { grant: '' }, 'grant_invalid'],
    ['very long', { grant: 'A'.repeat(100_000) }, 'grant_invalid'],
  ])('%s', (_, changes, error) => {
    expect(sign(toItem(changes))).toEqual({ error })
  })

  test('every altered byte of a grant', () => {
    for (let index = 0; index < alice.grant.length; index++) {
      const result = sign(toItem({ grant: flipped(alice.grant, index) }))
      expect(result).toEqual({ error: 'grant_invalid' })
    }
  })
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a string', 'transaction'],
  ['an access list', { ...txMetadata, accessList: [] }],
  ['a legacy gas price', { ...txMetadata, gasPrice: '1' }],
  ['a type', { ...txMetadata, type: 'eip4844' }],
  ['no recipient', { ...txMetadata, to: null }],
  ['an amount as a number', { ...txMetadata, value: 1000 }],
  ['a negative nonce', { ...txMetadata, nonce: -1 }],
])('only EIP-1559 transactions are signed, not one with %s', (_, metadata) => {
  expect(sign(toItem({ txMetadata: metadata as TxMetadata }))).toEqual({ error: 'invalid_tx_metadata' })
})

test('RFC 6979: signing the same transaction again gives the same bytes', () => {
  const first = sign(toItem()) as SignedItem & { statement: Statement }
  const second = sign(toItem(), now - 5000) as SignedItem & { statement: Statement }
  expect(second.statement.signature).toBe(first.statement.signature)
  expect(second.statement.signedAt).not.toBe(first.statement.signedAt)
})

type SignedV2 = Extract<SignedItem, { subject: unknown }>

const message: Hex = '0x68656c6c6f'
const authorization = { chainId: 1, address: implementations[0] as Hex, nonce: 3 }
const granted = { sid, grant: alice.grant, keyId: alice.keyId, witness }
const messageItem: SignItem = { ...granted, kind: 'message', content: { message } }
const typedDataItem: SignItem = { ...granted, kind: 'typed-data', content: permit }
const authorizationItem: SignItem = { ...granted, kind: 'authorization', authorization }
const account = privateKeyToAccount(`0x${keyring.withPrivateKey(alice.owner, toHex)}`)

/** Checks the content of every version 2 statement with the protocol's functions. */
function signV2(item: SignItem): SignedV2 {
  const signed = sign(item) as SignedV2
  expect(() => assertStatementV2(signed.statement)).not.toThrow()
  expect(signed.statement).toMatchObject({
    keyId: alice.keyId,
    address: account.address.toLowerCase(),
    publicKey: account.publicKey.slice(2),
    subject: toHex(hashSubject(signed.subject)),
    witness: toHex(hashWitness(item.witness)),
    policy: null,
    approvals: null,
    coordinatorKey,
    signedAt: '2026-06-15T12:00:00.123Z',
  })
  expect(toHex(signed.leaf)).toBe(toHex(hashLeaf(signed.statement)))
  return signed
}

describe('statements of version 2', () => {
  test('a transaction has the content of version 1 and the same signature', () => {
    const { statement, subject } = signV2(toItem({ statementVersion: 2 }))
    const first = (sign(toItem()) as SignedItem & { statement: Statement }).statement
    expect(statement.kind).toBe('transaction')
    expect(subject).toEqual({
      ...txMetadata,
      from: first.address,
      txHash: first.txHash,
      digestSigned: first.digest,
      signature: first.signature,
      signedAt: first.signedAt,
    })
  })

  test('a transaction in upper case has one spelling in its subject', () => {
    const spelt = { ...txMetadata, to: `0x${'AA'.repeat(20)}`, data: '0xABCDEF' } as const
    const digest = toDigest({ ...spelt, to: `0x${'aa'.repeat(20)}` })
    const item = toItem({ statementVersion: 2, txMetadata: spelt, digest })
    expect(signV2(item).subject).toMatchObject({ to: `0x${'aa'.repeat(20)}`, data: '0xabcdef' })
  })

  test('an authorization has viem’s signature, and all of it is public', async () => {
    const { statement, subject, opening } = signV2(authorizationItem)
    expect(statement.kind).toBe('authorization')
    const { r, s, yParity } = await account.signAuthorization(authorization)
    const signature = `${r}${s.slice(2)}${yParity === 1 ? '1c' : '1b'}`
    expect(subject).toEqual({ ...authorization, digest: `0x${toHex(hashAuthorization(authorization))}`, signature })
    expect(opening).toBeUndefined()
  })

  test.each([
    ['a message', messageItem, { message }, () => account.signMessage({ message: { raw: message } })],
    ['typed data', typedDataItem, permit, () => account.signTypedData(permit as never)],
  ] as const)('%s: viem’s signature, in an opening of the only public value', async (_, item, content, expected) => {
    const { statement, subject, opening } = signV2(item)
    const signature = await expected()
    expect(statement.kind).toBe('off-chain')
    expect(() => assertOpening(opening)).not.toThrow()
    expect(opening).toMatchObject({ content: { kind: item.kind, content }, signature: { signature } })
    expect(subject).toEqual({ commitment: toHex(computeCommitment(opening as Opening)) })
    const { digest, salt } = (opening as { content: { digest: Hex; salt: string } }).content
    expect(await recoverAddress({ hash: digest, signature })).toBe(account.address)
    const published = JSON.stringify([statement, subject])
    for (const secret of [digest.slice(2), signature.slice(2), salt, message.slice(2), 'Permit']) {
      expect(published).not.toContain(secret)
    }
  })

  test('the same message again has the same signature, other salts and another commitment', () => {
    const all = Array.from({ length: 20 }, () => signV2(messageItem))
    const openings = all.map(
      ({ opening }) => opening as { content: { salt: string }; signature: { salt: string; signature: Hex } },
    )
    expect(new Set(openings.map(({ signature }) => signature.signature)).size).toBe(1)
    expect(new Set(openings.flatMap(({ content, signature }) => [content.salt, signature.salt])).size).toBe(40)
    expect(new Set(all.map(({ statement }) => statement.subject)).size).toBe(20)
  })

  test('names a sample’s source, and a beacon’s round, as the protocol does', () => {
    for (const source of ['"\\"', '/ \\u0000 ~', '{"a":1}']) signV2({ ...messageItem, witness: { ...witness, source } })
    signV2({ ...authorizationItem, witness: createRound(now) })
    expect.assertions(4 * 3)
  })

  test('never signs a given digest as a message, or its parts as typed data', async () => {
    const digest = toDigest(txMetadata)
    const { opening } = signV2({ ...granted, kind: 'message', content: { message: digest } })
    const { signature } = (opening as { signature: { signature: Hex } }).signature
    expect(await recoverAddress({ hash: digest, signature })).not.toBe(account.address)
  })
})

describe('rejected content: no signature', () => {
  const wide: Hex = `0x${'00'.repeat(16_377)}`
  test.each<[string, unknown, string]>([
    ['a message that is text', { ...messageItem, content: { message: 'hello' } }, 'invalid_message'],
    ['a message that is nothing', { ...messageItem, content: { message: null } }, 'invalid_message'],
    ['a message that is too large', { ...messageItem, content: { message: wide } }, 'message_too_large'],
    ['typed data that is nothing', { ...typedDataItem, content: null }, 'invalid_typed_data'],
    [
      'typed data of a bare hash',
      { ...typedDataItem, content: { digest: toDigest(txMetadata) } },
      'invalid_typed_data',
    ],
    [
      'typed data of another type',
      { ...typedDataItem, content: { ...permit, primaryType: 'Mail' } },
      'invalid_typed_data',
    ],
    [
      'typed data with only the domain',
      { ...typedDataItem, content: { ...permit, primaryType: 'EIP712Domain', message: permit.domain } },
      'invalid_typed_data',
    ],
    [
      'typed data with a member that is not hashed',
      { ...typedDataItem, content: { ...permit, message: { ...permit.message, to: '0x' } } },
      'invalid_typed_data',
    ],
    [
      'typed data that is too large',
      { ...typedDataItem, content: { ...permit, domain: { name: 'x'.repeat(32_768) } } },
      'message_too_large',
    ],
    [
      'an authorization for all chains',
      { ...authorizationItem, authorization: { ...authorization, chainId: 0 } },
      'authorization_not_allowed',
    ],
    [
      'an authorization of code that is not listed',
      { ...authorizationItem, authorization: { ...authorization, address: `0x${'78'.repeat(20)}` } },
      'authorization_not_allowed',
    ],
    ['an invalid authorization', { ...authorizationItem, authorization: { chainId: 1 } }, 'invalid_request'],
  ])('%s', (_, item, error) => {
    expect(sign(item as SignItem)).toEqual({ error })
  })

  test('signs no authorization without a list', () => {
    const deps = { keyring, now, random, implementations: [], ...vaultDeps }
    expect(signItem(deps, authorizationItem, { coordinatorKey })).toEqual({ error: 'authorization_not_allowed' })
  })
})

describe('checks the grant for every kind, before the content', () => {
  const bob = openSession('bob')
  test.each([messageItem, typedDataItem, authorizationItem, toItem({ statementVersion: 2 })])('$kind', (item) => {
    for (const [changes, error] of [
      [{ grant: '' }, 'grant_invalid'],
      [{ sid: 'ac'.repeat(32) }, 'grant_invalid'],
      [{ grant: openSession('alice', { exp: now }).grant }, 'session_expired'],
      [{ grant: bob.grant }, 'key_binding_mismatch'],
      [{ keyId: bob.keyId }, 'key_binding_mismatch'],
    ] as const) {
      expect(sign({ ...item, ...changes })).toEqual({ error })
      expect(sign({ ...item, ...changes, content: null, authorization: null, txMetadata: null } as never)).toEqual({
        error,
      })
    }
  })
})
