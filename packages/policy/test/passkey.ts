import {
  type ApprovalKind,
  computeApprovalChallenge,
  concatBytes,
  fromHex,
  type Hex,
  type PasskeyApproval,
  toHex,
} from '@countersign/protocol'
import { p256 } from '@noble/curves/nist.js'
import { sha256 } from '@noble/hashes/sha2.js'
import type { Passkey as PasskeyApprover } from '../src/policy.ts'

/** The request to an authenticator, or to an agent. */
export type ApprovalRequest = {
  vaultAddress: Hex
  policyHash: Uint8Array
  rule: number
  kind: ApprovalKind
  digest: Uint8Array
  expiresMs: number
}

/** Changes to an assertion before it is signed, so that it has only this fault. */
export type AssertionChanges = {
  clientData?: Record<string, unknown>
  /** Replaces the JSON of `clientData`. */
  clientDataText?: (text: string) => string
  rpId?: string
  flags?: number
  /** After the 37 bytes. */
  extra?: Uint8Array
  signature?: (signature: { r: bigint; s: bigint }) => Uint8Array
}

export type Passkey = {
  approver: PasskeyApprover
  approve(request: ApprovalRequest, approver: number, changes?: AssertionChanges): PasskeyApproval
}

/** User present and verified, backed up. */
const FLAGS = 0x01 | 0x04 | 0x08 | 0x10

/** r ‖ s over a message. */
type SignEs256 = (message: Uint8Array, secretKey: Uint8Array) => Uint8Array

const signEs256: SignEs256 = (message, secretKey) => p256.sign(message, secretKey, { lowS: false })

/** An authenticator for ES256 with a published key: SHA-256 of its seed in decimal. Node can sign faster than `sign` does by default. */
export function createPasskey(parameters: { seed: number; rpId: string; sign?: SignEs256 }): Passkey {
  const { seed, rpId, sign = signEs256 } = parameters
  const secretKey = sha256(new TextEncoder().encode(String(seed)))
  const origin = `https://${rpId}`
  return {
    approver: { type: 'passkey', publicKey: toHex(p256.getPublicKey(secretKey, false)), rpId, origins: [origin] },
    approve({ vaultAddress, expiresMs, ...request }, approver, changes = {}) {
      const challenge = computeApprovalChallenge({
        ...request,
        expiresMs,
        vaultAddress: fromHex(vaultAddress.slice(2)),
      })
      const members = {
        type: 'webauthn.get',
        challenge: toBase64Url(challenge),
        origin,
        crossOrigin: false,
        ...changes.clientData,
      }
      const text = JSON.stringify(members)
      const clientData = new TextEncoder().encode(changes.clientDataText?.(text) ?? text)
      const rpIdHash = sha256(new TextEncoder().encode(changes.rpId ?? rpId))
      const head = concatBytes(rpIdHash, Uint8Array.of(changes.flags ?? FLAGS, 0, 0, 0, 7))
      const authenticatorData = concatBytes(head, changes.extra ?? new Uint8Array())
      const bytes = sign(concatBytes(authenticatorData, sha256(clientData)), secretKey)
      const parts = p256.Signature.fromBytes(bytes)
      return {
        approver,
        authenticatorData: toHex(authenticatorData),
        clientDataJSON: toHex(clientData),
        signature: toHex(changes.signature?.(parts) ?? toDer(parts)),
        expiresMs,
      }
    },
  }
}

/** Without Node's `Buffer`, because browser tests use this too. */
function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

export function toDer({ r, s }: { r: bigint; s: bigint }): Uint8Array {
  const content = concatBytes(toInteger(r), toInteger(s))
  return concatBytes(Uint8Array.of(0x30, content.length), content)
}

function toInteger(value: bigint): Uint8Array {
  const digits = value.toString(16)
  const bytes = fromHex(digits.padStart(digits.length + (digits.length % 2), '0'))
  const padded = (bytes[0] as number) >= 0x80 ? concatBytes(Uint8Array.of(0), bytes) : bytes
  return concatBytes(Uint8Array.of(0x02, padded.length), padded)
}
