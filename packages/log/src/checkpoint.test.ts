import { describe, expect, test } from 'vitest'
import { hash, origin } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import { emptyRoot, formatCheckpoint, parseCheckpoint } from './checkpoint.ts'

// c2sp.org/tlog-checkpoint.
const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n'
const root = hash('root')

describe('checkpoints (c2sp.org/tlog-checkpoint)', () => {
  test('reads and writes the example of the specification', () => {
    const checkpoint = parseCheckpoint(text)
    expect(checkpoint).toMatchObject({ origin: 'example.com/behind-the-sofa', size: 20_852_163, extensions: [] })
    expect(formatCheckpoint(checkpoint)).toBe(text)
    expect(formatCheckpoint(parseCheckpoint(`${text}one\ntwo words\n`))).toBe(`${text}one\ntwo words\n`)
  })

  test('accepts an origin with spaces and plus signs', () => {
    expect(parseCheckpoint(text.replace('example.com/', 'go.sum database+tree ')).origin).toContain('database+tree')
  })

  test.each([
    ['no newline at the end', text.slice(0, -1)],
    ['two lines', text.split('\n').slice(0, 2).join('\n')],
    ['nothing', ''],
    ['an empty origin', text.replace(/^[^\n]*/, '')],
    ['an origin of 256 bytes', text.replace(/^[^\n]*/, 'é'.repeat(128))],
    ['a size with a leading zero', text.replace('\n2', '\n02')],
    ['a size with a sign', text.replace('\n2', '\n+2')],
    ['a size in hex', text.replace('20852163', '0x10')],
    ['a size with a point', text.replace('20852163', '1.0')],
    ['a size of 2^53', text.replace('20852163', '9007199254740992')],
    ['a size of twenty digits', text.replace('20852163', '18446744073709551615')],
    ['no size', text.replace('20852163', '')],
    ['a root of 31 bytes', text.replace(/\nCsU.*=/, `\n${Buffer.alloc(31).toString('base64')}`)],
    ['a root in hex', text.replace(/\nCsU.*=/, `\n${'00'.repeat(32)}`)],
    ['a root in a second spelling', text.replace('q2I=', 'q2J=')],
    ['a root with a space', text.replace('q2I=', 'q2I= ')],
    ['an empty extension line', `${text}\n`],
    ['an empty line between extensions', `${text}one\n\ntwo\n`],
  ])('refused: %s', (_, changed) => {
    expect(changed).not.toBe(text)
    expect(() => parseCheckpoint(changed)).toThrow(withCode('checkpoint_malformed'))
  })

  test.each([
    ['a size that is not a number', { size: -1 }],
    ['a root of 31 bytes', { root: new Uint8Array(31) }],
    ['an origin on two lines', { origin: 'a\nb' }],
    ['an extension on two lines', { extensions: ['a\nb'] }],
    ['an empty extension', { extensions: [''] }],
  ])('not written: %s', (_, changed) => {
    const checkpoint = { origin, size: 1, root, extensions: [] }
    expect(() => formatCheckpoint({ ...checkpoint, ...changed })).toThrow(withCode('checkpoint_malformed'))
  })

  test('the root of the empty tree is the hash of nothing', () => {
    expect(Buffer.from(emptyRoot)).toEqual(Buffer.from(hash('')))
  })
})
