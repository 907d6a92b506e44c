import {
  type Hex,
  hashLeaf,
  type SignItem,
  type TransactionItem,
  type TxMetadata,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import fc from 'fast-check'
import { keccak256, serializeTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { createGrant, toSidHash } from '../src/grant/grant.ts'
import { createKeyring, toOwner } from '../src/keys/deriveKey.ts'
import { signItem } from '../src/sign/signItem.ts'
import { createVerifyEs256 } from '../src/vault/es256.ts'
import { createPolicies } from '../src/vault/policies.ts'
import { noBudgets } from '../test/noBudgets.ts'
import { createWitness } from '../test/witness.ts'

const rootSecret = Uint8Array.from({ length: 32 }, (_, index) => index + 1)
const keyring = createKeyring(rootSecret, new Uint8Array(32).fill(0xcc))
const now = Date.parse('2026-06-15T12:00:00.123Z')
const sid = 'ab'.repeat(32)
const coordinatorKey = 'cd'.repeat(32)
const witness = createWitness()
const signatures = { verifyEs256: createVerifyEs256(), verifyEd25519: () => false }
const vaultDeps = { policies: createPolicies(), ...signatures, ...noBudgets }
const USERS = 50
const random = (length: number) => new Uint8Array(length)

/** viem's digest of a transaction, computed without our code. */
export function toDigest(metadata: TxMetadata) {
  return keccak256(serializeTransaction(toViem(metadata)))
}

export function toViem({ gas, value, maxFeePerGas, maxPriorityFeePerGas, ...rest }: TxMetadata) {
  return {
    ...rest,
    type: 'eip1559' as const,
    gas: BigInt(gas),
    value: BigInt(value),
    maxFeePerGas: BigInt(maxFeePerGas),
    maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
  }
}

const wei = fc.oneof(fc.constantFrom(0n, 1n, 127n, 128n, 255n, 256n, 2n ** 64n, 2n ** 255n), fc.bigInt(0n, 2n ** 128n))
const txMetadata = fc
  .record({
    chainId: fc.oneof(fc.constantFrom(1, 11155111, 84532, 127, 128), fc.integer({ min: 1, max: 2 ** 31 })),
    nonce: fc.oneof(fc.constantFrom(0, 1, 127, 128, 255, 256), fc.nat(2 ** 31)),
    to: fc.uint8Array({ minLength: 20, maxLength: 20 }).map(toPrefixedHex),
    value: wei.map(String),
    data: fc.uint8Array({ maxLength: 80 }).map(toPrefixedHex),
    gas: fc.integer({ min: 21000, max: 30_000_000 }).map(String),
    fee: wei,
    tip: wei,
  })
  .map(({ fee, tip, ...rest }): TxMetadata => {
    const [low, high] = fee < tip ? [fee, tip] : [tip, fee]
    return { ...rest, maxFeePerGas: String(high), maxPriorityFeePerGas: String(low) }
  })

export type Session = ReturnType<typeof createSession>

export function createSession(subject: string) {
  const identity = { issuer: 'https://issuer.example', subject, email: null }
  const owner = toOwner(identity)
  const { keyId, address } = keyring.describe(owner)
  const grant = createGrant(keyring.grantKey, {
    owner,
    identity,
    clientKey: null,
    sidHash: toSidHash(sid),
    keyId,
    address,
    exp: now + 1,
  })
  const privateKey = keyring.withPrivateKey(owner, toHex)
  return {
    grant,
    keyId,
    privateKey: Buffer.from(privateKey, 'hex'),
    address: privateKeyToAccount(`0x${privateKey}`).address.toLowerCase(),
  }
}

/** The enclave's signature for a session. Throws if the enclave rejects the request. */
export function signFor(session: Session, item: SignRequest, implementations: readonly Hex[] = []): Hex {
  const { grant, keyId } = session
  const signed = signItem(
    { keyring, now, random, implementations, ...vaultDeps },
    { ...item, sid, grant, keyId, witness },
    { coordinatorKey },
  )
  const subject = 'subject' in signed ? signed.subject : undefined
  if (subject !== undefined && 'signature' in subject) return subject.signature
  const opened = 'opening' in signed ? signed.opening?.signature : undefined
  if (typeof opened === 'object') return opened.signature
  throw new Error(`not signed: ${JSON.stringify(signed)}`)
}

type SignRequest =
  | Pick<TransactionItem & { statementVersion: 2 }, 'kind' | 'statementVersion' | 'digest' | 'txMetadata'>
  | Pick<Extract<SignItem, { kind: 'authorization' }>, 'kind' | 'authorization'>
  | Pick<Extract<SignItem, { kind: 'typed-data' }>, 'kind' | 'content'>

/** Signs random transactions of 50 users. Throws if viem or noble computes another address, digest or signature. */
export function checkRandomTransactions({ runs, seed }: { runs: number; seed: number }): void {
  const sessions = Array.from({ length: USERS }, (_, index) => createSession(`user ${index}`))
  fc.assert(
    fc.property(txMetadata, fc.constantFrom(...sessions), (candidate, session) => {
      const digest = toDigest(candidate)
      const { grant, keyId } = session
      const wanted = { kind: 'transaction', statementVersion: 1, digest, txMetadata: candidate } as const
      const result = signItem(
        { keyring, now, random, implementations: [], ...vaultDeps },
        { ...wanted, sid, grant, keyId, witness },
        { coordinatorKey },
      )
      if ('error' in result || !('txHash' in result.statement)) return false
      const { statement, leaf } = result
      const expected = secp256k1.sign(Buffer.from(digest.slice(2), 'hex'), session.privateKey, {
        prehash: false,
        format: 'recovered',
      })
      const signature = Buffer.concat([expected.subarray(1), Buffer.from([27 + (expected[0] ?? 0)])]).toString('hex')
      return (
        toHex(leaf) === toHex(hashLeaf(statement)) &&
        statement.signature === `0x${signature}` &&
        statement.address === session.address &&
        statement.digest === digest
      )
    }),
    { numRuns: runs, seed },
  )
}
