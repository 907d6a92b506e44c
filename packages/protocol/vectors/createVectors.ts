// Writes the test vectors of this package to this folder, computed with its own functions:
//   node -C source packages/protocol/vectors/createVectors.ts
// `src/vectors.test.ts` compares the file with this script and with independent code.

import { writeFileSync } from 'node:fs'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  attestationPublishedTopic,
  computeBackupReportData,
  computeDonorReportData,
  computeEnclaveAttestReportData,
  computeJoinerReportData,
  computeRecoveryReportData,
  computeSnpReportData,
  computeTdxReportData,
  concatBytes,
  createInclusionPath,
  type EnclaveConfig,
  encodeSignedTransaction,
  encodeUnsignedTransaction,
  firstPreviousBatchHash,
  fromHex,
  type Hex,
  hashBatch,
  hashEnclaveConfig,
  hashEntropy,
  hashLeaf,
  hashRootSecretPolicy,
  hashShare,
  hashSignedTransaction,
  hashTree,
  hashUnsignedTransaction,
  recoverPublicKey,
  type Statement,
  type TxMetadata,
  tags,
  toAddress,
  toCanonicalJson,
  toEntropyMessage,
  toHex,
  toPrefixedHex,
  toReleaseMessage,
  toRootSecretName,
  toShareContext,
  toStatementBytes,
  toSubmissionContext,
  toTagBytes,
  toU32be,
} from '../src/index.ts'
import { version1Tags } from './version1Tags.ts'

// Test keys are public: RFC 8032 §7.1 test 1 and test 2, and the first account of the usual development mnemonic.
const coordinatorSecret = fromHex('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60')
const satelliteSecret = fromHex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb')
const walletSecret = fromHex('ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
/** Recognizable dummy bytes: the hash of a name. */
const sample = (name: string) => sha256(new TextEncoder().encode(name))

const transactions: { name: string; txMetadata: TxMetadata }[] = [
  {
    name: 'a plain transfer on Sepolia',
    txMetadata: {
      chainId: 11155111,
      nonce: 7,
      to: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
      value: '1000000000000000000',
      data: '0x',
      gas: '21000',
      maxFeePerGas: '30000000000',
      maxPriorityFeePerGas: '1500000000',
    },
  },
  {
    name: 'all zero: every scalar is the empty string',
    txMetadata: {
      chainId: 1,
      nonce: 0,
      to: '0x0000000000000000000000000000000000000000',
      value: '0',
      data: '0x',
      gas: '0',
      maxFeePerGas: '0',
      maxPriorityFeePerGas: '0',
    },
  },
  {
    name: 'one byte of data below 0x80, which is its own encoding',
    txMetadata: {
      chainId: 84532,
      nonce: 127,
      to: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
      value: '127',
      data: '0x7f',
      gas: '128',
      maxFeePerGas: '255',
      maxPriorityFeePerGas: '255',
    },
  },
  {
    name: 'the largest numbers, and 56 bytes of data, the first length with a length of its own',
    txMetadata: {
      chainId: Number.MAX_SAFE_INTEGER,
      nonce: Number.MAX_SAFE_INTEGER,
      to: '0xffffffffffffffffffffffffffffffffffffffff',
      value: String(2n ** 256n - 1n),
      data: `0x${'80'.repeat(56)}`,
      gas: String(2n ** 64n - 1n),
      maxFeePerGas: String(2n ** 256n - 1n),
      maxPriorityFeePerGas: String(2n ** 256n - 1n),
    },
  },
]

const enclaveConfig: EnclaveConfig = {
  issuers: [
    {
      issuer: 'https://accounts.google.com',
      audience: 'client-1.apps.example',
      jwksOrigin: 'https://www.googleapis.com',
    },
    { issuer: 'https://id.example', audience: 'wallet', jwksOrigin: 'https://id.example' },
  ],
  caSet: 'mozilla-2025-01',
  rootSecret: 'dstack',
  quoteSource: 'configfs',
  callerPolicy: 'sha256:5d2f0b1c',
  version: '0.1.0',
}

/** Every vector, as plain JSON. */
export function createVectors() {
  const signed = transactions.map(createTransaction)
  const first = signed[0] as (typeof signed)[number]
  const entropy = createEntropy()
  const statement: Statement = {
    type: tags.signing,
    keyId: toHex(sample('key id').subarray(0, 16)),
    address: first.address,
    publicKey: first.publicKey,
    digest: first.digest,
    signature: first.signature,
    txHash: first.txHash,
    chainId: first.txMetadata.chainId,
    entropyHash: entropy.entropyHash,
    coordinatorKey: toHex(ed25519.getPublicKey(coordinatorSecret)),
    signedAt: '2025-01-02T03:04:05.678Z',
  }
  const leaf = hashLeaf(statement)
  const configHash = hashEnclaveConfig(enclaveConfig)
  return {
    version: 'countersign-protocol-vectors/1',
    notes: [
      'Byte strings are lower-case hex: with 0x where they are values of Ethereum, without elsewhere.',
      'Preimages are given whole, so that an encoder can be checked before its hash. README.md has their tables.',
      'Private keys in this file are published test keys. Never use them.',
    ],
    keys: {
      coordinator: { kind: 'Ed25519, RFC 8032 §7.1 test 1', ...toEd25519Key(coordinatorSecret) },
      satellite: { kind: 'Ed25519, RFC 8032 §7.1 test 2', ...toEd25519Key(satelliteSecret) },
      wallet: {
        kind: 'secp256k1, account 0 of the mnemonic "test test test test test test test test test test test junk"',
        privateKey: toHex(walletSecret),
        publicKey: toHex(secp256k1.getPublicKey(walletSecret, false)),
        address: toAddress(secp256k1.getPublicKey(walletSecret, false)),
      },
    },
    tags: version1Tags.map((tag) => ({ tag, bytes: toHex(toTagBytes(tag)) })),
    canonicalJson: createCanonicalJson(),
    statement: { statement, json: text(toStatementBytes(statement)), leaf: toHex(leaf) },
    trees: [1, 2, 3, 5, 8].map(createTree),
    config: {
      config: enclaveConfig,
      json: text(toCanonicalJson(enclaveConfig)),
      configHash: toHex(configHash),
    },
    batches: createBatches(leaf, configHash),
    enclaveAttest: createEnclaveAttest(configHash),
    snpReport: createSnpReport(),
    rootSecret: createRootSecret(configHash),
    release: createRelease(leaf),
    entropy,
    transactions: signed,
    events: [
      createEvent('a CIDv1 of 59 characters', 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy', first),
      createEvent('exactly one word, so no padding', 'b'.repeat(32), first),
    ],
  }
}

/** The file, to the byte. */
export function toVectorFile(vectors: ReturnType<typeof createVectors>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

function toEd25519Key(secret: Uint8Array) {
  return { privateKey: toHex(secret), publicKey: toHex(ed25519.getPublicKey(secret)) }
}

function createCanonicalJson() {
  const values: unknown[] = [
    { b: 1, a: [true, null, ''], '': {} },
    { '€': 'Euro', '\r': 'CR', '\ufb33': 'Hebrew', '1': 'One', '😀': 'Emoji', '\u0080': 'Control', ö: 'O' },
    [0, -0, 1e21, 1e-7, 4.5, 2e-3, 333333333.3333333, Number.MAX_SAFE_INTEGER],
    '"\\/\b\f\n\r\t\u0001\u007f\u2028',
  ]
  const refused = [
    { why: 'white space', text: '{"a": 1}' },
    { why: 'a line end after the document', text: '{"a":1}\n' },
    { why: 'members out of order', text: '{"b":1,"a":2}' },
    { why: 'a member twice', text: '{"a":1,"a":1}' },
    { why: 'another spelling of 1', text: '{"a":1.0}' },
    { why: 'minus zero', text: '[-0]' },
    { why: 'an integer that a double cannot hold', text: '[9007199254740993]' },
    { why: 'an escape that is not needed', text: '["\\u0061"]' },
    { why: 'a solidus escaped', text: '["\\/"]' },
    { why: 'a lone surrogate', text: '["\\ud800"]' },
    { why: 'a member that would replace a prototype', text: '{"__proto__":{}}' },
    { why: 'a byte order mark', text: '\ufeff{"a":1}' },
  ]
  return {
    accepted: values.map((value) => ({ json: text(toCanonicalJson(value)), utf8: toHex(toCanonicalJson(value)) })),
    refused: refused.map(({ why, text }) => ({ why, utf8: toHex(new TextEncoder().encode(text)) })),
  }
}

function createTree(size: number) {
  const leaves = Array.from({ length: size }, (_, index) => sample(`leaf ${index}`))
  return {
    treeSize: size,
    leaves: leaves.map(toHex),
    root: toHex(hashTree(leaves)),
    paths: leaves.map((_, leafIndex) => createInclusionPath(leaves, leafIndex).map(toHex)),
  }
}

function createBatches(leaf: Uint8Array, configHash: Uint8Array) {
  const bootId = sample('boot').subarray(0, 16)
  const roots = [
    { treeSize: 1, root: hashTree([leaf]) },
    { treeSize: 3, root: hashTree([sample('leaf 0'), sample('leaf 1'), leaf]) },
  ]
  let previousBatchHash: Uint8Array = firstPreviousBatchHash()
  return roots.map(({ treeSize, root }, batchSequence) => {
    const fields = [
      ...[toTagBytes(tags.tdxReport), toU32be(treeSize), root, bootId],
      ...[new Uint8Array(4), toU32be(batchSequence), previousBatchHash, configHash],
    ]
    const reportData = computeTdxReportData({ treeSize, root, bootId, batchSequence, previousBatchHash, configHash })
    const batch = {
      treeSize,
      root: toHex(root),
      bootId: toHex(bootId),
      batchSequence,
      previousBatchHash: toHex(previousBatchHash),
      configHash: toHex(configHash),
      preimage: toHex(concatBytes(...fields)),
      reportData: toHex(reportData),
      batchHash: toHex(hashBatch(reportData)),
    }
    previousBatchHash = hashBatch(reportData)
    return batch
  })
}

function createEnclaveAttest(configHash: Uint8Array) {
  const [tlsKeyHash, nonce] = [sample('TLS key'), sample('nonce')]
  return {
    tlsKeyHash: toHex(tlsKeyHash),
    nonce: toHex(nonce),
    configHash: toHex(configHash),
    preimage: toHex(concatBytes(toTagBytes(tags.enclaveAttest), tlsKeyHash, nonce, configHash)),
    reportData: toHex(computeEnclaveAttestReportData({ tlsKeyHash, nonce, configHash })),
  }
}

/** The transfer of a root secret, its backup and its recovery. The keys are dummy bytes. */
function createRootSecret(configHash: Uint8Array) {
  const policy = {
    measurements: [{ mrTd: toHex(sample('code')) + toHex(sample('more code').subarray(0, 16)) }],
    custodians: { threshold: 2, keys: ['first', 'second', 'third'].map((name) => toHex(sample(`${name} custodian`))) },
  }
  const policyHash = hashRootSecretPolicy(policy)
  const [challenge, nonce, publicKey] = [sample('challenge'), sample('joiner nonce'), sample('joiner key')]
  const [enc, ciphertextHash] = [sample('donor key'), sample('ciphertext')]
  const [backupHash, commitment] = [sample('backup'), sample('commitment')]
  const share = concatBytes(sample('share'), Uint8Array.of(7))
  const quoted = (fields: readonly Uint8Array[], reportData: Uint8Array) => ({
    preimage: toHex(concatBytes(...fields)),
    reportData: toHex(reportData),
  })
  const transfer = toTagBytes(tags.keyTransfer)
  const joiner = { challenge, nonce, publicKey, configHash }
  return {
    policy: {
      policy,
      json: text(toCanonicalJson(policy)),
      policyHash: toHex(policyHash),
      rootSecret: toRootSecretName(toHex(policyHash)),
    },
    joiner: {
      challenge: toHex(challenge),
      nonce: toHex(nonce),
      publicKey: toHex(publicKey),
      configHash: toHex(configHash),
      ...quoted([transfer, Uint8Array.of(1), challenge, nonce, publicKey, configHash], computeJoinerReportData(joiner)),
    },
    donor: {
      enc: toHex(enc),
      ciphertextHash: toHex(ciphertextHash),
      ...quoted(
        [transfer, Uint8Array.of(2), challenge, nonce, publicKey, enc, ciphertextHash, configHash],
        computeDonorReportData({ ...joiner, enc, ciphertextHash }),
      ),
    },
    backup: {
      backupHash: toHex(backupHash),
      ...quoted(
        [toTagBytes(tags.rootBackup), backupHash, configHash],
        computeBackupReportData({ backupHash, configHash }),
      ),
    },
    recovery: {
      nonce: toHex(nonce),
      publicKey: toHex(publicKey),
      ...quoted(
        [toTagBytes(tags.rootRecovery), nonce, publicKey, backupHash, configHash],
        computeRecoveryReportData({ nonce, publicKey, backupHash, configHash }),
      ),
    },
    share: {
      commitment: toHex(commitment),
      threshold: 2,
      index: 1,
      context: toHex(toShareContext({ policyHash, configHash, commitment, threshold: 2, index: 1 })),
      share: toHex(share),
      hash: toHex(hashShare({ index: 1, share })),
      submissionContext: toHex(toSubmissionContext({ backupHash, configHash, index: 1 })),
    },
  }
}

function createSnpReport() {
  const publicKey = ed25519.getPublicKey(coordinatorSecret)
  const configHash = sample('coordinator configuration')
  return {
    publicKey: toHex(publicKey),
    configHash: toHex(configHash),
    preimage: toHex(concatBytes(toTagBytes(tags.snpReport), publicKey, configHash)),
    reportData: toHex(computeSnpReportData({ publicKey, configHash })),
  }
}

function createRelease(leaf: Uint8Array) {
  const collateralHash = sample('collateral')
  const selfAttestationHash = sample('self-attestation')
  const witnessHash = sample('witness')
  const message = toReleaseMessage({ leaf, collateralHash, selfAttestationHash, witnessHash })
  return {
    leaf: toHex(leaf),
    collateralHash: toHex(collateralHash),
    selfAttestationHash: toHex(selfAttestationHash),
    witnessHash: toHex(witnessHash),
    message: toHex(message),
    signature: toHex(ed25519.sign(message, coordinatorSecret)),
  }
}

function createEntropy() {
  const value = sample('entropy')
  const timestamp = '2025-01-02T03:04:05.123Z'
  const timestampMs = Date.parse(timestamp)
  const sequence = 4_294_967_296
  const message = toEntropyMessage({ value, timestampMs, sequence })
  return {
    value: toHex(value),
    timestamp,
    timestampMs,
    sequence,
    message: toHex(message),
    signature: toHex(ed25519.sign(message, satelliteSecret)),
    entropyHash: toHex(hashEntropy(value)),
  }
}

function createTransaction({ name, txMetadata }: (typeof transactions)[number]) {
  const digest = hashUnsignedTransaction(txMetadata)
  const recovered = secp256k1.sign(digest, walletSecret, { prehash: false, format: 'recovered' })
  // noble writes the parity first, as 0 or 1.
  const signature = concatBytes(recovered.subarray(1), Uint8Array.of(27 + (recovered[0] as number)))
  const publicKey = recoverPublicKey(digest, signature)
  return {
    name,
    txMetadata,
    unsigned: toPrefixedHex(encodeUnsignedTransaction(txMetadata)),
    digest: toPrefixedHex(digest),
    signature: toPrefixedHex(signature),
    signed: toPrefixedHex(encodeSignedTransaction(txMetadata, signature)),
    txHash: toPrefixedHex(hashSignedTransaction(txMetadata, signature)),
    publicKey: toHex(publicKey),
    address: toAddress(publicKey),
  }
}

function createEvent(name: string, ipfsCid: string, { address, txHash }: { address: Hex; txHash: Hex }) {
  const characters = new TextEncoder().encode(ipfsCid)
  const padding = new Uint8Array((32 - (characters.length % 32)) % 32)
  const word = (value: number) => concatBytes(new Uint8Array(28), toU32be(value))
  return {
    name,
    topics: [attestationPublishedTopic, `0x${'00'.repeat(12)}${address.slice(2)}`, txHash],
    data: toPrefixedHex(concatBytes(word(32), word(characters.length), characters, padding)),
    wallet: address,
    txHash,
    ipfsCid,
  }
}

if (import.meta.main) {
  writeFileSync(new URL('protocol-v1.vectors.json', import.meta.url), toVectorFile(createVectors()))
}
