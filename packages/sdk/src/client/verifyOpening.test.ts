import {
  commitContent,
  computeCommitment,
  type Hex,
  type Opening,
  type OpeningContent,
  toCanonicalJson,
  toHex,
  withholdHalf,
} from '@countersign/protocol'
import { afterEach, describe, expect, test, vi } from 'vitest'
import vectors from '../../../protocol/vectors/protocol-v2.vectors.json' with { type: 'json' }
import { createProof } from '../../test/client/network.ts'
import { createTestService } from '../testing/createTestService.ts'
import { ServiceClient } from './ServiceClient.ts'
import { verifyOpening } from './verifyOffChain.ts'

const message: OpeningContent = {
  salt: 'a1'.repeat(32),
  digest: `0x${'c3'.repeat(32)}`,
  kind: 'message',
  content: { message: '0x00ff' },
}
/** Names that sort differently by code unit and by code point, escapes, and values with several JSON spellings. */
const typedData: OpeningContent = {
  ...message,
  kind: 'typed-data',
  content: {
    domain: { name: 'Ünïcode "\\/\u0000\u001f\u007f\u2028 💶' },
    types: { A: [{ type: 'string', name: 'z' }] },
    primaryType: 'A',
    message: {
      '💶': 1,
      '\uffee': true,
      é: [0, -5, 9007199254740991, { b: '', a: '1' }],
      z: [[], {}],
      Z: false,
    },
  },
}
const half = { salt: 'b2'.repeat(32), signature: `0x${'11'.repeat(32)}${'22'.repeat(32)}1b` } as const
const { salt: _, ...shownMessage } = message
const trueBytes = `0x${toHex(toCanonicalJson(shownMessage))}`
const open = (content: OpeningContent): Opening => ({ content, signature: half })
const toProof = (opening: Opening) => ({
  ...createProof('s'),
  kind: 'off-chain' as const,
  txHash: `0x${toHex(computeCommitment(opening))}` as Hex,
})
const mismatch = expect.objectContaining({ name: 'ServiceError', code: 'opening_mismatch', details: 'proof s' })

describe('computes the protocol’s commitment', () => {
  test.each<[string, Opening]>([
    ['a message', open(message)],
    ['typed data', open(typedData)],
    ['an empty message', open({ ...message, kind: 'message', content: { message: '0x' } })],
    ['approvals', open({ ...message, approvals: [{ approver: 1 }] })],
    ...vectors.openings.map(({ opening }, index): [string, Opening] => [`vector ${index}`, opening as Opening]),
  ])('opens with %s: whole, in any order, or half', (_, opening) => {
    const proof = toProof(opening)
    const { content, signature } = opening
    const reversed = Object.fromEntries(Object.entries(content).toReversed()) as OpeningContent
    for (const one of [
      opening,
      { signature, content: reversed },
      withholdHalf(opening, 'content'),
      withholdHalf(opening, 'signature'),
    ]) {
      expect(() => verifyOpening(proof, one)).not.toThrow()
    }
    expect(() => verifyOpening({ ...proof, txHash: `0x${proof.txHash.slice(2).toUpperCase()}` }, opening)).not.toThrow()
  })

  test.each<[string, unknown]>([
    ['another salt of the content', { content: { ...message, salt: `${'a1'.repeat(31)}a2` }, signature: half }],
    ['another salt of the signature', { content: message, signature: { ...half, salt: `${'b2'.repeat(31)}b3` } }],
    ['both salts exchanged', { content: { ...message, salt: half.salt }, signature: { ...half, salt: message.salt } }],
    ['another digest', { content: { ...message, digest: `0x${'c4'.repeat(32)}` }, signature: half }],
    ['another kind', { content: { ...message, kind: 'typed-data' }, signature: half }],
    ['another message', { content: { ...message, content: { message: '0x00fe' } }, signature: half }],
    ['a member more', { content: { ...message, more: 1 }, signature: half }],
    ['another signature', { content: message, signature: { ...half, signature: `${half.signature.slice(0, -1)}c` } }],
    ['a salt that is not hex', { content: { ...message, salt: 'zz'.repeat(32) }, signature: half }],
    ['no salt', { content: { ...message, salt: undefined }, signature: half }],
    ['no halves', {}],
    ['null for a half', { content: null, signature: half }],
    ['a signature that is not a string', { content: message, signature: { ...half, signature: 5 } }],
    ['a content that JSON cannot write', { content: { ...message, content: { message: 5n } }, signature: half }],
    ['the halves exchanged', { content: half, signature: message }],
    [
      'another message, with the bytes of the true one as an additional signature',
      { content: { ...message, content: { message: '0x00fe' }, signature: trueBytes }, signature: half },
    ],
    ['another member with the signature', { content: message, signature: { ...half, content: { message: '0x00fe' } } }],
    [
      'a byte moved from the signature to its salt',
      { content: message, signature: { salt: `${half.salt}11`, signature: `0x${half.signature.slice(4)}` } },
    ],
    [
      'a byte moved from the salt to the signature',
      { content: message, signature: { salt: 'b2'.repeat(31), signature: `0xb2${half.signature.slice(2)}` } },
    ],
    ['a salt in a list', { content: { ...message, salt: [message.salt] }, signature: half }],
    ['a salt in capitals', { content: { ...message, salt: message.salt.toUpperCase() }, signature: half }],
    [
      'a signature in capitals',
      { content: message, signature: { ...half, signature: half.signature.replace('b', 'B') } },
    ],
    ['a withheld half in capitals', { content: toHex(commitContent(message)).toUpperCase(), signature: half }],
  ])('rejects %s with opening_mismatch', (_, opening) => {
    expect(() => verifyOpening(toProof(open(message)), opening as Opening)).toThrow(mismatch)
  })

  test('rejects a proof of a transaction, even with the right hash', () => {
    const { kind: _, ...proof } = toProof(open(message))
    expect(() => verifyOpening(proof, open(message))).toThrow(mismatch)
    expect(() => verifyOpening({ ...proof, kind: 'authorization' }, open(message))).toThrow(mismatch)
  })
})

describe('through the client', () => {
  afterEach(() => void vi.unstubAllGlobals())

  test('an opening of the service opens its own proof and not the next one', async () => {
    const service = createTestService()
    vi.stubGlobal('fetch', service.fetch)
    const client = new ServiceClient(service.config)
    const first = await client.signMessage({ message: 'hello' })
    const second = await client.signMessage({ message: 'hello' })
    const proof = await client.api.getProof(first.attestationSlug)
    await expect(client.verifyOpening(proof, first.opening)).resolves.toBeUndefined()
    await expect(client.verifyOpening(proof, second.opening)).rejects.toMatchObject({ code: 'opening_mismatch' })
  })
})
