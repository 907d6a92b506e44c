import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import {
  concatBytes,
  fromHex,
  type Hex,
  preimages,
  tags,
  toAddress,
  toHex,
  toPreimage,
  toTagBytes,
  toU32be,
  toVaultKeyIdInfo,
  toVaultKeyInfo,
} from '@countersign/protocol/core'
import { expand, extract, hmacSha256 } from '@countersign/root-secret/sealing'
import { pointFromScalar } from 'tiny-secp256k1'
import type { Grants } from '../grant/grant.ts'
import type { Identity } from '../ports.ts'

/** The order of secp256k1, less one: wallet keys are a number below it, plus one, so none is zero. */
const ORDER_LESS_ONE = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140n
const INDEX = toU32be(0)

/** What is public about a wallet key. */
export type WalletKey = { keyId: string; address: Hex; publicKey: string }

/** Whose key: an owner's own, or that of their vault with a policy of this hash (32 bytes, hex). */
type KeyName = string | { owner: string; policy: string }

/** All that is derived from the root secret. With `sign/`, the only code that touches a private key. */
export type Keyring = Grants & {
  describe(name: KeyName): WalletKey
  /** Lends a private key for the time of a call, then overwrites it. */
  withPrivateKey<Result>(name: KeyName, use: (privateKey: Uint8Array) => Result): Result
  /** The Ed25519 key that signs the checkpoints of the log of this origin. */
  deriveLogKey(origin: string): KeyObject
}

/** Who owns a key: SHA-256(iss ‖ 0x00 ‖ sub), in hex. */
export function toOwner({ issuer, subject }: Identity): string {
  return createHash('sha256').update(`${issuer}\0${subject}`).digest('hex')
}

/** How many public halves of wallets are remembered, and how many of vaults. They are public, and cost a point multiplication each. */
const MAX_REMEMBERED = 10_000

/**
 * The grant key depends on the configuration as well as on the secret: a grant from a time when the enclave trusted another
 * issuer, or other certificate authorities, must not be valid afterwards.
 */
export function createKeyring(rootSecret: Uint8Array, configHash: Uint8Array): Keyring {
  // Done once: it does not depend on what is derived.
  const extracted = extract(new Uint8Array(), rootSecret)
  const keyIdKey = expand(extracted, Buffer.from(tags.keyId), 32)
  const wallets = new Map<string, WalletKey>()
  // Apart, so that nobody can have the wallets of others forgotten by naming many policies.
  const vaults = new Map<string, WalletKey>()

  function withPrivateKey<Result>(name: KeyName, use: (privateKey: Uint8Array) => Result): Result {
    const privateKey = derivePrivateKey(extracted, name)
    try {
      return use(privateKey)
    } finally {
      privateKey.fill(0)
    }
  }

  return {
    grantKey: expand(extracted, toPreimage(preimages.grant, { content: configHash }), 32),
    grants: new Map(),
    withPrivateKey,
    deriveLogKey: (origin) => deriveLogKey(extracted, origin),
    describe(name) {
      const [remembered, key] = typeof name === 'string' ? [wallets, name] : [vaults, `${name.owner} ${name.policy}`]
      const known = remembered.get(key)
      if (known !== undefined) return known
      const publicKey = withPrivateKey(name, (privateKey) => pointFromScalar(privateKey, false))
      if (publicKey === null) throw new Error('a derived key is out of range')
      const walletKey = {
        keyId: typeof name === 'string' ? deriveKeyId(keyIdKey, name) : deriveVaultKeyId(extracted, name),
        address: toAddress(publicKey),
        publicKey: toHex(publicKey),
      }
      if (remembered.size >= MAX_REMEMBERED) remembered.clear()
      remembered.set(key, walletKey)
      return walletKey
    },
  }
}

/**
 * HKDF-SHA-256(root, salt "", info), 48 bytes, as a number mod (n − 1), plus 1. The info of a wallet is tag ‖ 0x00 ‖ owner ‖ u32be index, that
 * of a vault has a tag of its own.
 */
function derivePrivateKey(extracted: Uint8Array, name: KeyName): Uint8Array {
  const wide = expand(extracted, typeof name === 'string' ? toWalletKeyInfo(name) : toVaultKeyInfo(toVault(name)), 48)
  // 48 bytes rather than 32, so that the reduction favours no key. The number cannot be overwritten, only forgotten.
  const scalar = (BigInt(`0x${Buffer.from(wide.buffer).toString('hex')}`) % ORDER_LESS_ONE) + 1n
  wide.fill(0)
  return fromHex(scalar.toString(16).padStart(64, '0'))
}

/** PKCS #8 of an Ed25519 key (RFC 8410 §7), less its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The seed is 32 bytes of HKDF-SHA-256(root, salt "", info): tag ‖ 0x00 ‖ origin. */
function deriveLogKey(extracted: Uint8Array, origin: string): KeyObject {
  const seed = expand(extracted, toPreimage(preimages.log, { origin: Buffer.from(origin) }), 32)
  const der = Buffer.concat([PKCS8, seed])
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  } finally {
    seed.fill(0)
    der.fill(0)
  }
}

const WALLET_TAG = toTagBytes(tags.wallet)

function toWalletKeyInfo(owner: string): Uint8Array {
  return concatBytes(WALLET_TAG, fromHex(owner), INDEX)
}

function toVault({ owner, policy }: Exclude<KeyName, string>) {
  return { owner: fromHex(owner), policyHash: fromHex(policy) }
}

/** Public, but not linkable to a person: without the root secret it cannot be computed from an identity. */
function deriveKeyId(keyIdKey: Uint8Array, owner: string): string {
  const mac = hmacSha256(keyIdKey, concatBytes(fromHex(owner), INDEX))
  return mac.subarray(0, 16).toString('hex')
}

/** As little linkable to a person as that of a wallet, or to the person's other keys. */
function deriveVaultKeyId(extracted: Uint8Array, name: Exclude<KeyName, string>): string {
  return toHex(expand(extracted, toVaultKeyIdInfo(toVault(name)), 16))
}
