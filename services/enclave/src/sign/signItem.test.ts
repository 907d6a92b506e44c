import { hashEntropy, hashLeaf, type SignItem, type TxMetadata, toHex } from '@countersign/protocol'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import fc from 'fast-check'
import { keccak256, serializeTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { createGrant, toSidHash } from '../grant/grant.ts'
import { createKeyring, toOwner } from '../keys/deriveKey.ts'
import { type SignedItem, signItem } from './signItem.ts'

const rootSecret = Uint8Array.from({ length: 32 }, (_, index) => index + 1)
const configHash = new Uint8Array(32).fill(0xcc)
const keyring = createKeyring(rootSecret, configHash)
const now = Date.parse('2026-06-15T12:00:00.123Z')
const sid = 'ab'.repeat(32)
const coordinatorKey = 'cd'.repeat(32)
const entropyHash = toHex(hashEntropy(new Uint8Array(32)))

function openSession(subject: string, changes: Partial<Parameters<typeof createGrant>[1]> = {}) {
  const owner = toOwner({ issuer: 'https://issuer.example', subject })
  const { keyId, address } = keyring.describe(owner)
  const grant = createGrant(keyring.grantKey, {
    owner,
    sidHash: toSidHash(sid),
    keyId,
    address,
    exp: now + 1,
    ...changes,
  })
  return { owner, keyId, address, grant }
}

function toDigest(metadata: TxMetadata) {
  return keccak256(serializeTransaction(toViem(metadata)))
}

function toViem({ gas, value, maxFeePerGas, maxPriorityFeePerGas, ...rest }: TxMetadata) {
  return {
    ...rest,
    type: 'eip1559' as const,
    gas: BigInt(gas),
    value: BigInt(value),
    maxFeePerGas: BigInt(maxFeePerGas),
    maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
  }
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

const alice = openSession('alice')

function toItem(changes: Partial<SignItem> = {}): SignItem {
  return {
    sid,
    grant: alice.grant,
    keyId: alice.keyId,
    digest: toDigest(txMetadata),
    txMetadata,
    entropyHash,
    ...changes,
  }
}

const sign = (item: SignItem, at = now) => signItem({ keyring, now: at }, item, coordinatorKey)

test('the statement names key, transaction, entropy and caller, and the signature is viem’s to the byte', async () => {
  const result = sign(toItem()) as SignedItem
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

describe('20,000 random transactions', () => {
  const wei = fc.oneof(
    fc.constantFrom(0n, 1n, 127n, 128n, 255n, 256n, 2n ** 64n, 2n ** 255n),
    fc.bigInt(0n, 2n ** 128n),
  )
  const metadata = fc
    .record({
      chainId: fc.oneof(fc.constantFrom(1, 11155111, 84532, 127, 128), fc.integer({ min: 1, max: 2 ** 31 })),
      nonce: fc.oneof(fc.constantFrom(0, 1, 127, 128, 255, 256), fc.nat(2 ** 31)),
      to: fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes): `0x${string}` => `0x${toHex(bytes)}`),
      value: wei.map(String),
      data: fc.uint8Array({ maxLength: 80 }).map((bytes): `0x${string}` => `0x${toHex(bytes)}`),
      gas: fc.integer({ min: 21000, max: 30_000_000 }).map(String),
      fee: wei,
      tip: wei,
    })
    .map(({ fee, tip, ...rest }): TxMetadata => {
      const [low, high] = fee < tip ? [fee, tip] : [tip, fee]
      return { ...rest, maxFeePerGas: String(high), maxPriorityFeePerGas: String(low) }
    })
  const subjects = Array.from({ length: 50 }, (_, index) => `user ${index}`)
  const sessions = subjects.map((subject) => {
    const session = openSession(subject)
    const privateKey = keyring.withPrivateKey(session.owner, toHex)
    return {
      ...session,
      privateKey: Buffer.from(privateKey, 'hex'),
      address: privateKeyToAccount(`0x${privateKey}`).address.toLowerCase(),
    }
  })

  test('address, digest and signature equal an independent implementation’s on the derived key', () => {
    fc.assert(
      fc.property(metadata, fc.nat(sessions.length - 1), (candidate, index) => {
        const session = sessions[index] as (typeof sessions)[number]
        const digest = toDigest(candidate)
        const item = toItem({ grant: session.grant, keyId: session.keyId, digest, txMetadata: candidate })
        const { statement, leaf } = sign(item) as SignedItem
        const expected = secp256k1.sign(Buffer.from(digest.slice(2), 'hex'), session.privateKey, {
          prehash: false,
          format: 'recovered',
        })
        const signature = Buffer.concat([expected.subarray(1), Buffer.from([27 + (expected[0] ?? 0)])]).toString('hex')
        return (
          toHex(leaf) === toHex(hashLeaf(statement)) &&
          statement.signature === `0x${signature}` &&
          statement.address === session.address &&
          statement.digest === digest
        )
      }),
      { numRuns: 20_000, seed: 1 },
    )
  }, 240_000)

  test('each mutated field is refused: the digest is of another transaction', () => {
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

describe('grant table: no signature', () => {
  const bob = openSession('bob')
  const [payload = '', mac = ''] = alice.grant.split('.')
  const foreign = createKeyring(new Uint8Array(32).fill(7), configHash)
  const flipped = (text: string, index: number) =>
    text.slice(0, index) + (text[index] === 'A' ? 'B' : 'A') + text.slice(index + 1)

  test.each<[string, Partial<SignItem>, string]>([
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

test('RFC 6979: the same transaction signed again gives the same bytes', () => {
  const first = sign(toItem()) as SignedItem
  const second = sign(toItem(), now - 5000) as SignedItem
  expect(second.statement.signature).toBe(first.statement.signature)
  expect(second.statement.signedAt).not.toBe(first.statement.signedAt)
})
