import { type Hex, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { describeContent } from './describeContent.ts'

const wallet = `0x${'ab'.repeat(20)}`
const spender = `0x${'5e'.repeat(20)}`
const token = `0x${'70'.repeat(20)}`
const UNLIMITED = (2n ** 256n - 1n).toString()

function message(text: string | Uint8Array, page?: { host: string; chainId: number }) {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text
  const hex: Hex = `0x${toHex(bytes)}`
  return describeContent({ kind: 'message', content: { message: hex } }, page ? { wallet, page } : { wallet })
}

function typed(primaryType: string, content: Record<string, unknown>, types = {}) {
  const domain = { name: 'Token', chainId: 1, verifyingContract: token }
  return describeContent({ kind: 'typed-data', content: { domain, types, primaryType, message: content } }, { wallet })
}

const readFact = ({ facts }: ReturnType<typeof message>, name: string) =>
  facts.find((fact) => fact.name === name)?.value

describe('a message', () => {
  test('keeps its line breaks', () => {
    const words = message('Hello\nworld')
    expect(words).toMatchObject({ title: 'A message', warnings: [] })
    expect(words.facts).toEqual([{ name: 'Message', value: 'Hello\nworld' }])
  })

  test.each([
    ['a cursor', 'a\u001b[2Kb'],
    ['right to left', 'pay \u202eecila'],
    ['a carriage return', 'Bad\rGood'],
    ['nothing visible', 'a\u200bb'],
    ['a letter that fills nothing', 'a\u3164b'],
    ['an invisible mark', 'a\u{e0101}b'],
  ])('cannot hide something behind %s', (_, text) => {
    const words = message(text)
    expect(readFact(words, 'Message')).toContain('\u{fffd}')
    expect(words.facts.map(({ value }) => value).join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(readFact(words, 'Bytes')).toBe(`0x${toHex(new TextEncoder().encode(text))}`)
    expect(words.warnings.join()).toContain('invisible')
  })

  test('that is not text is shown as bytes, with a warning', () => {
    const words = message(new Uint8Array(32).fill(0xee))
    expect(words.facts).toEqual([{ name: 'Bytes', value: `0x${'ee'.repeat(32)}` }])
    expect(words.warnings.join()).toContain('hash')
  })

  const REST = { Version: '1', 'Chain ID': '1', Nonce: 'abcdefgh1', 'Issued At': '2026-06-01T00:00:00Z' }
  const signIn = (lines: Record<string, string>, account = wallet, site = 'shop.example') =>
    `${site} wants you to sign in with your Ethereum account:\n${account}\n\nHello\n\n${Object.entries(lines)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n')}`

  test('of EIP-4361 is described as a login with site and expiry, field by field', () => {
    const end = { 'Expiration Time': '2026-07-01T00:00:00Z', 'Request ID': '7' }
    const text = `${signIn({ URI: 'https://shop.example/x', ...REST, ...end })}\nResources:\n- ipfs://x\n- https://y`
    const words = message(text)
    expect(words.title).toBe('Sign in with Ethereum: shop.example')
    expect(words.warnings).toEqual([
      'Anyone with the signature can sign in to shop.example as this wallet, until 2026-07-01T00:00:00Z.',
    ])
    expect(words.facts.map(({ name, value }) => `${name}=${value}`)).toEqual([
      'Site=shop.example',
      `Account=${wallet}`,
      'Statement=Hello',
      'URI=https://shop.example/x',
      'Version=1',
      'Chain=1',
      'Nonce=abcdefgh1',
      'Issued=2026-06-01T00:00:00Z',
      'Ends=2026-07-01T00:00:00Z',
      'Request=7',
      'Resources=ipfs://x\nhttps://y',
      `Message=${text}`,
    ])
  })

  const whole = signIn({ URI: 'https://shop.example', ...REST })
  const END = '2026-06-02T00:00:00+02:00'
  test.each([
    ['a letter that only looks like another in the site', whole.replace('shop.', 'sh\u043ep.')],
    ['a path in the site', whole.replace('shop.example wants', 'shop.example/evil wants')],
    ['another version', whole.replace('Version: 1', 'Version: 2')],
    ['a short nonce', whole.replace('abcdefgh1', 'abc')],
    ['a field too many', `${whole}\nAlso: all my tokens`],
    ['a statement of two lines', whole.replace('Hello', 'Hello\nworld')],
    ['a cut-off account', whole.replace(wallet, '0x1234')],
    ['white space before it', ` \n\t${whole}`],
    ['ends of lines of another system', whole.replaceAll('\n', '\r\n')],
    ['no site', whole.replace('shop.example wants', ' wants')],
    ['an invalid time of issue', whole.replace('2026-06-01T00:00:00Z', 'today')],
    ['an end that is not a time', `${whole}\nExpiration Time: 2026-06-02`],
    ['a beginning that is not a time', `${whole}\nNot Before: 1780000000`],
    ['an end after the beginning', `${whole}\nNot Before: ${END}\nExpiration Time: ${END}`],
  ])('of EIP-4361 but for %s says that it only looks like one', (_, text) => {
    const words = message(text)
    expect(words.warnings.join()).toContain('doesn’t follow the standard')
    expect(readFact(words, 'Message')).toBe(text.replaceAll(/[\t\r]/g, '\u{fffd}'))
    expect(readFact(words, 'Site')).toBeUndefined()
    // A site may ignore an expiry time in a form that only people can read.
    expect(words.warnings[0]).toMatch(/^Anyone with the signature can sign in .*\. It may never expire\.$/)
    expect(message(whole).warnings.join()).not.toContain('form of the standard')
  })

  test('of EIP-4361 without a site belongs to no page before signing', () => {
    const words = message(whole.replace('shop.example wants', ' wants'), { host: 'shop.example', chainId: 1 })
    expect(words.title).toBe('Sign in with Ethereum: an unnamed site')
    expect(words.warnings.join()).toContain('It is for an unnamed site, not for this page.')
  })

  test('of EIP-4361 with a user name that looks like a site names the site', () => {
    const text = signIn({ URI: 'https://evil.example', ...REST }, wallet, 'shop.example@evil.example')
    expect(message(text).warnings.join()).toContain('The site is evil.example.')
  })

  test('of EIP-4361 for another account or site, or without an expiry, warns', () => {
    const words = message(signIn({ URI: 'https://evil.example', ...REST }, spender)).warnings.join('\n')
    expect(words).toContain('never expires')
    expect(words).toContain(`another account than this wallet: ${spender}`)
    expect(words).toContain('another site: https://evil.example')
  })

  test('of EIP-4361 for another site or chain than the page’s warns before signing', () => {
    const page = { host: 'shop.example', chainId: 1 }
    const usual = message(whole).warnings
    expect(message(whole, page).warnings).toEqual(usual)
    expect(message(whole.replace('shop.example wants', 'SHOP.example wants'), page).warnings.join()).not.toContain(
      'not for this page',
    )
    expect(message(whole, { ...page, host: 'wallet.example' }).warnings.join()).toContain(
      'It is for shop.example, not for this page.',
    )
    expect(message(whole, { ...page, host: 'shop.example:8080' }).warnings.join()).toContain('not for this page')
    expect(message(whole, { ...page, chainId: 10 }).warnings.join()).toContain(
      'It is for chain 1, and this wallet is on chain 10.',
    )
    // A user name that looks like the page's site is not a site.
    const disguised = signIn({ URI: 'https://evil.example', ...REST }, wallet, 'shop.example@evil.example')
    expect(message(disguised, page).warnings.join()).toContain('It is for evil.example, not for this page.')
    const statement = whole.replace('Hello', 'Chain ID: 10')
    expect(message(statement, { ...page, chainId: 10 }).warnings.join()).toContain('It is for chain 1,')
  })

  test('of EIP-4361 with a statement that looks like a field is described by the real field', () => {
    const evil = signIn({ URI: 'https://evil.example', ...REST })
    expect(message(evil.replace('Hello', 'URI: https://shop.example')).warnings.join()).toContain(
      'another site: https://evil.example',
    )
    const words = message(whole.replace('Hello', 'Expiration Time: 2026-06-02T00:00:00Z'))
    expect(readFact(words, 'Statement')).toBe('Expiration Time: 2026-06-02T00:00:00Z')
    expect(words.warnings.join()).toContain('never expires')
  })

  test('that only mentions a login is not a login', () => {
    expect(message(`x\n${signIn({})}`).title).toBe('A message')
  })
})

describe('typed data', () => {
  test('is shown completely, field by field, in the order of its types', () => {
    const types = {
      Mail: [
        { name: 'to', type: 'Person[]' },
        { name: 'text', type: 'string' },
      ],
      Person: [{ name: 'name', type: 'string' }],
    }
    const words = typed('Mail', { text: 'a\u202eb', to: [{ name: 'Bo' }, { name: 'Cy', extra: 1 }], none: [] }, types)
    expect(words.title).toBe('Typed data: Mail')
    expect(words.warnings.join()).toContain('right-to-left')
    expect(words.facts.map(({ name, value }) => `${name}=${value}`)).toEqual([
      'Type=Mail',
      'domain.name=Token',
      'domain.chainId=1',
      `domain.verifyingContract=${token}`,
      'message.to[0].name=Bo',
      'message.to[1].name=Cy',
      'message.to[1].extra=1',
      'message.text=a\u{fffd}b',
      'message.none=(none)',
    ])
  })

  test.each<[string, string, Record<string, unknown>, string[]]>([
    [
      'Permit',
      'Permit',
      { owner: wallet, spender, value: '1000', nonce: 0, deadline: 1_800_000_000 },
      ['EIP-2612', `lets ${spender} take 1000 smallest units of the token ${token}`, '2027-01-15T08:00:00.000Z'],
    ],
    [
      'Permit without limit',
      'Permit',
      { owner: wallet, spender, value: UNLIMITED, deadline: UNLIMITED },
      ['unlimited', 'permanently'],
    ],
    [
      'Permit of DAI, where an expiry of zero is none',
      'Permit',
      { holder: wallet, spender, nonce: 0, expiry: 0, allowed: true },
      ['any amount', 'The signature is valid permanently'],
    ],
    [
      'Permit of DAI with an end',
      'Permit',
      { holder: wallet, spender, nonce: 0, expiry: 16, allowed: true },
      ['any amount', 'The signature is valid until 1970-01-01T00:00:16.000Z'],
    ],
    [
      'Permit of the standard, where a deadline of zero is long past',
      'Permit',
      { owner: wallet, spender, value: 5, nonce: 0, deadline: 0 },
      ['5 smallest units', 'The signature is valid until 1970-01-01T00:00:00.000Z'],
    ],
    [
      'Permit2 allowance',
      'PermitBatch',
      {
        spender,
        details: [
          { token, amount: (2n ** 160n - 1n).toString(), expiration: 0 },
          { token: spender, amount: 2 },
        ],
      },
      ['Permit2', 'unlimited', 'only in the block that uses the signature', '2 smallest units'],
    ],
    [
      'Permit2 transfer',
      'PermitWitnessTransferFrom',
      { permitted: { token, amount: '7' }, spender, deadline: '0x10' },
      ['Permit2', '7 smallest units', '1970-01-01T00:00:16.000Z'],
    ],
    [
      'EIP-3009',
      'TransferWithAuthorization',
      { from: wallet, to: spender, value: 5, validBefore: 10 },
      ['EIP-3009', `5 smallest units of the token ${token} from this wallet to ${spender}`],
    ],
  ])('%s is named, with a warning of what it gives away', (_, primaryType, content, expected) => {
    const { title, sentence, warnings } = typed(primaryType, content)
    expect(sentence).toContain('gives access to tokens')
    expect(warnings.join()).not.toContain('another owner')
    for (const words of expected) expect([title, ...warnings].join('\n')).toContain(words)
  })

  test.each(['Permit', 'PermitSingle', 'PermitBatchTransferFrom', 'ReceiveWithAuthorization'])(
    '%s without its members still warns',
    (primaryType) => {
      for (const content of [
        {},
        { details: 'x', permitted: [1], value: -1, spender: {}, owner: null, deadline: 'soon' },
      ]) {
        expect(typed(primaryType, content).warnings.join()).toContain('Anyone with the signature')
      }
    },
  )

  test('is described even with malformed types or values', () => {
    const types = { Mail: [null, 'x', { name: 'a' }, { name: 'b', type: 'string' }], Other: 'x' }
    const words = typed('Mail', { a: 1n, b: null }, types)
    expect(words.facts.slice(-2)).toEqual([
      { name: 'message.b', value: 'null' },
      { name: 'message.a', value: '1' },
    ])
    expect(typed('Other', { a: 1 }, types).facts.at(-1)).toEqual({ name: 'message.a', value: '1' })
    expect(typed('Permit', { owner: wallet, spender, value: 3n }).warnings.join()).toContain('3 smallest units')
  })

  test('of another owner warns', () => {
    expect(typed('Permit', { owner: spender, spender, value: 1 }).warnings.join()).toContain(
      `another owner than this wallet: ${spender}`,
    )
  })

  test.each<[string, string, Record<string, unknown>]>([
    ['a permit of zero', 'Permit', { owner: wallet, spender, value: '0', deadline: 1_800_000_000 }],
    ['a permit of zero in hex', 'Permit', { owner: wallet, spender, value: '0x00' }],
    ['a permit of DAI that allows nothing', 'Permit', { holder: wallet, spender, nonce: 0, expiry: 0, allowed: false }],
    ['an allowance of Permit2 of zero', 'PermitSingle', { spender, details: { token, amount: 0, expiration: 5 } }],
    [
      'several of them',
      'PermitBatch',
      {
        spender,
        details: [
          { token, amount: 0 },
          { token: spender, amount: '0' },
        ],
      },
    ],
  ])('%s ends an allowance, and gives nothing away', (_, primaryType, content) => {
    const { title, sentence, warnings } = typed(primaryType, content)
    expect(title).toContain('removal of a token allowance')
    expect(sentence).toContain('gives no access')
    expect(warnings).toEqual([])
  })

  test.each<[string, string, Record<string, unknown>]>([
    ['a permit of an unknown amount', 'Permit', { owner: wallet, spender, value: 'x' }],
    ['a permit of nothing and of something', 'Permit', { owner: wallet, spender, value: '7', allowed: false }],
    ['a permit of DAI that is not plainly withdrawn', 'Permit', { holder: wallet, spender, allowed: 'false' }],
    [
      'a batch in which one is given',
      'PermitBatch',
      {
        spender,
        details: [
          { token, amount: 0 },
          { token, amount: 1 },
        ],
      },
    ],
    ['a permit of zero with an extra member', 'Permit', { owner: wallet, spender, value: 0, amount: 7 }],
    ['an allowance of zero with an extra member', 'PermitSingle', { spender, details: { token, amount: 0, more: 7 } }],
    ['an allowance of zero and another', 'PermitSingle', { spender, also: 7, details: { token, amount: 0 } }],
    ['a batch of none', 'PermitBatch', { spender, details: [] }],
  ])('%s still warns', (_, primaryType, content) => {
    const { sentence, warnings } = typed(primaryType, content)
    expect(sentence).toContain('gives access to tokens')
    expect(warnings.join()).toContain('Anyone with the signature')
  })

  test('the removal of another owner’s allowance warns', () => {
    expect(typed('Permit', { owner: spender, spender, value: 0 }).warnings).toEqual([
      `It is for another owner than this wallet: ${spender}.`,
    ])
  })

  test('a cancellation gives no access', () => {
    const words = typed('CancelAuthorization', { authorizer: wallet, nonce: `0x${'00'.repeat(32)}` })
    expect([words.title, words.warnings]).toEqual(['Cancellation of a token transfer (EIP-3009)', []])
    // With a member that the standard lacks, the effect is unknown.
    const other = typed('CancelAuthorization', { authorizer: wallet, to: spender })
    expect([other.title, other.sentence]).toEqual([
      'Typed data: CancelAuthorization',
      expect.stringContaining('depends on the contract'),
    ])
  })
})
