import { createPrivateKey, createPublicKey, randomBytes, sign, verify } from 'node:crypto'
import { verifyEd25519 } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createEd25519Signer, isEd25519Signature } from './ed25519.ts'

// RFC 8410 §7: the DER of a private key is this, then the seed.
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
const publicKey = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')

test('RFC 8032 §7.1, test 1', () => {
  const signature = createEd25519Signer(seed)(new Uint8Array())
  expect(Buffer.from(signature).toString('hex')).toBe(
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
  expect(isEd25519Signature(publicKey, new Uint8Array(), signature)).toBe(true)
})

test('signs and judges as OpenSSL and noble do', () => {
  for (let round = 0; round < 50; round++) {
    const own = randomBytes(32)
    const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, own]), format: 'der', type: 'pkcs8' })
    const raw = createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).subarray(-32)
    const message = randomBytes(round)
    const signature = createEd25519Signer(own)(message)
    expect(Buffer.from(signature).equals(sign(null, message, privateKey))).toBe(true)
    expect(verify(null, message, privateKey, signature)).toBe(true)
    expect(isEd25519Signature(raw, message, signature)).toBe(true)
    const forged = Buffer.from(signature)
    forged[round] = (forged[round] ?? 0) ^ 1
    expect(isEd25519Signature(raw, message, forged)).toBe(false)
    expect(verifyEd25519(raw, forged, message)).toBe(false)
    expect(isEd25519Signature(raw, Buffer.concat([message, Buffer.of(0)]), signature)).toBe(false)
  }
})

test('a key of small order fits no signature', () => {
  const one = Buffer.from(`01${'00'.repeat(31)}`, 'hex')
  const forged = Buffer.concat([one, Buffer.alloc(32)])
  expect(isEd25519Signature(one, Buffer.from('anything'), forged)).toBe(false)
})

test('a seed of another length is refused', () => {
  expect(() => createEd25519Signer(randomBytes(31))).toThrow()
})
