import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hashMessage, hashTypedData, recoverAddress } from 'viem'
import { hashAuthorization } from 'viem/utils'
import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { createVectorsV2, toVectorFileV2 } from '../vectors/createVectorsV2.ts'
import v1 from '../vectors/protocol-v1.vectors.json' with { type: 'json' }
import session from '../vectors/session-v1.vectors.json' with { type: 'json' }
import vault from '../vectors/vault-v1.vectors.json' with { type: 'json' }
import {
  type AuthorizationSubject,
  assertOpening,
  assertStatementV2,
  computeCommitment,
  parseOpening,
  tags,
  toHex,
  verifyDrandWitness,
} from './index.ts'

const file = readFileSync(new URL('../vectors/protocol-v2.vectors.json', import.meta.url), 'utf8')
const vectors = JSON.parse(file) as ReturnType<typeof createVectorsV2>

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toVectorFileV2(createVectorsV2()))
})

test('every tag is in one file of vectors', () => {
  const listed = [...v1.tags, ...vectors.tags, ...vault.tags, ...session.tags].map(({ tag }) => tag)
  expect(listed.toSorted()).toEqual([...new Set(Object.values(tags))].toSorted())
})

// From here on, node:crypto and viem check the file, not the code that wrote it.

const unhex = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')
const hash = (algorithm: 'sha256' | 'sha512', ...parts: (Buffer | string)[]) =>
  createHash(algorithm)
    .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    .digest('hex')

/** The part of RFC 8785 for ASCII names and integers. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedJson(member)}`).join(',')}}`
}

test('openings', () => {
  for (const { opening, contentCommitment, signatureCommitment, commitment } of vectors.openings) {
    assertOpening(opening)
    if (typeof opening.content === 'string' || typeof opening.signature === 'string') throw new Error('withheld')
    const { salt, ...content } = opening.content
    const c = hash('sha256', 'countersign/opening-content/v1\0', unhex(salt), sortedJson(content))
    const signature = [unhex(opening.signature.salt), unhex(opening.signature.signature)]
    const s = hash('sha256', 'countersign/opening-signature/v1\0', ...signature)
    expect([contentCommitment, signatureCommitment]).toEqual([c, s])
    expect(commitment).toBe(hash('sha256', 'countersign/opening/v1\0', unhex(c), unhex(s)))
  }
})

test('accepts and rejects the files of one opening', () => {
  const commitment = vectors.openings[1]?.commitment
  const runCheck = (text: string) => {
    try {
      return toHex(computeCommitment(parseOpening(new TextEncoder().encode(text)))) === commitment
    } catch (error) {
      expect(error).toEqual(withCode('opening_malformed'))
      return false
    }
  }
  for (const { name, text, isAccepted } of vectors.openingTexts) {
    // Every parser reads the same value, so only the rule distinguishes them.
    expect([name, JSON.parse(text)]).toEqual([name, vectors.openings[1]?.opening])
    expect([name, runCheck(text)]).toEqual([name, isAccepted])
  }
})

test('digests and signatures, checked with viem', async () => {
  const { address } = v1.keys.wallet
  const recovered = async (hash: string, signature: string) =>
    (await recoverAddress({ hash: hash as `0x${string}`, signature: signature as `0x${string}` })).toLowerCase()
  for (const { opening } of vectors.openings) {
    if (typeof opening.content === 'string' || typeof opening.signature === 'string') throw new Error('withheld')
    const { kind, content, digest } = opening.content
    expect(digest).toBe(kind === 'message' ? hashMessage({ raw: content.message }) : hashTypedData(content as never))
    expect(await recovered(digest, opening.signature.signature)).toBe(address)
  }
  const authorization = vectors.subjects.find(({ kind }) => kind === 'authorization')?.subject as AuthorizationSubject
  expect(authorization.digest).toBe(hashAuthorization(authorization))
  expect(await recovered(authorization.digest, authorization.signature)).toBe(address)
})

test('subjects and statements, one of each kind', () => {
  expect(vectors.subjects.map(({ kind }) => kind)).toEqual(['transaction', 'authorization', 'off-chain'])
  for (const [index, { kind, subject, json, hash: subjectHash }] of vectors.subjects.entries()) {
    expect(json).toBe(sortedJson(subject))
    expect(subjectHash).toBe(hash('sha256', 'countersign/subject/v1\0', json))
    const { statement, json: statementJson, leaf } = vectors.statements[index] as (typeof vectors.statements)[number]
    assertStatementV2(statement)
    expect(statement).toMatchObject({ kind, subject: subjectHash, witness: vectors.drand.witnessHash })
    expect(statementJson).toBe(sortedJson(statement))
    expect(leaf).toBe(hash('sha256', '\0', statementJson))
  }
})

test('a round of a beacon', () => {
  const { beacon, witness, json, witnessHash } = vectors.drand
  expect(json).toBe(sortedJson(witness))
  expect(witnessHash).toBe(hash('sha256', json))
  expect(witness.valueHex).toBe(hash('sha256', unhex(witness.signatureHex)))
  expect(Date.parse(witness.timestamp)).toBe((beacon.genesisS + (witness.sequence - 1) * beacon.periodS) * 1000)
  expect(verifyDrandWitness(beacon, witness)).toBe(true)
})

test('report data and release', () => {
  const { snpReport, release } = vectors
  const keys = [unhex(snpReport.ed25519), unhex(hash('sha256', unhex(snpReport.mlDsa65)))]
  const preimage = Buffer.concat([Buffer.from('countersign/snp-report/v2\0'), ...keys, unhex(snpReport.configHash)])
  expect(snpReport.preimage).toBe(preimage.toString('hex'))
  expect(snpReport.reportData).toBe(hash('sha512', preimage))
  const blocks = [release.batchHash, release.collateralHash, release.coordinatorHash]
  expect(release.message).toBe(Buffer.from('countersign/release/v2\0').toString('hex') + blocks.join(''))
})
