import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import { assertStatement, hashLeaf, toStatementBytes, toStatementText } from './statement.ts'
import { assertStatementV2, type StatementV2 } from './statementV2.ts'

const statement: StatementV2 = {
  type: 'countersign/signing/v2',
  kind: 'off-chain',
  keyId: '0a'.repeat(16),
  address: `0x${'1b'.repeat(20)}`,
  publicKey: `04${'2c'.repeat(64)}`,
  subject: '3d'.repeat(32),
  witness: '4e'.repeat(32),
  policy: null,
  approvals: null,
  coordinatorKey: '7b'.repeat(32),
  rule: null,
  session: 'cookie',
  signedAt: '2025-01-02T03:04:05.678Z',
}

describe('statement of version 2', () => {
  test('its bytes are canonical JSON, its leaf SHA-256(0x00 ‖ bytes)', () => {
    const json = `{"address":"0x${'1b'.repeat(20)}","approvals":null,"coordinatorKey":"${'7b'.repeat(32)}","keyId":"${'0a'.repeat(16)}","kind":"off-chain","policy":null,"publicKey":"04${'2c'.repeat(64)}","rule":null,"session":"cookie","signedAt":"2025-01-02T03:04:05.678Z","subject":"${'3d'.repeat(32)}","type":"countersign/signing/v2","witness":"${'4e'.repeat(32)}"}`
    expect(new TextDecoder().decode(toStatementBytes(statement))).toBe(json)
    expect(toHex(hashLeaf(statement))).toBe(createHash('sha256').update(`\0${json}`).digest('hex'))
  })

  test('the fast text equals the canonical JSON, for any order of the members', () => {
    const ruled: StatementV2 = { ...statement, policy: '5f'.repeat(32), approvals: '6a'.repeat(32), rule: 3 }
    for (const one of [statement, ruled]) {
      const reversed = Object.fromEntries(Object.entries(one).toReversed()) as StatementV2
      expect(toStatementText(reversed)).toBe(new TextDecoder().decode(toStatementBytes(one)))
    }
  })

  test('rejects a statement of the other version', () => {
    expect(() => assertStatement(statement)).toThrow(withCode('statement_malformed'))
    const relabelled = { ...statement, type: 'countersign/signing/v1' } as never
    expect(() => assertStatementV2(relabelled)).toThrow(withCode('statement_malformed'))
    expect(() => hashLeaf(relabelled)).toThrow(withCode('statement_malformed'))
  })

  test.each(Object.keys(statement) as (keyof StatementV2)[])('rejects a statement without %s', (name) => {
    const { [name]: _, ...rest } = statement
    expect(() => assertStatementV2(rest)).toThrow(withCode('statement_malformed'))
    for (const value of [undefined, 1n, '', [], {}]) {
      expect(() => assertStatementV2({ ...statement, [name]: value })).toThrow(withCode('statement_malformed'))
    }
  })

  test.each(['keyId', 'publicKey', 'subject', 'witness', 'coordinatorKey', 'policy', 'approvals'] as const)(
    '%s is lower-case hex without 0x',
    (name) => {
      const right = statement[name] ?? 'ab'.repeat(32)
      expect(() => assertStatementV2({ ...statement, [name]: right })).not.toThrow()
      const wrong = [
        `0x${right}`,
        right.toUpperCase(),
        right.slice(2),
        `${right}00`,
        right.replace(/.$/, 'g'),
        `${right}\n`,
      ]
      for (const value of wrong) {
        expect(() => assertStatementV2({ ...statement, [name]: value })).toThrow(withCode('statement_malformed'))
      }
    },
  )

  test.each([
    ['an unknown kind', { kind: 'message' }],
    ['a kind of another case', { kind: 'Transaction' }],
    ['no kind', { kind: null }],
    ['an address with an EIP-55 checksum', { address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' }],
    ['an address without 0x', { address: '1b'.repeat(20) }],
    ['a compressed key', { publicKey: `02${'2c'.repeat(64)}` }],
    ['a time without milliseconds', { signedAt: '2025-01-02T03:04:05Z' }],
    ['a day that does not exist', { signedAt: '2025-02-30T03:04:05.678Z' }],
    ['a time before 1970', { signedAt: '1969-12-31T23:59:59.999Z' }],
    ['a member too many', { digest: `0x${'3d'.repeat(32)}` }],
  ])('refuses %s', (_, change) => {
    const wrong = { ...statement, ...change } as StatementV2
    expect(() => assertStatementV2(wrong)).toThrow(withCode('statement_malformed'))
    expect(() => hashLeaf(wrong)).toThrow(withCode('statement_malformed'))
  })

  test.each([
    ['null', null],
    ['text', JSON.stringify(statement)],
    ['a list', Object.values(statement)],
    ['an object that inherits its members', Object.create(statement)],
    ['a getter', Object.defineProperty({ ...statement }, 'kind', { enumerable: true, get: () => 'off-chain' })],
  ])('refuses %s', (_, value) => {
    expect(() => assertStatementV2(value)).toThrow(withCode('statement_malformed'))
  })
})
