// Writes the test vectors of vaults to this folder, computed with this package's functions:
//   node -C source packages/protocol/vectors/createVaultVectors.ts
// `src/vaultVectors.test.ts` compares the file with this script and with independent code.

import { writeFileSync } from 'node:fs'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  computeApprovalChallenge,
  concatBytes,
  fromHex,
  hashSubject,
  type Preimage,
  tags,
  toAddress,
  toAgentApprovalBytes,
  toEventHash,
  toHex,
  toPrefixedHex,
  toTagBytes,
  toU64be,
  toVaultKeyIdInfo,
  toVaultKeyInfo,
} from '../src/index.ts'
import { vaultTags } from './vaultTags.ts'

const sample = (name: string) => sha256(new TextEncoder().encode(name))
const rootSecret = sample('root secret')
const { n } = secp256k1.Point.CURVE()

/** Every vector, as plain JSON. */
export function createVaultVectors() {
  const [owner, other] = [sample('owner'), sample('another owner')]
  const [policyHash, otherPolicyHash] = [sample('policy'), sample('another policy')]
  const vaults = [
    { owner, policyHash },
    { owner, policyHash: otherPolicyHash },
    { owner: other, policyHash },
  ].map(createVault)
  return {
    version: 'countersign-vault-vectors/1',
    notes: [
      'Byte strings are lower-case hex: with 0x where they are values of Ethereum, without elsewhere.',
      'The root secret is SHA-256 of the text "root secret", and the private keys follow from it. Never use them.',
      'Policies stand for themselves by a hash. Vectors of policies are in packages/policy.',
    ],
    tags: vaultTags.map((tag) => ({ tag, bytes: toHex(toTagBytes(tag)) })),
    rootSecret: toHex(rootSecret),
    vaults,
    challenges: (['transaction', 'message', 'typed-data'] as const).map((kind, index) => {
      const vaultAddress = fromHex((vaults[index] as (typeof vaults)[number]).address.slice(2))
      const digest = sample(`digest ${index}`)
      const expiresMs = [1_735_787_045_678, 0, Number.MAX_SAFE_INTEGER][index] as number
      const rule = [0, 1, 254][index] as number
      const fields = [vaultAddress, policyHash, Uint8Array.of(rule, 1 + index), digest, toU64be(expiresMs)]
      const approved = { vaultAddress, policyHash, rule, kind, digest, expiresMs }
      return {
        vaultAddress: toPrefixedHex(vaultAddress),
        policyHash: toHex(policyHash),
        rule,
        kind,
        digest: toPrefixedHex(digest),
        expiresMs,
        preimage: toHex(concatBytes(toTagBytes(tags.approval), ...fields)),
        challenge: toHex(computeApprovalChallenge(approved)),
        /** What the key of a program signs to approve the same. */
        agentApproval: toHex(toAgentApprovalBytes(approved)),
      }
    }),
    addresses: [null, toHex(policyHash)].map((policy, index) => {
      const subject = {
        address: (vaults[index] as (typeof vaults)[number]).address,
        policy,
        owner: toHex(sample(`owner ${index}`)),
      }
      const hash = toHex(hashSubject(subject))
      return { subject, hash, eventHash: toEventHash({ kind: 'address', subject }) }
    }),
  }
}

function createVault(vault: Preimage<'vault'>) {
  const [keyInfo, keyIdInfo] = [toVaultKeyInfo(vault), toVaultKeyIdInfo(vault)]
  const wide = hkdf(sha256, rootSecret, undefined, keyInfo, 48)
  const privateKey = (BigInt(toPrefixedHex(wide)) % (n - 1n)) + 1n
  const publicKey = secp256k1.Point.BASE.multiply(privateKey).toBytes(false)
  return {
    owner: toHex(vault.owner),
    policyHash: toHex(vault.policyHash),
    keyInfo: toHex(keyInfo),
    privateKey: privateKey.toString(16).padStart(64, '0'),
    address: toAddress(publicKey),
    keyIdInfo: toHex(keyIdInfo),
    keyId: toHex(hkdf(sha256, rootSecret, undefined, keyIdInfo, 16)),
  }
}

/** The file, to the byte. */
export function toVaultVectorFile(vectors: ReturnType<typeof createVaultVectors>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

if (import.meta.main) {
  writeFileSync(new URL('vault-v1.vectors.json', import.meta.url), toVaultVectorFile(createVaultVectors()))
}
