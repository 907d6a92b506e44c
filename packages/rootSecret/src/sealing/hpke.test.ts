import { describe, expect, test } from 'vitest'
import { open, seal } from './hpke.ts'
import { createX25519Pair, importX25519Pair, isX25519Key } from './x25519.ts'

const unhex = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))
const text = (message: string) => new TextEncoder().encode(message)
const message = text('Beauty is truth, truth beauty')
const context = { info: text('Ode on a Grecian Urn'), aad: text('Count-0') }

describe('vectors', () => {
  test('RFC 9180 A.1.1: base mode, AES-128-GCM', () => {
    const sealed = {
      enc: unhex('37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431'),
      ciphertext: unhex('f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a'),
    }
    const recipient = importX25519Pair(unhex('4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8'))
    expect(open(sealed, { ...context, recipient, aead: 'aes-128-gcm' })).toEqual(message)
  })

  test('RFC 9180 A.1.3: auth mode, AES-128-GCM', () => {
    const sealed = {
      enc: unhex('23fb952571a14a25e3d678140cd0e5eb47a0961bb18afcf85896e5453c312e76'),
      ciphertext: unhex('5fd92cc9d46dbf8943e72a07e42f363ed5f721212cd90bcfd072bfd9f44e06b80fd17824947496e21b680c141b'),
    }
    const recipient = importX25519Pair(unhex('fdea67cf831f1ca98d8e27b1f6abeb5b7745e9d35348b80fa407ff6958f9137e'))
    const sender = unhex('8b0c70873dc5aecb7f9ee4e62406a397b350e57012be45cf53b7105ae731790b')
    expect(open(sealed, { ...context, recipient, sender, aead: 'aes-128-gcm' })).toEqual(message)
  })

  test('from the RFC’s authors for AES-256-GCM: base mode', () => {
    const sealed = {
      enc: unhex('6c93e09869df3402d7bf231bf540fadd35cd56be14f97178f0954db94b7fc256'),
      ciphertext: unhex('e5d84cd531cfb583096e7cfa9641bd3079cf3a91cda813c52deb5f512be9931980a41de125a925cdad859d5b7a'),
    }
    const recipient = importX25519Pair(unhex('497b4502664cfea5d5af0b39934dac72242a74f8480451e1aee7d6a53320333d'))
    expect(open(sealed, { ...context, recipient })).toEqual(message)
  })
})

describe('opens only with the same parameters', () => {
  const recipient = createX25519Pair()
  const sender = createX25519Pair()
  const base = seal(message, { ...context, recipient: recipient.publicKey })
  const auth = seal(message, { ...context, recipient: recipient.publicKey, sender })

  test('base and auth', () => {
    expect(open(base, { ...context, recipient })).toEqual(message)
    expect(open(auth, { ...context, recipient, sender: sender.publicKey })).toEqual(message)
    expect(base.enc).not.toEqual(auth.enc)
  })

  test.each([
    ['another recipient', { recipient: createX25519Pair() }],
    ['another info', { info: text('Ode on a Grecian Urm') }],
    ['another aad', { aad: text('Count-1') }],
    ['no sender', { sender: undefined }],
    ['another sender', { sender: createX25519Pair().publicKey }],
    ['a sender of small order', { sender: new Uint8Array(32) }],
  ])('%s', (_, changes) => {
    const { sender: from, ...rest } = { ...context, recipient, sender: sender.publicKey, ...changes }
    expect(() => open(auth, from === undefined ? rest : { ...rest, sender: from })).toThrow()
  })

  test('a message in base mode does not open in auth mode', () => {
    expect(() => open(base, { ...context, recipient, sender: sender.publicKey })).toThrow()
  })

  test('any byte changed, cut off or added', () => {
    for (const name of ['enc', 'ciphertext'] as const) {
      for (let index = 0; index < base[name].length; index += 7) {
        // The highest bit of an X25519 key is ignored, but the key's hash differs.
        const changed = base[name].map((byte, at) => (at === index ? byte ^ 0x80 : byte))
        expect(() => open({ ...base, [name]: changed }, { ...context, recipient })).toThrow()
      }
      expect(() => open({ ...base, [name]: base[name].slice(1) }, { ...context, recipient })).toThrow()
      expect(() => open({ ...base, [name]: new Uint8Array([...base[name], 0]) }, { ...context, recipient })).toThrow()
      expect(() => open({ ...base, [name]: new Uint8Array() }, { ...context, recipient })).toThrow()
    }
  })

  test('uses no shared buffer pool for its bytes', () => {
    const { enc, ciphertext } = seal(message, { ...context, recipient: recipient.publicKey, sender })
    const opened = open({ enc, ciphertext }, { ...context, recipient, sender: sender.publicKey })
    for (const bytes of [enc, ciphertext, opened]) expect(bytes.buffer.byteLength).toBe(bytes.byteLength)
  })

  test('rejects sealing to a key of small order, or of another length', () => {
    for (const key of [new Uint8Array(32), new Uint8Array(32).fill(1, 0, 1), new Uint8Array(31), new Uint8Array(33)]) {
      expect(isX25519Key(key)).toBe(false)
      expect(() => seal(message, { ...context, recipient: key })).toThrow()
    }
    expect(isX25519Key(recipient.publicKey)).toBe(true)
  })
})
