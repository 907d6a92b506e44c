import { expect, test } from 'vitest'
import { parsePem } from './pem.ts'

const body = Buffer.alloc(100, 7).toString('base64')
const lines = body.replace(/.{64}(?=.)/g, '$&\n')
const block = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`

test('RFC 7468: reads one or more certificates, with or without a last line feed', () => {
  expect(parsePem(block(lines))).toEqual([new Uint8Array(100).fill(7)])
  expect(parsePem(block(lines) + block(lines).trimEnd())).toHaveLength(2)
})

test.each([
  ['empty', ''],
  ['text before', ` ${block(lines)}`],
  ['text between', `${block(lines)}\n${block(lines)}`],
  ['text after', `${block(lines)}x`],
  ['blank line before the end', block(`${lines.slice(0, 64)}\n`)],
  ['blank line after', `${block(lines)}\n`],
  ['no end', block(lines).slice(0, -10)],
  ['carriage returns', block(lines).replaceAll('\n', '\r\n')],
  ['other label', block(lines).replaceAll('CERTIFICATE', 'CERTIFICATf')],
  ['one long line', block(body)],
  ['short first line', block(`${body.slice(0, 60)}\n${body.slice(60)}`)],
  ['space in the base64', block(lines.replace('B', ' '))],
  ['padding left out', block(lines.replace(/=+/, ''))],
  ['padding bits set', block(lines.replace(/.(=+)$/, 'x$1'))],
  ['url alphabet', block(lines.replace('B', '-'))],
  ['nothing inside', block('')],
])('rejects another spelling: %s', (_, text) => {
  expect(() => parsePem(text)).toThrow(expect.objectContaining({ code: 'certificate_malformed' }))
})
