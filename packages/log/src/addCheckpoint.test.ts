import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { formatAddCheckpoint, parseAddCheckpoint } from './addCheckpoint.ts'
import { parseNote } from './note.ts'

// c2sp.org/tlog-witness.
const example = `old 20852014
PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=
5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=
/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=

example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=
`
const encode = (text: string) => new TextEncoder().encode(text)
const line = `${'A'.repeat(43)}=\n`

describe('a request to a witness (c2sp.org/tlog-witness)', () => {
  test('reads and writes the example of the specification', () => {
    const request = parseAddCheckpoint(encode(example))
    expect(request).toMatchObject({ oldSize: 20_852_014, proof: { length: 4 } })
    expect(parseNote(request.checkpoint).signatures).toHaveLength(2)
    expect(formatAddCheckpoint(request)).toBe(example)
  })

  test('a first checkpoint has no proof', () => {
    const { checkpoint } = parseAddCheckpoint(encode(example))
    const body = formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint })
    expect(body.startsWith('old 0\n\nexample.com')).toBe(true)
    expect(parseAddCheckpoint(encode(body))).toEqual({ oldSize: 0, proof: [], checkpoint })
  })

  test.each([
    ['nothing', ''],
    ['no old size', example.replace('old 20852014\n', '')],
    ['another word', example.replace('old', 'new')],
    ['an old size with a leading zero', example.replace('old 2', 'old 02')],
    ['an old size with a sign', example.replace('old 2', 'old -2')],
    ['an old size of 2^53', example.replace('20852014', '9007199254740992')],
    ['a space after it', example.replace('20852014', '20852014 ')],
    ['a mark at the beginning', `\ufeff${example}`],
    ['an invalid hash', example.replace('PlRN', 'PlR!')],
    ['a hash of 33 bytes', example.replace('PlRNC', 'AAAAPlRNC')],
    ['64 hashes', example.replace(/\n[^\0]*?\n\n/, `\n${line.repeat(64)}\n`)],
    ['no empty line', example.replaceAll('\n\n', '\n')],
    ['carriage returns', example.replaceAll('\n', '\r\n')],
  ])('refused: %s', (_, changed) => {
    expect(changed).not.toBe(example)
    expect(() => parseAddCheckpoint(encode(changed))).toThrow(withCode('add_checkpoint_malformed'))
  })

  test('accepts 63 hashes, and rejects bytes that are not UTF-8', () => {
    expect(parseAddCheckpoint(encode(`old 1\n${line.repeat(63)}\nx`)).proof).toHaveLength(63)
    expect(() => parseAddCheckpoint(Uint8Array.of(0xff, ...encode(example)))).toThrow(
      withCode('add_checkpoint_malformed'),
    )
    expect(() => formatAddCheckpoint({ oldSize: -1, proof: [], checkpoint: '' })).toThrow(
      withCode('add_checkpoint_malformed'),
    )
  })
})
