import { randomBytes } from 'node:crypto'
import {
  type Hex,
  hashEntropy,
  type SignItem,
  type Statement,
  type TransactionItem,
  type TxMetadata,
  toHex,
} from '@countersign/protocol'
import { keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { checkRandomTransactions, toDigest, toViem } from '../../fuzz/randomTransactions.ts'
import { createWitness } from '../../test/witness.ts'
import { createGrant, toSidHash } from '../grant/grant.ts'
import { createKeyring, toOwner } from '../keys/deriveKey.ts'
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

const random = (length: number) => new Uint8Array(randomBytes(length))
const sign = (item: SignItem, at = now) => signItem({ keyring, now: at, random, implementations }, item, coordinatorKey)

test('the statement names key, transaction, entropy and caller, and the signature is viem’s to the byte', async () => {
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
  test('address, digest and signature equal an independent implementation’s on the derived key, 4,000 times', () => {
    checkRandomTransactions({ runs: 4_000, seed: 1 })
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
  const first = sign(toItem()) as SignedItem & { statement: Statement }
  const second = sign(toItem(), now - 5000) as SignedItem & { statement: Statement }
  expect(second.statement.signature).toBe(first.statement.signature)
  expect(second.statement.signedAt).not.toBe(first.statement.signedAt)
})
