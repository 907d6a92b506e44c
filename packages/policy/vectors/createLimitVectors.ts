// Writes the test vectors of limits to this folder:
//   node -C source packages/policy/vectors/createLimitVectors.ts
// `src/limitVectors.test.ts` compares the file with this script, and the code with the file.

import { writeFileSync } from 'node:fs'
import { ServiceError, toCanonicalJson, toHex, toPrefixedHex, verifyEd25519 } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { checkApprovals, hashPolicy, parsePolicy, verifyEs256 } from '../src/index.ts'
import { createAgent } from '../test/agentKey.ts'
import { createPasskey } from '../test/passkey.ts'
import {
  agent,
  alice,
  beacon,
  budgeted,
  full,
  limited,
  passkeys,
  payment,
  satellite,
  scheduled,
  spend,
} from '../test/policies.ts'

const sample = (name: string) => sha256(new TextEncoder().encode(name))
const toKeys = (count: number) =>
  Array.from({ length: count }, (_, index) => toHex(ed25519.getPublicKey(sample(`witness ${index}`)))).toSorted()

/** Null for a policy, otherwise the error code. */
export function parseOrReject(json: string): string | null {
  try {
    parsePolicy(new TextEncoder().encode(json))
    return null
  } catch (error) {
    if (error instanceof ServiceError) return error.code
    throw error
  }
}

function createPolicies() {
  const [approver] = limited.approvers
  const by = (rpId: string, ...origins: string[]) => ({ ...limited, approvers: [{ ...approver, rpId, origins }] })
  const label = 'a'.repeat(63)
  const domains = [
    ...['localhost', 'vault.example', 'a.b.c.example', '1.example', 'xn--bcher-kva.example', '0x7f.example'],
    ...[`${label}.example`, `a${label}.example`, [label, label, label, 'a'.repeat(61)].join('.')],
    ...[[label, label, label, 'a'.repeat(62)].join('.'), 'a--b.example', '-a.example', 'a-.example', 'a..example'],
    ...['.example', 'vault.example.', 'Vault.example', 'bücher.example', 'a_b.example', '127.0.0.1', '1.2.3.0x4'],
    ...['2130706433', '0x7f000001', '0x', 'example.0x', '0x7g', '[::1]', ''],
  ]
  const origins: [rpId: string, origin: string][] = [
    ['vault.example', 'https://vault.example:8443'],
    ['vault.example', 'https://a.b.vault.example'],
    ['vault.example', 'https://vault.example:80'],
    ['vault.example', 'https://vault.example:443'],
    ['vault.example', 'https://vault.example:0'],
    ['vault.example', 'https://vault.example:65535'],
    ['vault.example', 'https://vault.example:65536'],
    ['vault.example', 'https://vault.example:08443'],
    ['vault.example', 'https://vault.example/'],
    ['vault.example', 'https://vault.example.'],
    ['vault.example', 'https://evilvault.example'],
    ['vault.example', 'https://example'],
    ['vault.example', 'http://vault.example'],
    ['vault.example', 'HTTPS://vault.example'],
    ['localhost', 'http://localhost'],
    ['localhost', 'http://localhost:80'],
    ['localhost', 'http://localhost:443'],
    ['localhost', 'http://a.localhost:5173'],
    ['a.localhost', 'http://a.localhost'],
    ['a.localhost', 'http://localhost'],
    ['localhost.example', 'http://localhost.example'],
  ]
  const witnessed = (count: number, quorum: number) => ({ ...limited, log: { witnesses: toKeys(count), quorum } })
  const timed = (source: object) => ({ ...scheduled, time: [source] })
  return [
    ...domains.map((rpId): [string, object] => [`rpId ${rpId}`, by(rpId, `https://${rpId}`)]),
    ...origins.map(([rpId, origin]): [string, object] => [`rpId ${rpId}, origin ${origin}`, by(rpId, origin)]),
    ['no origin', by('vault.example')],
    ['32 witnesses', witnessed(32, 17)],
    ['33 witnesses', witnessed(33, 17)],
    ['half of the witnesses', witnessed(32, 16)],
    ['a witness that is no point', { ...limited, log: { witnesses: ['02'.padEnd(64, '0')], quorum: 1 } }],
    ['a satellite in time', timed(satellite)],
    ['a satellite in time whose key is no point', timed({ ...satellite, key: '02'.padEnd(64, '0') })],
    ['a beacon in time', timed(beacon)],
    ['a beacon in time whose key is no point', timed({ ...beacon, key: '00'.repeat(96) })],
    ['a source in time that does not sign', timed({ kind: 'unsigned' })],
    ...createBudgeted(),
  ] satisfies [string, object][]
}

/** Policies with budgets, and those that they forbid. In canonical order, unless a name says otherwise. */
function createBudgeted(): [string, object][] {
  const [passkeyAt, agentAt] = ['passkey', 'key'].map((type) =>
    budgeted.approvers.findIndex((one) => one.type === type),
  )
  const sort = <Item>(items: readonly Item[]) =>
    items.toSorted((left, right) => Buffer.compare(toCanonicalJson(left), toCanonicalJson(right)))
  const change = (changes: object) => ({ ...budgeted, ...changes })
  const withoutMember = (value: object, name: string) =>
    Object.fromEntries(Object.entries(value).filter(([member]) => member !== name))
  const agents = (count: number) => Array.from({ length: count }, (_, index) => createAgent(index).approver)
  const people = (count: number) =>
    Array.from({ length: count }, (_, index) => createPasskey({ seed: index, rpId: 'a.example' }).approver)
  /** Each for messages: for the smallest sets of seven passkeys, with every number of approvals. */
  const withRules = (count: number) => {
    const sets = Array.from({ length: 127 }, (_, bits) => [0, 1, 2, 3, 4, 5, 6].filter((at) => ((bits + 1) >> at) & 1))
    const rules = sets.flatMap((approvers) =>
      approvers.map((_, index) => ({ kind: 'message', approvals: index + 1, approvers })),
    )
    const smallest = rules.toSorted((left, right) => left.approvers.length - right.approvers.length).slice(0, count)
    return { ...limited, approvers: sort(people(7)), rules: sort(smallest) }
  }
  const byAgent = { ...spend, approvers: [agentAt] }
  const spends = (changes: object, policy: object = {}) => change({ ...policy, rules: [{ ...byAgent, ...changes }] })
  const withRule = (rule: object) => change({ rules: sort([byAgent, rule]) })
  const [coin, other] = [
    { chainId: 1, token: null, limit: '5', periodS: 0 },
    { chainId: 1, token: alice },
  ]
  const budgets = (...given: object[]) => change({ budgets: sort([coin, ...given]) })
  const many = (count: number) =>
    Array.from({ length: count - 1 }, (_, index) => ({ ...other, limit: '5', periodS: 3_600 + index }))
  const message = { kind: 'message', approvals: 1, approvers: [passkeyAt] }
  const withoutSpenders = withoutMember(byAgent, 'spenders')
  const { origin: _, ...log } = budgeted.log ?? {}
  return [
    ['32 passkeys', { ...limited, approvers: sort(people(32)) }],
    ['33 passkeys', { ...limited, approvers: sort(people(33)) }],
    ['32 approvers with budgets', spends({ approvers: [0] }, { approvers: sort(agents(32)) })],
    ['33 approvers with budgets', spends({ approvers: [0] }, { approvers: sort(agents(33)) })],
    ['8 budgets', budgets(...many(8))],
    ['9 budgets', budgets(...many(9))],
    ['no budgets in the list', change({ budgets: [] })],
    ['budgets out of order', change({ budgets: budgeted.budgets?.toReversed() })],
    ['two budgets of one asset and period', budgets({ ...coin, limit: '6' })],
    ['two budgets of one asset', budgets({ ...coin, periodS: 3_600 })],
    ...[1, 3_599, 3_600, 31_536_000, 31_536_001].map((periodS): [string, object] => [
      `a period of ${periodS} seconds`,
      budgets({ ...coin, periodS }),
    ]),
    ['a limit of 0', change({ budgets: [{ ...coin, limit: '0' }] })],
    ['a limit of 2^256 - 1', change({ budgets: [{ ...coin, limit: String(2n ** 256n - 1n) }] })],
    ['a limit of 2^256', change({ budgets: [{ ...coin, limit: String(2n ** 256n) }] })],
    ['a limit in hex', change({ budgets: [{ ...coin, limit: '0x5' }] })],
    ['a budget without a token', change({ budgets: [withoutMember(coin, 'token')] })],
    ['a budget of a token in upper case', budgets({ ...other, token: `0x${'AB'.repeat(20)}`, limit: '5', periodS: 0 })],
    ['a budget of chain 0', budgets({ ...coin, chainId: 0 })],
    ['coins without their budget', change({ budgets: [{ ...other, limit: '5', periodS: 0 }] })],
    ['coins on a chain without their budget', spends({ chainIds: [1, 10] })],
    [
      'EIP-3009 without a budget for coins',
      change({
        budgets: [{ ...other, limit: '5', periodS: 0 }],
        rules: [{ ...withoutSpenders, forms: ['eip3009'] }],
      }),
    ],
    ['budgets without a rule that spends', change({ rules: [message] })],
    ['budgets without a log', change({ log: null })],
    ['budgets without an origin', change({ log })],
    ['an origin with a space', change({ log: { ...log, origin: 'log example' } })],
    ['an origin of 256 bytes', change({ log: { ...log, origin: 'a'.repeat(256) } })],
    ['an origin without budgets', { ...limited, log: budgeted.log }],
    ['budgets and a schedule', { ...scheduled, log: budgeted.log, budgets: [coin] }],
    ['a rule that spends without budgets', { ...limited, rules: [{ ...spend, approvers: [0] }] }],
    ['an agent key without budgets', { ...limited, approvers: sort([...limited.approvers, agent.approver]) }],
    [
      'an agent key that is no point',
      spends({ approvers: [0] }, { approvers: [{ type: 'key', publicKey: '02'.padEnd(64, '0') }] }),
    ],
    [
      'an agent key of small order',
      spends({ approvers: [0] }, { approvers: [{ type: 'key', publicKey: '01'.padEnd(64, '0') }] }),
    ],
    [
      'an agent key with a domain',
      spends({ approvers: [0] }, { approvers: [{ ...agent.approver, rpId: 'vault.example' }] }),
    ],
    [
      'a passkey as an agent key',
      spends({ approvers: [0] }, { approvers: [{ ...limited.approvers[0], type: 'key' }] }),
    ],
    [
      'an approver without a type',
      { ...limited, approvers: limited.approvers.map((one) => withoutMember(one, 'type')) },
    ],
    ['another rule by a passkey', withRule(message)],
    ['another rule by "any"', withRule({ ...message, approvers: 'any' })],
    ['another rule by an agent', withRule({ ...message, approvers: [agentAt] })],
    ['another rule by an agent and a passkey', withRule({ ...message, approvers: [0, 1] })],
    ['another rule without approval', withRule({ ...payment, approvers: [passkeyAt], approvals: 0 })],
    ['another rule with more approvals than it lists', withRule({ ...message, approvals: 2 })],
    ['a rule that spends by "any"', spends({ approvers: 'any' })],
    ['a rule that spends on any chain', spends({ chainIds: 'any' })],
    ['a rule that spends without approvals and without a session', spends({ approvals: 0 })],
    ['a rule that spends with only a session', spends({ approvals: 0, session: true })],
    ['a rule that spends with a session and no approvers', spends({ approvals: 0, session: true, approvers: [] })],
    ['a rule that spends by no approvers, with approval', spends({ approvers: [] })],
    ['a rule that spends by an approver that does not exist', spends({ approvers: [2] })],
    ['a rule that spends by one approver twice', spends({ approvers: [agentAt, agentAt] })],
    ['approvers in the order of numbers', spends({ approvers: [2, 10] }, { approvers: sort(agents(11)) })],
    ['approvers in the order of bytes', spends({ approvers: [10, 2] }, { approvers: sort(agents(11)) })],
    ['a rule that spends with more approvals than approvers', spends({ approvals: 2 })],
    ['a rule that spends without a session member', change({ rules: [withoutMember(byAgent, 'session')] })],
    ['a rule that spends with a cap', spends({ maxValueWei: '1' })],
    ['no forms', spends({ forms: [] })],
    ['an unknown form', spends({ forms: ['permit'] })],
    ['forms out of order', spends({ forms: ['transfer', 'coin', 'x402-permit2'] })],
    ['no payees', spends({ payees: [] })],
    ['any payee', spends({ payees: 'any' })],
    ['Permit2 without spenders', change({ rules: [withoutSpenders] })],
    ['Permit2 with an empty list of spenders', spends({ spenders: [] })],
    ['spenders without Permit2', spends({ forms: ['coin'] })],
    ['another spender, and payees', spends({ spenders: [alice] })],
    ['another spender, and any payee', spends({ spenders: [alice], payees: 'any' })],
    ['255 rules', withRules(255)],
    ['256 rules', withRules(256)],
  ]
}

const nowMs = Date.UTC(2027, 0, 1)

/** Approvals of the second policy of `policy-v1.vectors.json`, by its first approver, with a valid signature. */
function createClientData() {
  const digest = sample('digest 0')
  const vaultAddress = toPrefixedHex(sample('vault').subarray(0, 20))
  const request = { vaultAddress, policyHash: hashPolicy(full), rule: 0, kind: 'transaction', digest } as const
  const passkey = passkeys.find(({ approver }) => approver.publicKey === full.approvers[0]?.publicKey)
  const members: [string, string][] = [
    ['a further member', '"more":1'],
    ['a member named __proto__', '"__proto__":{"type":"webauthn.create"}'],
    ['a member named __proto__ twice', '"__proto__":1,"__proto__":2'],
    ['a member named constructor', '"constructor":1'],
    ['topOrigin that is null', '"topOrigin":null'],
    ['16 levels', `"more":${'['.repeat(15)}${']'.repeat(15)}`],
    ['17 levels', `"more":${'['.repeat(16)}${']'.repeat(16)}`],
    ['tokenBinding', '"tokenBinding":{"status":"supported"}'],
    ['tokenBinding of Level 1', '"tokenBinding":{"status":"not-supported"}'],
  ]
  const padding = (length: number) => (text: string) => `${text.slice(0, -1)}${' '.repeat(length - text.length)}}`
  const changes: [string, (text: string) => string][] = [
    ...members.map(([name, member]): [string, (text: string) => string] => [
      name,
      (text) => text.replace('}', `,${member}}`),
    ]),
    ['2,048 bytes', padding(2048)],
    ['a byte order mark', (text) => `\ufeff${text}`],
    ['crossOrigin that is null', (text) => text.replace('"crossOrigin":false', '"crossOrigin":null')],
    ['no crossOrigin', (text) => text.replace(',"crossOrigin":false', '')],
  ]
  return changes.map(([name, clientDataText]) => {
    const approvals = [passkey?.approve({ ...request, expiresMs: nowMs + 3_600_000 }, 0, { clientDataText })]
    const parameters = { vaultAddress, rule: request.rule, kind: request.kind, nowMs, required: 1, approvals }
    const verdict = checkApprovals({ verifyEs256, verifyEd25519 }, { ...parameters, policy: full, digest })
    return { name, ...parameters, digest: toPrefixedHex(digest), reason: verdict.valid ? null : verdict.reason }
  })
}

/** Every vector, as plain JSON. */
export function createLimitVectors() {
  return {
    version: 'countersign-policy-limit-vectors/1',
    notes: [
      'policies: the block, and the error code, or null for a policy.',
      'approvals: of the second policy in policy-v1.vectors.json. reason is null for valid ones.',
    ],
    policies: createPolicies().map(([name, policy]) => {
      const json = new TextDecoder().decode(toCanonicalJson(policy))
      return { name, code: parseOrReject(json), json }
    }),
    approvals: createClientData(),
  }
}

/** The file, to the byte. */
export function toLimitVectorFile(vectors: ReturnType<typeof createLimitVectors>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

if (import.meta.main) {
  writeFileSync(new URL('limits-v1.vectors.json', import.meta.url), toLimitVectorFile(createLimitVectors()))
}
