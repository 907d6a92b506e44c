import { createCipheriv, createDecipheriv } from 'node:crypto'
import { concatBytes } from '@countersign/protocol/core'
import { expand, extract } from './hkdf.ts'
import { agree, createX25519Pair, type X25519Pair } from './x25519.ts'

/*
 * Hybrid public key encryption (RFC 9180), one message per key: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. In base mode, anyone
 * may
 * have sealed a message. In auth mode, only the holder of the sender's key can.
 */

/** The encapsulated key, 32 bytes, and the ciphertext with its tag. */
export type Sealed = { enc: Uint8Array; ciphertext: Uint8Array }

/** The purpose of a message (`info`) and its context (`aad`). It opens only with the same ones. */
export type SealContext = { info: Uint8Array; aad: Uint8Array }

/** RFC 9180 §7.3. The smaller one is only for the RFC's vectors. */
const AEADS = { 'aes-128-gcm': { id: 1, keyBytes: 16 }, 'aes-256-gcm': { id: 2, keyBytes: 32 } } as const
type Aead = keyof typeof AEADS

const encoder = new TextEncoder()
const VERSION = encoder.encode('HPKE-v1')
const KEM_SUITE = concatBytes(encoder.encode('KEM'), toU16(0x0020))
const EMPTY = new Uint8Array()
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals to a public key. With a sender, the recipient can authenticate it. */
export function seal(
  plaintext: Uint8Array,
  { recipient, sender, info, aad }: SealContext & { recipient: Uint8Array; sender?: X25519Pair },
): Sealed {
  const ephemeral = createX25519Pair()
  const parts = [agree(ephemeral.privateKey, recipient)]
  if (sender !== undefined) parts.push(agree(sender.privateKey, recipient))
  const senderKey = sender?.publicKey
  const shared = deriveShared(concatBytes(...parts), { enc: ephemeral.publicKey, recipient, senderKey })
  const { key, nonce } = scheduleKeys(shared, { info, isAuth: sender !== undefined, aead: 'aes-256-gcm' })
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(aad)
  const ciphertext = concatBytes(cipher.update(plaintext), cipher.final(), cipher.getAuthTag())
  for (const secret of [...parts, shared, key]) secret.fill(0)
  return { enc: ephemeral.publicKey, ciphertext }
}

/** Opens a message to this key, from this sender if given. Throws if anything differs. */
export function open(
  { enc, ciphertext }: Sealed,
  { recipient, sender, info, aad, aead = 'aes-256-gcm' }: OpenParameters,
): Uint8Array<ArrayBuffer> {
  if (ciphertext.length < TAG_BYTES) throw new Error('a ciphertext that is cut short')
  const parts = [agree(recipient.privateKey, enc)]
  if (sender !== undefined) parts.push(agree(recipient.privateKey, sender))
  const shared = deriveShared(concatBytes(...parts), { enc, recipient: recipient.publicKey, senderKey: sender })
  const { key, nonce } = scheduleKeys(shared, { info, isAuth: sender !== undefined, aead })
  try {
    const decipher = createDecipheriv(aead, key, nonce, { authTagLength: TAG_BYTES }).setAAD(aad)
    decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES))
    const parts = [decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]
    const plaintext = concatBytes(...parts)
    for (const part of parts) part.fill(0)
    return plaintext
  } finally {
    for (const secret of [...parts, shared, key]) secret.fill(0)
  }
}

type OpenParameters = SealContext & { recipient: X25519Pair; sender?: Uint8Array; aead?: Aead }

/** RFC 9180 §4.1, `ExtractAndExpand`. */
function deriveShared(
  agreed: Uint8Array,
  { enc, recipient, senderKey }: { enc: Uint8Array; recipient: Uint8Array; senderKey: Uint8Array | undefined },
): Uint8Array {
  const context = concatBytes(enc, recipient, senderKey ?? EMPTY)
  const extracted = labeledExtract(KEM_SUITE, EMPTY, 'eae_prk', agreed)
  const shared = labeledExpand(KEM_SUITE, extracted, 'shared_secret', context, 32)
  for (const secret of [agreed, extracted]) secret.fill(0)
  return shared
}

/** RFC 9180 §5.1, `KeySchedule` without a pre-shared key. */
function scheduleKeys(shared: Uint8Array, { info, isAuth, aead }: { info: Uint8Array; isAuth: boolean; aead: Aead }) {
  const { id, keyBytes } = AEADS[aead]
  const suite = concatBytes(encoder.encode('HPKE'), toU16(0x0020), toU16(0x0001), toU16(id))
  const context = concatBytes(
    Uint8Array.of(isAuth ? 2 : 0),
    labeledExtract(suite, EMPTY, 'psk_id_hash', EMPTY),
    labeledExtract(suite, EMPTY, 'info_hash', info),
  )
  const secret = labeledExtract(suite, shared, 'secret', EMPTY)
  const key = labeledExpand(suite, secret, 'key', context, keyBytes)
  const nonce = labeledExpand(suite, secret, 'base_nonce', context, NONCE_BYTES)
  secret.fill(0)
  return { key, nonce }
}

/** RFC 9180 §4. */
function labeledExtract(suite: Uint8Array, salt: Uint8Array, label: string, keyMaterial: Uint8Array): Uint8Array {
  const input = concatBytes(VERSION, suite, encoder.encode(label), keyMaterial)
  const extracted = extract(salt, input)
  input.fill(0)
  return extracted
}

function labeledExpand(suite: Uint8Array, extracted: Uint8Array, label: string, info: Uint8Array, length: number) {
  return expand(extracted, concatBytes(toU16(length), VERSION, suite, encoder.encode(label), info), length)
}

function toU16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 0xff)
}
