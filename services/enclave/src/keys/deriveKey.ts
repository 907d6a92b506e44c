import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import {
  concatBytes,
  fromHex,
  type Hex,
  type OwnerOpening,
  preimages,
  tags,
  toAddress,
  toCanonicalJson,
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

/** The order of secp256k1 minus one. A wallet key is a number below it, plus one, so it is never zero. */
const ORDER_LESS_ONE = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140n
const INDEX = toU32be(0)

/** The public part of a wallet key. */
export type WalletKey = { keyId: string; address: Hex; publicKey: string }

/** Names a key: an owner's own, or that of their vault with this policy hash (32 bytes, hex). */
type KeyName = string | { owner: string; policy: string }

/** Everything derived from the root secret. With `sign/`, the only code that handles private keys. */
export type Keyring = Grants & {
  describe(name: KeyName): WalletKey
  /** Opens the commitment to the owner of a key's address. The same each time, so that an opening is never lost. */
  openOwner(keyId: string, identity: Identity): OwnerOpening
  /** Passes a private key to `use`, then overwrites it. */
  withPrivateKey<Result>(name: KeyName, use: (privateKey: Uint8Array) => Result): Result
  /** The Ed25519 key that signs checkpoints of the log with this origin. */
  deriveLogKey(origin: string): KeyObject
}

/** The owner of a key: SHA-256(iss ‖ 0x00 ‖ sub), in hex. */
export function toOwner({ issuer, subject }: Pick<Identity, 'issuer' | 'subject'>): string {
  return createHash('sha256').update(`${issuer}\0${subject}`).digest('hex')
}

/** How many public keys of wallets, and of vaults, to cache. Each costs a point multiplication. */
const MAX_REMEMBERED = 10_000

/**
 * The grant key depends on the configuration too: a grant must not stay valid if the enclave no longer trusts its issuer or the same
 * certificate authorities.
 */
export function createKeyring(rootSecret: Uint8Array, configHash: Uint8Array): Keyring {
  // Done once, because it doesn't depend on the derived key.
  const extracted = extract(new Uint8Array(), rootSecret)
  const keyIdKey = expand(extracted, Buffer.from(tags.keyId), 32)
  const ownerSaltKey = expand(extracted, toTagBytes(tags.ownerSalt), 32)
  const wallets = new Map<string, WalletKey>()
  // Separate from wallets, so that naming many policies can't evict other users' wallets.
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
    openOwner(keyId, identity) {
      const identityHash = createHash('sha256').update(toCanonicalJson(identity)).digest()
      return { salt: toHex(hmacSha256(ownerSaltKey, concatBytes(fromHex(keyId), identityHash))), identity }
    },
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
 * HKDF-SHA-256(root, salt "", info), 48 bytes, as a number mod (n − 1), plus 1. The info of a wallet is tag ‖ 0x00 ‖ owner ‖ u32be index. A
 * vault has a separate tag.
 */
function derivePrivateKey(extracted: Uint8Array, name: KeyName): Uint8Array {
  const wide = expand(extracted, typeof name === 'string' ? toWalletKeyInfo(name) : toVaultKeyInfo(toVault(name)), 48)
  // 48 bytes rather than 32, so that the reduction has no bias. JavaScript can't overwrite the number.
  const scalar = (BigInt(`0x${Buffer.from(wide.buffer).toString('hex')}`) % ORDER_LESS_ONE) + 1n
  wide.fill(0)
  return fromHex(scalar.toString(16).padStart(64, '0'))
}

/** PKCS #8 of an Ed25519 key (RFC 8410 §7) without its 32 bytes. */
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

/** Public, but can't be linked to a person: computing it takes the root secret. */
function deriveKeyId(keyIdKey: Uint8Array, owner: string): string {
  const mac = hmacSha256(keyIdKey, concatBytes(fromHex(owner), INDEX))
  return mac.subarray(0, 16).toString('hex')
}

/** Can't be linked to a person or to the person's other keys. */
function deriveVaultKeyId(extracted: Uint8Array, name: Exclude<KeyName, string>): string {
  return toHex(expand(extracted, toVaultKeyIdInfo(toVault(name)), 16))
}
