import { createPrivateKey, createPublicKey, randomBytes, sign } from 'node:crypto'
import { verifyEd25519 } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createEd25519Signer, isEd25519Signature, isSignatureBySodium } from './ed25519.ts'
import { isSignatureByOpenSsl } from './ed25519ByOpenSsl.ts'

// RFC 8410 §7: the DER of a private key is this, then the seed.
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
const publicKey = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')

test('RFC 8032 §7.1, test 1', () => {
  const signer = createEd25519Signer(seed)
  expect(Buffer.from(signer.publicKey).equals(publicKey)).toBe(true)
  const signature = signer.sign(new Uint8Array())
  expect(Buffer.from(signature).toString('hex')).toBe(
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
  expect(isEd25519Signature(publicKey, signature, new Uint8Array())).toBe(true)
})

test('rejects a seed of another length', () => {
  expect(() => createEd25519Signer(randomBytes(31))).toThrow()
})

describe.each([
  ['libsodium', isSignatureBySodium],
  ['OpenSSL', isSignatureByOpenSsl],
])('%s', (_, isSignature) => {
  test('gives the protocol’s result for signatures by both', () => {
    for (let round = 0; round < 50; round++) {
      const own = randomBytes(32)
      const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, own]), format: 'der', type: 'pkcs8' })
      const raw = createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).subarray(-32)
      const message = randomBytes(round)
      const signature = createEd25519Signer(own).sign(message)
      expect(Buffer.from(signature).equals(sign(null, message, privateKey))).toBe(true)
      expect(isSignature(raw, signature, message)).toBe(true)
      expect(verifyEd25519(raw, signature, message)).toBe(true)
      const forged = Buffer.from(signature)
      forged[round] = (forged[round] ?? 0) ^ 1
      expect(isSignature(raw, forged, message)).toBe(false)
      expect(verifyEd25519(raw, forged, message)).toBe(false)
      expect(isSignature(raw, signature, Buffer.concat([message, Buffer.of(0)]))).toBe(false)
    }
  })

  test('rejects every signature under a key of small order, or in another encoding', () => {
    const one = Buffer.from(`01${'00'.repeat(31)}`, 'hex')
    // One more than the field's prime: another encoding of 1.
    const oneAgain = Buffer.from(`ee${'ff'.repeat(30)}7f`, 'hex')
    const noPoint = Buffer.from(`02${'00'.repeat(31)}`, 'hex')
    for (const key of [one, oneAgain, noPoint, Buffer.alloc(32), Buffer.alloc(32, 0xff)]) {
      for (const r of [one, key]) {
        expect(isSignature(key, Buffer.concat([r, Buffer.alloc(32)]), Buffer.from('anything'))).toBe(false)
      }
    }
  })

  test('rejects a scalar that is not reduced: RFC 8032 §5.1.7', () => {
    const message = Buffer.from('anything')
    const signature = createEd25519Signer(seed).sign(message)
    const order = 2n ** 252n + 27742317777372353535851937790883648493n
    const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order
    const high = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex').reverse()
    expect(isSignature(publicKey, signature, message)).toBe(true)
    expect(isSignature(publicKey, Buffer.concat([signature.subarray(0, 32), high]), message)).toBe(false)
  })

  test('rejects keys and signatures of another length', () => {
    const message = Buffer.from('anything')
    const signature = createEd25519Signer(seed).sign(message)
    for (const wrong of [new Uint8Array(), signature.subarray(1), Buffer.concat([signature, Buffer.of(0)])]) {
      expect(isSignature(publicKey, wrong, message)).toBe(false)
    }
    for (const wrong of [new Uint8Array(), publicKey.subarray(1), Buffer.concat([publicKey, Buffer.of(0)])]) {
      expect(isSignature(wrong, signature, message)).toBe(false)
    }
  })
})
