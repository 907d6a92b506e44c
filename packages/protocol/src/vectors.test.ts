import { createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { decodeEventLog, keccak256, recoverPublicKey, serializeTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { createVectors, toVectorFile } from '../vectors/createVectors.ts'
import {
  computeRoot,
  fromHex,
  type Hex,
  parseCanonicalJson,
  serviceAttestationsAbi,
  toHex,
  verifyEd25519,
} from './index.ts'

const file = readFileSync(new URL('../vectors/protocol-v1.vectors.json', import.meta.url), 'utf8')
const vectors = JSON.parse(file) as ReturnType<typeof createVectors>

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toVectorFile(createVectors()))
})

// From here on, node:crypto and viem check the file, not the code that wrote it.

const unhex = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')
const hash = (algorithm: 'sha256' | 'sha512', ...hexes: string[]) =>
  createHash(algorithm)
    .update(unhex(hexes.join('')))
    .digest('hex')
const tag = (name: string) => Buffer.from(`countersign/${name}/v1\0`).toString('hex')
const integer = (value: number, bytes: number) => value.toString(16).padStart(2 * bytes, '0')

/** The part of RFC 8785 for ASCII names and integers. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${sortedJson((value as Record<string, unknown>)[name])}`).join(',')}}`
}

function importEd25519({ privateKey, publicKey }: { privateKey: string; publicKey: string }) {
  const [d, x] = [privateKey, publicKey].map((hex) => unhex(hex).toString('base64url')) as [string, string]
  const key = { kty: 'OKP', crv: 'Ed25519', x }
  return {
    secret: createPrivateKey({ key: { ...key, d }, format: 'jwk' }),
    public: createPublicKey({ key, format: 'jwk' }),
  }
}

function merkleRoot(leaves: string[]): string {
  if (leaves.length === 1) return leaves[0] as string
  const k = 2 ** Math.ceil(Math.log2(leaves.length) - 1)
  return hash('sha256', '01', merkleRoot(leaves.slice(0, k)), merkleRoot(leaves.slice(k)))
}

describe('vectors, checked with independent code', () => {
  test('tags', () => {
    for (const { tag, bytes } of vectors.tags) expect(bytes).toBe(Buffer.from(`${tag}\0`).toString('hex'))
  })

  test('canonical JSON', () => {
    for (const { json, utf8 } of vectors.canonicalJson.accepted) {
      expect(unhex(utf8).toString()).toBe(json)
      expect(parseCanonicalJson(unhex(utf8), { maxBytes: 1000 })).toEqual(JSON.parse(json))
    }
    for (const { utf8 } of vectors.canonicalJson.refused) {
      expect(() => parseCanonicalJson(unhex(utf8), { maxBytes: 1000 })).toThrow(withCode('json_not_canonical'))
    }
  })

  test('statement and leaf', () => {
    const { statement, json, leaf } = vectors.statement
    expect(json).toBe(sortedJson(statement))
    expect(leaf).toBe(hash('sha256', '00', Buffer.from(json).toString('hex')))
    expect(statement.entropyHash).toBe(vectors.entropy.entropyHash)
    expect(statement.coordinatorKey).toBe(vectors.keys.coordinator.publicKey)
    expect(statement.signature).toBe(vectors.transactions[0]?.signature)
  })

  test('trees', () => {
    expect(vectors.trees.map(({ treeSize }) => treeSize)).toEqual([1, 2, 3, 5, 8])
    for (const { treeSize, leaves, root, paths } of vectors.trees) {
      expect([leaves.length, paths.length]).toEqual([treeSize, treeSize])
      expect(root).toBe(merkleRoot(leaves))
      for (const [leafIndex, path] of paths.entries()) {
        const inclusion = { leaf: fromHex(leaves[leafIndex] as string), leafIndex, treeSize, path: path.map(fromHex) }
        expect(toHex(computeRoot(inclusion))).toBe(root)
      }
    }
  })

  test('configuration', () => {
    const { config, json, configHash } = vectors.config
    expect(json).toBe(sortedJson(config))
    expect(configHash).toBe(createHash('sha256').update(json).digest('hex'))
  })

  test('batches, each with the hash of the previous one', () => {
    let previous = '00'.repeat(32)
    for (const [index, batch] of vectors.batches.entries()) {
      expect([batch.batchSequence, batch.previousBatchHash]).toEqual([index, previous])
      const counts = [integer(batch.treeSize, 4), integer(batch.batchSequence, 8)] as const
      const fields = [counts[0], batch.root, batch.bootId, counts[1], batch.previousBatchHash, batch.configHash]
      expect(batch.preimage).toBe([tag('tdx-report'), ...fields].join(''))
      expect(batch.reportData).toBe(hash('sha512', batch.preimage))
      expect(batch.batchHash).toBe(hash('sha256', batch.reportData))
      previous = batch.batchHash
    }
    expect(vectors.batches[0]?.root).toBe(vectors.statement.leaf)
  })

  test('report data of the TLS key and of the coordinator', () => {
    const { enclaveAttest, snpReport } = vectors
    const attestFields = [enclaveAttest.tlsKeyHash, enclaveAttest.nonce, enclaveAttest.configHash]
    expect(enclaveAttest.preimage).toBe([tag('enclave-attest'), ...attestFields].join(''))
    expect(enclaveAttest.reportData).toBe(hash('sha512', enclaveAttest.preimage))
    expect(snpReport.preimage).toBe([tag('snp-report'), snpReport.publicKey, snpReport.configHash].join(''))
    expect(snpReport.reportData).toBe(hash('sha512', snpReport.preimage))
  })

  test('the root secret: transfer, backup and recovery', () => {
    const { policy, joiner, donor, backup, recovery, share } = vectors.rootSecret
    expect(policy.json).toBe(sortedJson(policy.policy))
    expect(policy.policyHash).toBe(createHash('sha256').update(policy.json).digest('hex'))
    expect(policy.rootSecret).toBe(`attested:sha256:${policy.policyHash}`)
    const { challenge, nonce, publicKey, configHash } = joiner
    const asked = [challenge, nonce, publicKey]
    expect(joiner.preimage).toBe([tag('key-transfer'), '01', ...asked, configHash].join(''))
    const given = [donor.enc, donor.ciphertextHash]
    expect(donor.preimage).toBe([tag('key-transfer'), '02', ...asked, ...given, configHash].join(''))
    expect(backup.preimage).toBe([tag('root-backup'), backup.backupHash, configHash].join(''))
    const waiting = [recovery.nonce, recovery.publicKey, backup.backupHash]
    expect(recovery.preimage).toBe([tag('root-recovery'), ...waiting, configHash].join(''))
    for (const quoted of [joiner, donor, backup, recovery]) {
      expect(quoted.reportData).toBe(hash('sha512', quoted.preimage))
    }
    const place = integer(share.index, 4)
    const facts = [policy.policyHash, configHash, share.commitment, integer(share.threshold, 4), place]
    expect(share.context).toBe([tag('root-share'), ...facts].join(''))
    expect(share.hash).toBe(hash('sha256', tag('root-share-hash'), place, share.share))
    expect(share.submissionContext).toBe([tag('root-submission'), backup.backupHash, configHash, place].join(''))
  })

  test('release', () => {
    const { leaf, collateralHash, selfAttestationHash, witnessHash, message, signature } = vectors.release
    const key = importEd25519(vectors.keys.coordinator)
    expect(message).toBe([tag('release'), leaf, collateralHash, selfAttestationHash, witnessHash].join(''))
    expect(sign(null, unhex(message), key.secret).toString('hex')).toBe(signature)
    expect(verify(null, unhex(message), key.public, unhex(signature))).toBe(true)
    expect(verifyEd25519(fromHex(vectors.keys.coordinator.publicKey), fromHex(signature), fromHex(message))).toBe(true)
  })

  test('entropy', () => {
    const { value, timestamp, timestampMs, sequence, message, signature, entropyHash } = vectors.entropy
    expect(Date.parse(timestamp)).toBe(timestampMs)
    expect(message).toBe([tag('entropy'), value, integer(timestampMs, 8), integer(sequence, 8)].join(''))
    expect(sign(null, unhex(message), importEd25519(vectors.keys.satellite).secret).toString('hex')).toBe(signature)
    expect(entropyHash).toBe(hash('sha256', value))
  })

  test('transactions', async () => {
    const account = privateKeyToAccount(`0x${vectors.keys.wallet.privateKey}`)
    expect(account.publicKey).toBe(`0x${vectors.keys.wallet.publicKey}`)
    expect(account.address.toLowerCase()).toBe(vectors.keys.wallet.address)
    for (const {
      txMetadata,
      unsigned,
      digest,
      signature,
      signed,
      txHash,
      publicKey,
      address,
    } of vectors.transactions) {
      const transaction = {
        ...txMetadata,
        type: 'eip1559',
        value: BigInt(txMetadata.value),
        gas: BigInt(txMetadata.gas),
        maxFeePerGas: BigInt(txMetadata.maxFeePerGas),
        maxPriorityFeePerGas: BigInt(txMetadata.maxPriorityFeePerGas),
      } as const
      expect(serializeTransaction(transaction)).toBe(unsigned)
      expect(keccak256(unsigned)).toBe(digest)
      // RFC 6979: another signer gives the same bytes.
      expect(await account.sign({ hash: digest })).toBe(signature)
      expect(await account.signTransaction(transaction)).toBe(signed)
      expect(keccak256(signed)).toBe(txHash)
      expect(await recoverPublicKey({ hash: digest, signature })).toBe(`0x${publicKey}`)
      expect(address).toBe(vectors.keys.wallet.address)
    }
  })

  test('events', () => {
    for (const { topics, data, wallet, txHash, ipfsCid } of vectors.events) {
      const log = { abi: serviceAttestationsAbi, topics: topics as [Hex, ...Hex[]], data }
      const { args } = decodeEventLog({ ...log, strict: true })
      expect({ ...args, wallet: args.wallet.toLowerCase() }).toEqual({ wallet, txHash, ipfsCid })
    }
  })
})
