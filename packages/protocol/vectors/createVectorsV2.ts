// Writes the test vectors of receipts of version 2 to this folder, computed with this package's functions:
//   node -C source packages/protocol/vectors/createVectorsV2.ts
// `src/vectorsV2.test.ts` compares the file with this script and with independent code.

import { writeFileSync } from 'node:fs'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type AuthorizationSubject,
  commitContent,
  commitSignature,
  computeCommitment,
  computeSnpReportDataV2,
  concatBytes,
  type DrandBeacon,
  type DrandWitness,
  type Hex,
  hashAuthorization,
  hashLeaf,
  hashMessage,
  hashSubject,
  hashTypedData,
  hashWitness,
  type Opening,
  type OpeningContent,
  type OpeningSignature,
  type Signed,
  type StatementV2,
  tags,
  toCanonicalJson,
  toEventHash,
  toHex,
  toPrefixedHex,
  toReleaseMessageV2,
  toRoundTimeMs,
  toStatementBytes,
  toTagBytes,
  toU64be,
} from '../src/index.ts'
import v1 from './protocol-v1.vectors.json' with { type: 'json' }
import { version2Tags } from './version2Tags.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
/** Recognizable dummy bytes: the hash of a name. */
const sample = (name: string) => sha256(new TextEncoder().encode(name))

/** Every vector, as plain JSON. Keys, the transaction and the sample are those of version 1. */
export function createVectorsV2() {
  const beacon = createBeacon()
  const openings = createOpenings()
  const { witness } = beacon
  const subjects = createSubjects(openings[0].commitment)
  return {
    version: 'countersign-protocol-vectors/2',
    notes: [
      'Byte strings are lower-case hex: with 0x where they are values of Ethereum, without elsewhere.',
      'Keys, the transaction and trees are those of protocol-v1.vectors.json. README.md has the tables of the preimages.',
      'The ML-DSA-65 key of snpReport is no key, only bytes in its place.',
    ],
    tags: version2Tags.map((tag) => ({ tag, bytes: toHex(toTagBytes(tag)) })),
    drand: beacon,
    openings,
    openingTexts: createOpeningTexts(openings[1].opening),
    subjects: subjects.map((signed) => ({
      ...signed,
      json: text(toCanonicalJson(signed.subject)),
      hash: toHex(hashSubject(signed.subject)),
      eventHash: toEventHash(signed),
    })),
    statements: subjects.map((signed) => createStatement(signed, witness)),
    snpReport: createSnpReport(),
    release: createRelease(),
  }
}

/** The file, to the byte. */
export function toVectorFileV2(vectors: ReturnType<typeof createVectorsV2>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

function createBeacon() {
  const { secretKey, publicKey } = bls12_381.shortSignatures.keygen(concatBytes(sample('beacon'), new Uint8Array(16)))
  const beacon: DrandBeacon = {
    key: toHex(publicKey.toBytes()),
    chainHash: toHex(sample('drand chain')),
    genesisS: 1_735_780_000,
    periodS: 3,
  }
  const round = 2_345
  const message = bls12_381.shortSignatures.hash(sha256(toU64be(round)), 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_')
  const signature = bls12_381.shortSignatures.sign(message, secretKey).toBytes()
  const witness: DrandWitness = {
    kind: 'drand',
    source: 'drand/test',
    chainHash: beacon.chainHash,
    valueHex: toHex(sha256(signature)),
    signatureHex: toHex(signature),
    publicKey: beacon.key,
    timestamp: new Date(toRoundTimeMs(beacon, round)).toISOString(),
    sequence: round,
  }
  const json = text(toCanonicalJson(witness))
  return { beacon, witness, json, witnessHash: toHex(hashWitness(witness)) }
}

/** By the wallet's key: r ‖ s ‖ v. */
function sign(digest: Uint8Array): Hex {
  const secret = Uint8Array.from(Buffer.from(v1.keys.wallet.privateKey, 'hex'))
  const recovered = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' })
  return `0x${toHex(recovered.subarray(1))}${(27 + (recovered[0] as number)).toString(16)}`
}

function createOpenings() {
  const message = { message: '0x68656c6c6f' } as const
  const typedData = {
    domain: { name: 'Vectors', chainId: 1 },
    types: { Mail: [{ name: 'to', type: 'string' }] },
    primaryType: 'Mail',
    message: { to: 'grüße' },
  }
  const contents: OpeningContent[] = [
    {
      salt: toHex(sample('first salt')),
      kind: 'message',
      digest: toPrefixedHex(hashMessage(message.message)),
      content: message,
    },
    {
      salt: toHex(sample('third salt')),
      kind: 'typed-data',
      digest: toPrefixedHex(hashTypedData(typedData)),
      content: typedData,
    },
  ]
  const openings = contents.map((content) => {
    const signature = sign(Uint8Array.from(Buffer.from(content.digest.slice(2), 'hex')))
    const half: OpeningSignature = { salt: toHex(sample('second salt')), signature }
    const opening: Opening = { content, signature: half }
    return {
      opening,
      contentCommitment: toHex(commitContent(content)),
      signatureCommitment: toHex(commitSignature(half)),
      commitment: toHex(computeCommitment(opening)),
    }
  })
  return openings as [(typeof openings)[number], (typeof openings)[number]]
}

/** Spellings of one opening. Other spellings of a number are rejected, though JSON parsers read the same value. */
function createOpeningTexts({ content, signature }: Opening) {
  const json = text(toCanonicalJson({ content, signature }))
  const respell = (number: string) => json.replace('"chainId":1', `"chainId":${number}`)
  return [
    { name: 'canonical form', text: json, isAccepted: true },
    { name: 'white space', text: json.replaceAll('{', '{ '), isAccepted: true },
    { name: 'another order of members', text: JSON.stringify({ signature, content }), isAccepted: true },
    { name: 'an escape in a string', text: json.replace('"Vectors"', '"V\\u0065ctors"'), isAccepted: true },
    { name: 'a number with a fraction of zero', text: respell('1.0'), isAccepted: false },
    { name: 'a number with an exponent', text: respell('1e0'), isAccepted: false },
    { name: 'a number with a negative exponent', text: respell('10e-1'), isAccepted: false },
    { name: 'a number that rounds to the one', text: respell('1.0000000000000000000001'), isAccepted: false },
    { name: 'a member twice', text: respell('1,"chainId":1'), isAccepted: false },
  ]
}

function createSubjects(commitment: string): Signed[] {
  const [first] = v1.transactions as [(typeof v1.transactions)[number]]
  const { txMetadata, digest, signature, txHash, address } = first
  const transaction = {
    ...txMetadata,
    from: address,
    txHash,
    digestSigned: digest,
    signature,
    signedAt: v1.statement.statement.signedAt,
  }
  const tuple = { chainId: 1, address: `0x${'11'.repeat(20)}`, nonce: 7 } as const
  const bytes = hashAuthorization(tuple)
  const authorization: AuthorizationSubject = { ...tuple, digest: toPrefixedHex(bytes), signature: sign(bytes) }
  return [
    { kind: 'transaction', subject: transaction } as Signed,
    { kind: 'authorization', subject: authorization },
    { kind: 'off-chain', subject: { commitment } },
  ]
}

function createStatement({ kind, subject }: Signed, witness: DrandWitness) {
  const { keyId, address, publicKey, coordinatorKey, signedAt } = v1.statement.statement
  const statement: StatementV2 = {
    type: tags.signingV2,
    kind,
    keyId,
    address: address as `0x${string}`,
    publicKey,
    subject: toHex(hashSubject(subject)),
    witness: toHex(hashWitness(witness)),
    policy: null,
    approvals: null,
    coordinatorKey,
    rule: null,
    session: 'cookie',
    signedAt,
  }
  return { statement, json: text(toStatementBytes(statement)), leaf: toHex(hashLeaf(statement)) }
}

function createSnpReport() {
  const { publicKey, configHash } = v1.snpReport
  const mlDsa65 = concatBytes(...Array.from({ length: 61 }, (_, index) => sample(`ML-DSA-65 key ${index}`)))
  const [key, config] = [publicKey, configHash].map((hex) => Uint8Array.from(Buffer.from(hex, 'hex'))) as [
    Uint8Array,
    Uint8Array,
  ]
  return {
    ed25519: publicKey,
    mlDsa65: toHex(mlDsa65),
    configHash,
    preimage: toHex(concatBytes(toTagBytes(tags.snpReportV2), key, sha256(mlDsa65), config)),
    reportData: toHex(computeSnpReportDataV2({ ed25519: key, mlDsa65, configHash: config })),
  }
}

function createRelease() {
  const [batchHash, collateralHash, coordinatorHash] = [sample('batch'), sample('collateral'), sample('coordinator')]
  return {
    batchHash: toHex(batchHash),
    collateralHash: toHex(collateralHash),
    coordinatorHash: toHex(coordinatorHash),
    message: toHex(toReleaseMessageV2({ batchHash, collateralHash, coordinatorHash })),
  }
}

if (import.meta.main) {
  writeFileSync(new URL('protocol-v2.vectors.json', import.meta.url), toVectorFileV2(createVectorsV2()))
}
