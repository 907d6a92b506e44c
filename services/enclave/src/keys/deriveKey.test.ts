import { createHash } from 'node:crypto'
import { parseVkey } from '@countersign/log'
import { isEd25519Signature } from '@countersign/service/ed25519'
import { hkdf } from '@noble/hashes/hkdf.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import logVectors from '../../../../packages/log/vectors/log-v1.vectors.json' with { type: 'json' }
import vectors from '../../../../packages/protocol/vectors/vault-v1.vectors.json' with { type: 'json' }
import { createKeyring, toOwner } from './deriveKey.ts'
import { createLogKeys } from './logKeys.ts'

const rootSecret = Uint8Array.from({ length: 32 }, (_, index) => index)
const configHash = new Uint8Array(32).fill(0xcc)
const identity = { issuer: 'https://accounts.google.com', subject: '110169484474386276334' }
const owner = toOwner(identity)

describe('vault keys from the root secret', () => {
  const { rootSecret: secret, vaults } = vectors
  const keyring = createKeyring(Buffer.from(secret, 'hex'), configHash)

  test.each(vaults)('match the protocol’s vectors: $address', ({ owner, policyHash, privateKey, address, keyId }) => {
    const name = { owner, policy: policyHash }
    expect(keyring.describe(name)).toMatchObject({ address, keyId })
    expect(keyring.withPrivateKey(name, (key) => Buffer.from(key).toString('hex'))).toBe(privateKey)
  })

  test('two enclaves with one secret derive one address; another policy, owner or secret derives another', () => {
    const name = { owner, policy: '11'.repeat(32) }
    const elsewhere = createKeyring(Buffer.from(secret, 'hex'), new Uint8Array(32))
    expect(elsewhere.describe(name)).toEqual(keyring.describe(name))
    const others = [
      keyring.describe({ ...name, policy: '12'.repeat(32) }),
      keyring.describe({ ...name, owner: '11'.repeat(32) }),
      keyring.describe(owner),
      createKeyring(rootSecret, configHash).describe(name),
    ]
    const all = [keyring.describe(name), ...others]
    expect(new Set(all.map(({ address }) => address)).size).toBe(5)
    expect(new Set(all.map(({ keyId }) => keyId)).size).toBe(5)
  })
})

describe('keys of logs from the root secret', () => {
  test.each(logVectors.derivedKeys)('match the log’s vectors: $vkey', ({ rootSecret: secret, origin, vkey }) => {
    // Independent of the configuration, so another release of the enclave continues the same log.
    for (const hash of [configHash, new Uint8Array(32)]) {
      const keys = createLogKeys(createKeyring(Buffer.from(secret, 'hex'), hash))
      const { name, publicKey } = parseVkey(vkey)
      expect([name, keys.describe(origin)]).toEqual([origin, publicKey])
    }
  })

  test('sign only checkpoints of their own origin', () => {
    const keys = createLogKeys(createKeyring(rootSecret, configHash))
    const [own, root] = ['log.example/a', Buffer.alloc(32).toString('base64')]
    const text = `${own}\n5\n${root}\n`
    const signature = keys.sign(own, text)
    const publicKey = keys.describe(own)
    expect(isEd25519Signature(publicKey, signature ?? new Uint8Array(), Buffer.from(text))).toBe(true)
    for (const other of [
      '',
      own,
      text.slice(0, -1),
      `${text}more\n`,
      text.replace('/a', '/b'),
      `0${text}`,
      text.repeat(2),
    ])
      expect(keys.sign(own, other)).toBeUndefined()
  })
})

describe('wallet keys from the root secret', () => {
  test('match golden vectors for owner, address and key id', () => {
    const { address, keyId, publicKey } = createKeyring(rootSecret, configHash).describe(owner)
    expect({ owner, address, keyId, publicKey }).toMatchInlineSnapshot(`
      {
        "address": "0x3800d414de52417d2e30e2ae6d0388dac70dc877",
        "keyId": "190a7b533e32be77b76ab03b66e72fc3",
        "owner": "1a6adac36fceb13630bc001596e2764b7bdc430770e59e40d7422ffdbb8fdc62",
        "publicKey": "04a85dd870c837f4944ccfabfcf55d1fc40eb480c975e9da5f7176dece5e4499a15a7422bc7f99a4d4d4f44167b375b5ed317af8a68a4238d2a847007a78d28e12",
      }
    `)
  })

  test('no key is in a shared buffer', () => {
    const { grantKey, withPrivateKey } = createKeyring(rootSecret, configHash)
    expect(grantKey.buffer.byteLength).toBe(32)
    expect(withPrivateKey(owner, ({ buffer }) => buffer.byteLength)).toBe(32)
  })

  test('an owner is SHA-256(iss ‖ 0x00 ‖ sub)', () => {
    const bytes = Buffer.concat([Buffer.from(identity.issuer), Buffer.from([0]), Buffer.from(identity.subject)])
    expect(owner).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(toOwner({ issuer: 'a', subject: 'bc' })).not.toBe(toOwner({ issuer: 'ab', subject: 'c' }))
  })

  test('the private key is HKDF over 48 bytes, mod n − 1, plus 1 (an independent computation)', () => {
    const info = Buffer.concat([Buffer.from('countersign/wallet/v1\0'), Buffer.from(owner, 'hex'), Buffer.alloc(4)])
    const wide = BigInt(`0x${Buffer.from(hkdf(sha256, rootSecret, undefined, info, 48)).toString('hex')}`)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const expected = ((wide % (order - 1n)) + 1n).toString(16).padStart(64, '0')
    const keyring = createKeyring(rootSecret, configHash)
    keyring.withPrivateKey(owner, (privateKey) => expect(Buffer.from(privateKey).toString('hex')).toBe(expected))
    expect(keyring.describe(owner).address).toBe(privateKeyToAccount(`0x${expected}`).address.toLowerCase())
  })

  test('the key id is 16 bytes of HMAC under a separate key', () => {
    const key = hkdf(sha256, rootSecret, undefined, Buffer.from('countersign/key-id/v1'), 32)
    const mac = hmac(sha256, key, Buffer.concat([Buffer.from(owner, 'hex'), Buffer.alloc(4)]))
    expect(createKeyring(rootSecret, configHash).describe(owner).keyId).toBe(
      Buffer.from(mac.subarray(0, 16)).toString('hex'),
    )
  })

  test('the same secret derives the same key on another machine, and another secret another key', () => {
    const other = createKeyring(new Uint8Array(32).fill(9), configHash)
    expect(createKeyring(Uint8Array.from(rootSecret), configHash).describe(owner)).toEqual(
      createKeyring(rootSecret, configHash).describe(owner),
    )
    expect(other.describe(owner).address).not.toBe(createKeyring(rootSecret, configHash).describe(owner).address)
    expect(other.describe(owner).keyId).not.toBe(createKeyring(rootSecret, configHash).describe(owner).keyId)
  })

  test('a private key is overwritten after its use, also after an error', () => {
    const keyring = createKeyring(rootSecret, configHash)
    const lent: Uint8Array[] = []
    keyring.withPrivateKey(owner, (privateKey) => lent.push(privateKey))
    expect(() =>
      keyring.withPrivateKey(owner, (privateKey) => {
        lent.push(privateKey)
        throw new Error('failed')
      }),
    ).toThrow('failed')
    expect(lent.map((privateKey) => privateKey.every((byte) => byte === 0))).toEqual([true, true])
  })

  test('another configuration has other grants and the same wallets', () => {
    const [one, other] = [configHash, new Uint8Array(32)].map((hash) => createKeyring(rootSecret, hash))
    expect(one?.grantKey).not.toEqual(other?.grantKey)
    expect(one?.describe(owner)).toEqual(other?.describe(owner))
  })

  test('grants have a separate key', () => {
    const { grantKey } = createKeyring(rootSecret, configHash)
    expect(Buffer.from(grantKey)).toEqual(
      Buffer.from(
        hkdf(sha256, rootSecret, undefined, Buffer.concat([Buffer.from('countersign/grant/v1\0'), configHash]), 32),
      ),
    )
  })
})
