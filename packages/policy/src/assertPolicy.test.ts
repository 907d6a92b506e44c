import { createHash } from 'node:crypto'
import { type Hex, toCanonicalJson } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import {
  agent,
  alice,
  beacon,
  bob,
  budgeted,
  full,
  limited,
  passkeys,
  payment,
  satellite,
  scheduled,
  spend,
  toKey,
  tokenTransfer,
} from '../test/policies.ts'
import {
  assertPolicy,
  assertPolicyForm,
  createPolicy,
  hashPolicy,
  MAX_POLICY_BYTES,
  parsePolicy,
  toPolicyBytes,
} from './assertPolicy.ts'
import type { VaultPolicyErrorCode } from './errors.ts'
import type { Policy } from './policy.ts'

const withCode = (code: VaultPolicyErrorCode) => expect.objectContaining({ name: 'VaultPolicyError', code })
const approver = passkeys[0]?.approver
const simple = { version: 1, log: null, approvers: [], rules: [payment] }
const withRule = (...rules: object[]) => ({ ...simple, approvers: [approver], rules })
const withArgument = (argument: object) => withRule({ ...tokenTransfer, arguments: [argument] })
const withApprover = (changes: object) => ({ ...simple, approvers: [{ ...approver, ...changes }] })
const without = (value: object, name: string) =>
  Object.fromEntries(Object.entries(value).filter(([key]) => key !== name))

describe('addresses with a checksum', () => {
  // In ascending order with their capitals, in descending order without.
  const [first, second]: readonly Hex[] = [
    '0xDAFEA492D9c6733ae3d56b7Ed1ADB60692c98Bc5',
    '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
  ]
  const [low, high] = [second, first].map((address) => address?.toLowerCase())
  const withAddresses = (one: unknown, other: unknown) =>
    withRule(
      { ...payment, to: [one, other] },
      { ...tokenTransfer, arguments: [{ at: 0, type: 'address', oneOf: [one, other] }] },
      {
        kind: 'typed-data',
        domains: [{ verifyingContract: one }],
        primaryTypes: 'any',
        approvals: 1,
        approvers: 'any',
      },
    ) as Policy

  test('are converted to lower case before lists are sorted', () => {
    const policy = createPolicy(withAddresses(first, second))
    expect(parsePolicy(toPolicyBytes(policy))).toEqual(policy)
    expect(policy.rules).toContainEqual({ ...payment, to: [low, high] })
    expect(policy.rules).toContainEqual(expect.objectContaining({ domains: [{ verifyingContract: high }] }))
    expect(policy).toEqual(createPolicy(withAddresses(high, low)))
  })

  test('are rejected if the checksum is wrong, with their path', () => {
    const wrong = first?.replace('c5', 'C5')
    const places = [withAddresses(second, wrong), withRule(...withAddresses(wrong, second).rules.slice(1))]
    const where = ['rules[0].to[1]', 'rules[0].arguments[0].oneOf[0]']
    for (const [index, policy] of places.entries()) {
      const details = `${where[index]} has a wrong address checksum (EIP-55)`
      const refusal = expect.objectContaining({ code: 'vault_policy_malformed', details })
      expect(() => createPolicy(policy as Policy)).toThrow(refusal)
    }
  })

  test('count as duplicates if a list has one address in two spellings', () => {
    expect(() => createPolicy(withAddresses(first, high))).toThrow(withCode('vault_policy_malformed'))
  })

  test('are rejected by assertPolicy until they are converted', () => {
    expect(() => assertPolicy(withRule({ ...payment, to: [first] }))).toThrow(withCode('vault_policy_malformed'))
  })
})

describe('valid policies', () => {
  test.each([
    ['a limit with approval above it', limited],
    ['everything without a schedule', full],
    ['a schedule', scheduled],
    ['one rule and no approvers', simple as unknown as Policy],
    [
      'an origin with a port, and one below the domain',
      withApprover({ origins: ['https://a.vault.example', 'https://vault.example:8443'] }) as unknown as Policy,
    ],
    [
      'the machine itself, over http',
      withApprover({ rpId: 'localhost', origins: ['http://localhost:5173'] }) as unknown as Policy,
    ],
    ['a call without words', withRule({ ...tokenTransfer, words: 0, arguments: undefined }) as Policy],
    ['a word that must only be of its type', withArgument({ at: 1, type: 'bool' }) as Policy],
  ])('%s: its bytes are read back as the same', (_, policy) => {
    const given = createPolicy(policy)
    expect(parsePolicy(toPolicyBytes(given))).toEqual(given)
    expect(Buffer.from(hashPolicy(given)).toString('hex')).toBe(
      createHash('sha256').update(toCanonicalJson(given)).digest('hex'),
    )
  })

  test('createPolicy accepts lists in any order', () => {
    const backwards = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(backwards).reverse()
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([name, member]) => [name, backwards(member)]),
            )
          : value
    for (const policy of [limited, scheduled]) expect(createPolicy(backwards(policy) as Policy)).toEqual(policy)
  })

  test('sorts lists by bytes, numbers too', () => {
    const policy = createPolicy({ ...limited, rules: [{ ...payment, chainIds: [137, 8453, 10, 1] }] })
    expect(policy.rules[0]).toMatchObject({ chainIds: [1, 10, 137, 8453] })
    expect(() => assertPolicy({ ...limited, rules: [{ ...payment, chainIds: [137, 8453, 90] }] })).not.toThrow()
    expect(() => assertPolicy({ ...limited, rules: [{ ...payment, chainIds: [90, 137, 8453] }] })).toThrow(
      withCode('vault_policy_malformed'),
    )
  })
})

describe('a policy with budgets', () => {
  const given = passkeys.map(({ approver }) => approver)
  const listed = { ...budgeted, approvers: [agent.approver, ...given] }

  test('lists approvers by their index in the created policy', () => {
    const keysOf = ({ approvers, rules }: Policy) =>
      rules.map((rule) => [
        rule.kind,
        rule.approvers === 'any' ? [] : rule.approvers.map((at) => approvers[at]?.publicKey).sort(),
      ])
    const rules: Policy['rules'] = [
      { ...spend, approvers: [3, 0] },
      { kind: 'message', approvals: 2, approvers: [3, 1] },
      { ...payment, approvals: 1, approvers: [2] },
    ]
    const policy = createPolicy({ ...listed, rules })
    expect(policy.approvers).not.toEqual(listed.approvers)
    expect(keysOf(policy).sort()).toEqual(keysOf({ ...listed, rules }).sort())
    expect(createPolicy(policy)).toEqual(policy)
    for (const shuffled of [
      listed.approvers.toReversed(),
      [...listed.approvers.slice(2), ...listed.approvers.slice(0, 2)],
    ]) {
      const move = (at: number) => shuffled.indexOf(listed.approvers[at] as (typeof shuffled)[number])
      const moved = rules.map((rule) => ({ ...rule, approvers: (rule.approvers as number[]).map(move) }))
      expect(createPolicy({ ...listed, approvers: shuffled, rules: moved as typeof rules })).toEqual(policy)
    }
  })

  test('sorts the origins of an approver before it moves indexes', () => {
    const origins = ['https://vault.example', 'https://a.vault.example']
    const approvers = [{ ...(given[0] as (typeof given)[number]), origins }, agent.approver]
    const policy = createPolicy({ ...budgeted, approvers, rules: [spend] })
    const [rule] = policy.rules
    expect(policy.approvers[Number(rule?.approvers[0])]).toEqual(agent.approver)
  })

  test.each<[string, unknown]>([
    ['beyond the list', 9],
    ['below 0', -1],
    ['of -0', -0],
    ['as a part', 0.5],
    ['as a text', '0'],
    ['as a member of every list', 'length'],
    ['null', null],
  ])('rejects an index %s', (_, index) => {
    const policy = { ...budgeted, rules: [{ ...spend, approvers: [index] }] } as unknown as Policy
    expect(() => createPolicy(policy)).toThrow(withCode('vault_policy_malformed'))
    expect(() => assertPolicy(policy)).toThrow(withCode('vault_policy_malformed'))
  })

  test('lowers checksummed addresses of tokens, payees and spenders, and rejects wrong ones', () => {
    const address = '0xDAFEA492D9c6733ae3d56b7Ed1ADB60692c98Bc5'
    const wrong = address.replace('c5', 'C5') as Hex
    const create = (one: Hex) => {
      const budgets = [...(budgeted.budgets ?? []), { chainId: 1, token: one, limit: '1', periodS: 0 }]
      return createPolicy({ ...budgeted, budgets, rules: [{ ...spend, payees: 'any', spenders: [one] }] })
    }
    expect(JSON.stringify(create(address)).split(address.toLowerCase())).toHaveLength(3)
    expect(() => create(wrong)).toThrow(withCode('vault_policy_malformed'))
    const payee = { ...budgeted, rules: [{ ...spend, payees: [wrong] }] }
    expect(() => createPolicy(payee)).toThrow(withCode('vault_policy_malformed'))
  })
})

describe('rejected policies', () => {
  test.each<[string, unknown]>([
    ['no object', 'any'],
    ['null', null],
    ['a list', [limited]],
    ['another version', { ...simple, version: 2 }],
    ['the version as a text', { ...simple, version: '1' }],
    ...['version', 'log', 'approvers', 'rules'].map((name): [string, unknown] => [`no ${name}`, without(simple, name)]),
    ['a member more', { ...simple, label: 'savings' }],
    ['no rules', { ...simple, rules: [] }],
    ['rules that are not a list', { ...simple, rules: { 0: payment } }],
    ['a rule twice', { ...simple, rules: [payment, payment] }],
    ['rules out of order', { ...limited, rules: limited.rules.toReversed() }],
    ['what JSON would drop', { ...simple, log: undefined }],
    ['a number that JSON cannot carry', withRule({ ...payment, approvals: Number.NaN })],
  ])('%s', (_, value) => {
    expect(() => assertPolicy(value)).toThrow(withCode('vault_policy_malformed'))
  })

  test.each<[string, unknown]>([
    ['unknown', { ...payment, kind: 'authorization' }],
    ['of a kind that every object has', { kind: 'constructor', approvals: 1 }],
    ['of a kind in a list', { kind: ['message'], approvals: 1 }],
    ['without a kind', without(payment, 'kind')],
    ['with a member of another kind', { ...payment, domains: 'any' }],
    ['a deny rule', { ...payment, deny: true }],
    ...['chainIds', 'to', 'maxValueWei', 'maxFeeWei', 'approvals'].map((name): [string, unknown] => [
      `without ${name}`,
      without(payment, name),
    ]),
    ['for no chain', { ...payment, chainIds: [] }],
    ['for chain 0', { ...payment, chainIds: [0] }],
    ['for a chain as a text', { ...payment, chainIds: ['1'] }],
    ['for a chain above 2^53', { ...payment, chainIds: [2 ** 53] }],
    ['for chain -0', { ...payment, chainIds: [-0] }],
    ['"any" inside a list', { ...payment, chainIds: ['any'] }],
    ['another word for any', { ...payment, to: '*' }],
    ['for no address', { ...payment, to: [] }],
    ['an address in upper case', { ...payment, to: [alice.toUpperCase().replace('0X', '0x')] }],
    ['an address without 0x', { ...payment, to: [alice.slice(2)] }],
    ['an address of 19 bytes', { ...payment, to: [alice.slice(0, -2)] }],
    ['an address twice', { ...payment, to: [alice, alice] }],
    ['addresses out of order', { ...payment, to: [bob, alice] }],
    ...['1.5', '-1', '01', '', ' 1', '0x1', '1e18', String(2n ** 256n), '1'.repeat(200), 1, null].flatMap(
      (cap): [string, unknown][] => [
        [`with ${JSON.stringify(cap)?.slice(0, 90)} as maxValueWei`, { ...payment, maxValueWei: cap }],
        [`with ${JSON.stringify(cap)?.slice(0, 90)} as maxFeeWei`, { ...payment, maxFeeWei: cap }],
      ],
    ),
    ['any amount by a word', { ...payment, maxValueWei: 'any' }],
    ['less than no approvals', { ...payment, approvals: -1 }],
    ['more approvals than approvers', { ...payment, approvals: 2 }],
    ['half an approval', { ...payment, approvals: 0.5 }],
    ['selectors without words', without(without(tokenTransfer, 'words'), 'arguments')],
    ['words without selectors', { ...payment, words: 2 }],
    ['arguments without selectors', { ...payment, arguments: tokenTransfer.arguments }],
    ['no selectors in the list', { ...tokenTransfer, selectors: [] }],
    ['a selector of three bytes', { ...tokenTransfer, selectors: ['0xa9059c'] }],
    ['a function by its name', { ...tokenTransfer, selectors: ['transfer'] }],
    ['more words than a transaction carries', { ...tokenTransfer, words: 4096 }],
    ['part of a word', { ...tokenTransfer, words: 1.5 }],
    ['no arguments in the list', { ...tokenTransfer, arguments: [] }],
    ['a message without approval', { kind: 'message', approvals: 0, approvers: 'any' }],
    ['a message to somebody', { kind: 'message', approvals: 1, to: 'any', approvers: 'any' }],
    [
      'typed data without approval',
      { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 0, approvers: 'any' },
    ],
    ['typed data without types', { kind: 'typed-data', domains: 'any', approvals: 1 }],
    ['typed data of no type', { kind: 'typed-data', domains: 'any', primaryTypes: [], approvals: 1, approvers: 'any' }],
    [
      'a type with brackets',
      { kind: 'typed-data', domains: 'any', primaryTypes: ['Mail[]'], approvals: 1, approvers: 'any' },
    ],
  ])('a rule: %s', (_, rule) => {
    expect(() => assertPolicy(withRule(rule as object))).toThrow(withCode('vault_policy_malformed'))
  })

  test.each<[string, unknown]>([
    ['empty', {}],
    ['with a salt', { name: 'a', salt: `0x${'00'.repeat(32)}` }],
    ['with a name that is not a string', { name: 1 }],
    ['with a version that is not a string', { version: 1 }],
    ['with a chain as a text', { chainId: '1' }],
    ['with chain 0', { chainId: 0 }],
    ['with a contract in upper case', { verifyingContract: `0x${'AB'.repeat(20)}` }],
    ['with half of a character in its name', { name: '\ud800' }],
    ['null', null],
  ])('a domain %s', (_, domain) => {
    const rule = { kind: 'typed-data', domains: [domain], primaryTypes: 'any', approvals: 1, approvers: 'any' }
    expect(() => assertPolicy(withRule(rule))).toThrow(withCode('vault_policy_malformed'))
  })

  test.each<[string, object]>([
    ['without a type', { at: 0 }],
    ['without a place', { type: 'bool' }],
    ['beyond the words', { at: 2, type: 'bool' }],
    ['before them', { at: -1, type: 'bool' }],
    ...[
      'uint',
      'uint0',
      'uint7',
      'uint264',
      'uint08',
      'int256',
      'bytes',
      'bytes31',
      'string',
      'address[]',
      'toString',
    ].map((type): [string, object] => [`of type ${type}`, { at: 0, type }]),
    ['of two limits', { at: 0, type: 'uint8', oneOf: ['1'], max: '1' }],
    ['with a maximum for an address', { at: 0, type: 'address', max: '1' }],
    ['with a maximum for a bool', { at: 0, type: 'bool', max: '1' }],
    ['with a maximum beyond its type', { at: 0, type: 'uint8', max: '256' }],
    ['with a maximum as a number', { at: 0, type: 'uint8', max: 1 }],
    ['one of nothing', { at: 0, type: 'uint8', oneOf: [] }],
    ['one of numbers', { at: 0, type: 'uint8', oneOf: [1] }],
    ['one of values beyond its type', { at: 0, type: 'uint8', oneOf: ['256'] }],
    ['one of hex for an integer', { at: 0, type: 'uint8', oneOf: ['0x01'] }],
    ['one of texts for a bool', { at: 0, type: 'bool', oneOf: ['true'] }],
    ['one of addresses of 32 bytes', { at: 0, type: 'address', oneOf: [`0x${'00'.repeat(32)}`] }],
    ['one of values out of order', { at: 0, type: 'uint8', oneOf: ['9', '10'] }],
    ['one of a value twice', { at: 0, type: 'bool', oneOf: [true, true] }],
    ['with a member more', { at: 0, type: 'uint8', min: '1' }],
  ])('an argument %s', (_, argument) => {
    expect(() => assertPolicy(withArgument(argument))).toThrow(withCode('vault_policy_malformed'))
  })

  test('a word with two arguments', () => {
    const rule = {
      ...tokenTransfer,
      arguments: [
        { at: 0, type: 'address' },
        { at: 0, type: 'uint256' },
      ],
    }
    expect(() => assertPolicy(withRule(rule))).toThrow(withCode('vault_policy_malformed'))
  })

  test.each<[string, object]>([
    ['a member more', { credentialId: 'ab' }],
    ['no origins', { origins: [] }],
    ['origins out of order', { origins: ['https://vault.example', 'https://a.vault.example'] }],
    ['a key that is compressed', { publicKey: `02${approver?.publicKey.slice(2, 66)}` }],
    ['a key that is not a point', { publicKey: `04${'11'.repeat(64)}` }],
    ['a key in upper case', { publicKey: approver?.publicKey.toUpperCase() }],
    ['a key with 0x', { publicKey: `0x${approver?.publicKey}` }],
    ['a hybrid encoding of its key', { publicKey: `06${approver?.publicKey.slice(2)}` }],
    ['a domain in upper case', { rpId: 'Vault.example' }],
    ['a domain with a dot at the end', { rpId: 'vault.example.' }],
    ['an IP address', { rpId: '127.0.0.1', origins: ['https://127.0.0.1'] }],
    ['an empty domain', { rpId: '' }],
    ['a domain with a scheme', { rpId: 'https://vault.example' }],
    ['a domain that is not of its origin', { rpId: 'other.example' }],
    ['a domain that only ends like its origin', { rpId: 'lt.example' }],
    ...[
      'vault.example',
      'http://vault.example',
      'https://vault.example/',
      'https://vault.example:443',
      'https://vault.example:0443',
      'https://vault.example:70000',
      'https://VAULT.example',
      'https://user@vault.example',
      'https://vault.example?x',
      'https://evil.example#.vault.example',
      'https://vault.example.evil.example',
      'android:apk-key-hash:AAAA',
      'null',
      '*',
      1,
    ].map((origin): [string, object] => [`the origin ${origin}`, { origins: [origin] }]),
  ])('an approver with %s', (_, changes) => {
    expect(() => assertPolicy(withApprover(changes))).toThrow(withCode('vault_policy_malformed'))
  })

  test('two approvers with one key', () => {
    const twins = [approver, { ...approver, rpId: 'example', origins: ['https://example'] }]
    expect(() => createPolicy({ ...limited, approvers: twins as Policy['approvers'] })).toThrow(
      withCode('vault_policy_malformed'),
    )
  })

  test.each<[string, unknown]>([
    ['no witnesses', { witnesses: [], quorum: 1 }],
    ['a quorum of none', { witnesses: [toKey(1)], quorum: 0 }],
    ['half of the witnesses', { witnesses: [toKey(1), toKey(2)].sort(), quorum: 1 }],
    ['more than all of them', { witnesses: [toKey(1)], quorum: 2 }],
    ['an invalid key', { witnesses: ['ff'.repeat(32)], quorum: 1 }],
    ['a key of small order', { witnesses: [`01${'00'.repeat(31)}`], quorum: 1 }],
    ['a witness twice', { witnesses: [toKey(1), toKey(1)], quorum: 2 }],
    ['a member more', { witnesses: [toKey(1)], quorum: 1, origins: [] }],
    ['no quorum', { witnesses: [toKey(1)] }],
  ])('a log with %s', (_, log) => {
    expect(() => assertPolicy({ ...simple, log })).toThrow(withCode('vault_policy_malformed'))
  })

  const { schedule } = scheduled
  test.each<[string, object]>([
    ['without sources of time', without(scheduled, 'time')],
    ['without a source in the list', { ...scheduled, time: [] }],
    ['by a source that does not sign', { ...scheduled, time: [{ kind: 'unsigned' }] }],
    ['by a source out of order', { ...scheduled, time: [satellite, beacon] }],
    ['by a satellite without a key', { ...scheduled, time: [{ kind: 'satellite' }] }],
    ['by a beacon of another period', { ...scheduled, time: [{ ...beacon, periodS: 0 }] }],
    ['and time without a schedule', without(scheduled, 'schedule')],
    ['for messages', { ...scheduled, rules: [{ kind: 'message', approvals: 1, approvers: 'any' }] }],
    ['every 0 seconds', { ...scheduled, schedule: { ...schedule, everyS: 0 } }],
    ['for none', { ...scheduled, schedule: { ...schedule, count: 0 } }],
    ['from before 1970', { ...scheduled, schedule: { ...schedule, startsAtMs: -1 } }],
    ['from a text', { ...scheduled, schedule: { ...schedule, startsAtMs: '2027-01-01' } }],
    ['with half a period', { ...scheduled, schedule: { ...schedule, everyS: 0.5 } }],
    ['with an end', { ...scheduled, schedule: { ...schedule, endsAtMs: 1 } }],
    ['without a start', { ...scheduled, schedule: { everyS: 1, count: 1 } }],
  ])('a schedule %s', (_, policy) => {
    expect(() => assertPolicy(policy)).toThrow(withCode('vault_policy_malformed'))
  })
})

describe('the bytes of a policy', () => {
  const bytes = toPolicyBytes(limited)
  const text = new TextDecoder().decode(bytes)
  const encode = (json: string) => new TextEncoder().encode(json)

  test.each([
    ['white space', ` ${text}`],
    ['a line end', `${text}\n`],
    ['a member twice', text.replace('"version":1', '"version":1,"version":1')],
    ['members in another order', JSON.stringify(Object.fromEntries(Object.entries(limited).reverse()))],
    ['another spelling of 1', text.replace('"version":1', '"version":1.0')],
    ['an escape that is not needed', text.replace('vault.example', '\\u0076ault.example')],
    ['a byte order mark', `\ufeff${text}`],
    ['nothing', ''],
  ])('%s: another hash, so refused', (_, json) => {
    expect(() => parsePolicy(encode(json))).toThrow(withCode('vault_policy_not_canonical'))
  })

  test('bytes that are not UTF-8', () => {
    expect(() => parsePolicy(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(withCode('vault_policy_not_canonical'))
  })

  test('accepts 16 KiB, and rejects one byte more as too large', () => {
    const domain = { kind: 'typed-data', primaryTypes: 'any', approvals: 1, approvers: 'any' } as const
    const toNamed = (length: number) => withRule({ ...domain, domains: [{ name: 'x'.repeat(length) }] }) as Policy
    const spare = MAX_POLICY_BYTES - toPolicyBytes(toNamed(0)).length
    expect(toPolicyBytes(toNamed(spare))).toHaveLength(MAX_POLICY_BYTES)
    expect(() => assertPolicy(toNamed(spare + 1))).toThrow(withCode('vault_policy_too_large'))
    expect(() => parsePolicy(toCanonicalJson(toNamed(spare + 1)))).toThrow(withCode('vault_policy_too_large'))
  })

  test('errors do not repeat the policy’s texts', () => {
    const secret = 'a-name-of-somebody'
    for (const value of [
      { ...simple, [secret]: 1 },
      withRule({ ...payment, to: secret }),
      withApprover({ rpId: secret, [secret]: 1 }),
    ]) {
      let error: unknown
      try {
        assertPolicy(value)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toEqual(withCode('vault_policy_malformed'))
      const { message, details } = error as { message: string; details: string }
      expect(`${message} ${details}`).not.toContain(secret)
    }
  })
})

test('a new vault has at most 8 sources of time, and keys of more are not checked; an old one keeps its sources', () => {
  const by = (count: number) => {
    const toSource = (at: number) => ({ ...beacon, chainHash: at.toString(16).padStart(64, '0') })
    return createPolicy({ ...scheduled, time: Array.from({ length: count }, (_, at) => toSource(at)) })
  }
  expect(parsePolicy(toPolicyBytes(by(8)), { isNew: true }).time).toHaveLength(8)
  expect(parsePolicy(toPolicyBytes(by(9))).time).toHaveLength(9)
  const details = 'time of a new vault has more than 8 sources'
  const refused = expect.objectContaining({ code: 'vault_policy_malformed', details })
  expect(() => parsePolicy(toPolicyBytes(by(9)), { isNew: true })).toThrow(refused)
  expect(() => assertPolicy(by(9), { isNew: true })).toThrow(refused)
  const unjudged = { ...by(9), time: by(9).time?.map((source) => ({ ...source, key: '00'.repeat(96) })) }
  expect(() => assertPolicy(unjudged, { isNew: true })).toThrow(refused)
  expect(() => assertPolicy(null, { isNew: true })).toThrow(withCode('vault_policy_malformed'))
})

test.each([
  ['a witness that is not a point', { log: { witnesses: ['ff'.repeat(32)], quorum: 1 } }, 'log.witnesses[0]'],
  ['a satellite whose key is not a point', { time: [{ kind: 'satellite', key: 'ff'.repeat(32) }] }, 'time[0]'],
  ['a beacon whose key is not a point', { time: [{ ...beacon, key: '00'.repeat(96) }] }, 'time[0]'],
])('the form of a policy leaves out what takes long: %s', (_, changes, path) => {
  const policy = { ...scheduled, ...changes }
  expect(() => assertPolicyForm(policy)).not.toThrow()
  const refused = { code: 'vault_policy_malformed', details: expect.stringContaining(`${path} is not`) }
  expect(() => assertPolicy(policy)).toThrow(expect.objectContaining(refused))
})
