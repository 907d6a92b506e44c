import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { toHex } from './hex.ts'
import {
  commitContent,
  commitSignature,
  computeCommitment,
  type Opening,
  type OpeningContent,
  type OpeningSignature,
} from './opening.ts'
import { assertOpening, MAX_OPENING_BYTES, parseOpening, withholdHalf } from './parseOpening.ts'

const content: OpeningContent = {
  salt: '11'.repeat(32),
  kind: 'message',
  digest: `0x${'22'.repeat(32)}`,
  content: { message: '0x68656c6c6f' },
}
const signature: OpeningSignature = { salt: '33'.repeat(32), signature: `0x${'44'.repeat(64)}1b` }
const opening = { content, signature } satisfies Opening
const typed: OpeningContent = {
  salt: content.salt,
  digest: content.digest,
  kind: 'typed-data',
  content: {
    domain: { name: 'A', chainId: 1 },
    types: { Mail: [{ name: 'to', type: 'string' }] },
    primaryType: 'Mail',
    message: { to: 'you' },
  },
}

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const sha256 = (...parts: (string | Buffer)[]) =>
  createHash('sha256').update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))

describe('commitment', () => {
  test('covers both halves, each under its own tag and salt', () => {
    const json = `{"content":{"message":"0x68656c6c6f"},"digest":"0x${'22'.repeat(32)}","kind":"message"}`
    const c = sha256('countersign/opening-content/v1\0', Buffer.alloc(32, 0x11), json).digest()
    const bytes = Buffer.concat([Buffer.alloc(64, 0x44), Buffer.of(27)])
    const s = sha256('countersign/opening-signature/v1\0', Buffer.alloc(32, 0x33), bytes).digest()
    expect(toHex(commitContent(content))).toBe(c.toString('hex'))
    expect(toHex(commitSignature(signature))).toBe(s.toString('hex'))
    expect(toHex(computeCommitment(opening))).toBe(sha256('countersign/opening/v1\0', c, s).digest('hex'))
  })

  test('stays the same with one half withheld', () => {
    for (const half of ['content', 'signature'] as const) {
      const shown = withholdHalf(opening, half)
      expect(shown[half]).toMatch(/^[0-9a-f]{64}$/)
      expect(computeCommitment(shown)).toEqual(computeCommitment(opening))
      expect(withholdHalf(shown, half)).toEqual(shown)
      expect(JSON.stringify(shown)).not.toContain(opening[half].salt)
    }
  })

  test('every changed byte of an opening gives another commitment, or an error', () => {
    for (const one of [
      opening,
      { content: typed, signature },
      withholdHalf(opening, 'content'),
      withholdHalf(opening, 'signature'),
    ]) {
      const bytes = toCanonicalJson(one)
      const expected = toHex(computeCommitment(one))
      let refused = 0
      for (let index = 0; index < bytes.length; index++) {
        for (const mask of [0x01, 0x04, 0x20, 0x80]) {
          const changed = Uint8Array.from(bytes)
          changed[index] = (changed[index] as number) ^ mask
          try {
            expect(toHex(computeCommitment(parseOpening(changed)))).not.toBe(expected)
          } catch (error) {
            expect(error).toEqual(withCode('opening_malformed'))
            refused++
          }
        }
      }
      expect(refused).toBeGreaterThan(bytes.length)
    }
  })
})

describe('reading an opening', () => {
  test('accepts any white space and order of members', () => {
    const text = JSON.stringify({ signature, content }, undefined, 2)
    expect(parseOpening(new TextEncoder().encode(text))).toEqual(opening)
    expect(parseOpening(encode({ content: typed, signature }))).toEqual({ content: typed, signature })
  })

  test('accepts any escapes in strings', () => {
    const text = JSON.stringify({ content: typed, signature }).replace('"Mail"', '"\\u004dail"')
    expect(parseOpening(new TextEncoder().encode(text))).toEqual({ content: typed, signature })
  })

  test.each(['1.0', '1e0', '1E0', '10e-1', '0.1e1', '1.0000000000000000000001'])(
    'rejects the number 1 written as %s',
    (spelling) => {
      const text = JSON.stringify({ content: typed, signature }).replace('"chainId":1', `"chainId":${spelling}`)
      expect(text).toContain(spelling)
      expect(() => parseOpening(new TextEncoder().encode(text))).toThrow(withCode('opening_malformed'))
    },
  )

  test.each(['-0', '9007199254740993', '1e2', '1e400'])('rejects the number %s anywhere', (spelling) => {
    const text = JSON.stringify({ content: { ...content, approvals: [7] }, signature })
    const change = (from: string, to: string) => new TextEncoder().encode(text.replace(from, to))
    expect(() => parseOpening(change('[7]', '["7.0", 7]'))).not.toThrow()
    expect(() => parseOpening(change('[7]', `["7", ${spelling}]`))).toThrow(withCode('opening_malformed'))
  })

  const hash = 'ab'.repeat(32)
  test.each<[string, unknown]>([
    ['null', null],
    ['a list', [content, signature]],
    ['neither half', { content: hash, signature: hash }],
    ['one half missing', { content }],
    ['a member too many', { ...opening, note: 1 }],
    ['a withheld half that is not a hash', { content, signature: 'ab' }],
    ['a withheld half in upper case', { content, signature: hash.toUpperCase() }],
    ['a withheld half with 0x', { content, signature: `0x${hash}` }],
    ['a half that is null', { content, signature: null }],
    ['no salt', { content: { ...content, salt: undefined }, signature }],
    ['a short salt', { content: { ...content, salt: '11' }, signature }],
    ['a salt in upper case', { content, signature: { ...signature, salt: 'AA'.repeat(32) } }],
    ['an unknown kind', { content: { ...content, kind: 'hash' }, signature }],
    ['typed data under the other kind', { content: { ...content, kind: 'typed-data' }, signature }],
    ['a message under the other kind', { content: { ...typed, kind: 'message' }, signature }],
    ['a message as text', { content: { ...content, content: { message: 'hello' } }, signature }],
    ['a message of half a byte', { content: { ...content, content: { message: '0x0' } }, signature }],
    ['content with a member too many', { content: { ...content, content: { message: '0x', to: '' } }, signature }],
    ['typed data without types', { content: { ...typed, content: { ...typed.content, types: undefined } }, signature }],
    [
      'typed data with a list as message',
      { content: { ...typed, content: { ...typed.content, message: [] } }, signature },
    ],
    ['a digest without 0x', { content: { ...content, digest: '22'.repeat(32) }, signature }],
    ['approvals that are not a list', { content: { ...content, approvals: {} }, signature }],
    [
      'a signature with a high s',
      { content, signature: { ...signature, signature: `0x${'44'.repeat(32)}${'ff'.repeat(32)}1b` } },
    ],
    ['a signature of 64 bytes', { content, signature: { ...signature, signature: `0x${'44'.repeat(64)}` } }],
    ['a signature without 0x', { content, signature: { ...signature, signature: `${'44'.repeat(64)}1b` } }],
  ])('%s is refused', (_, value) => {
    expect(() => assertOpening(value)).toThrow(withCode('opening_malformed'))
    expect(() => parseOpening(encode(value))).toThrow(withCode('opening_malformed'))
  })

  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['a member twice', new TextEncoder().encode(`{"content":"${hash}",${JSON.stringify(opening).slice(1)}`)],
    ['too much', new Uint8Array(MAX_OPENING_BYTES + 1).fill(0x20)],
    ['too deep', new TextEncoder().encode(`${'['.repeat(100)}${']'.repeat(100)}`)],
    ['no UTF-8', Uint8Array.of(0xff)],
  ])('%s is refused', (_, bytes) => {
    expect(() => parseOpening(bytes)).toThrow(withCode('opening_malformed'))
  })
})
