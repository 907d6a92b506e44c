// Writes the test vectors of policies and approvals to this folder, computed with this package's functions:
//   node -C source packages/policy/vectors/createVectors.ts
// `src/vectors.test.ts` compares the file with this script and with independent code.

import { writeFileSync } from 'node:fs'
import { type ApprovalKind, type Hex, type TypedData, toHex, toPrefixedHex } from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type Approver,
  type BudgetCounter,
  checkPolicy,
  countSpends,
  hashApprovals,
  hashPolicy,
  type Policy,
  type PolicyRequest,
  type SpendContext,
  toPolicyBytes,
  X402_SPENDERS,
} from '../src/index.ts'
import {
  agent,
  alice,
  bob,
  budgeted,
  ETHER,
  full,
  limited,
  passkeys,
  satellite,
  scheduled,
  token,
} from '../test/policies.ts'

const sample = (name: string) => sha256(new TextEncoder().encode(name))
const policies: readonly { name: string; policy: Policy }[] = [
  { name: 'a limit for each payment, and approval above it', policy: limited },
  { name: 'every kind of rule, a log, three approvers', policy: full },
  { name: 'a schedule, with the time of a satellite and of a beacon', policy: scheduled },
  { name: 'an agent with budgets, and a passkey for everything else', policy: budgeted },
]

/** Every vector, as plain JSON. */
export function createVectors() {
  return {
    version: 'countersign-policy-vectors/1',
    notes: [
      'Byte strings are lower-case hex: with 0x where they are values of Ethereum, without elsewhere.',
      'Members with the name `policy` that are numbers name one of `policies`, by its place.',
      'verdicts: without the index of a rule. spending: with the index, for this vault and time.',
      'counting: one vault with the budgets of the last policy. Each payment is counted after those before it that were allowed.',
      'Keys of approvers and witnesses are those of published secrets. Never use them.',
    ],
    policies: policies.map(({ name, policy }) => {
      const hash = hashPolicy(policy)
      return {
        name,
        policy,
        json: new TextDecoder().decode(toPolicyBytes(policy)),
        hash: toHex(hash),
        cid: toCid(hash),
      }
    }),
    refused: createRefused(),
    verdicts: createRequests().map(({ policy, request }) => ({
      policy,
      request,
      verdict: checkPolicy((policies[policy] as (typeof policies)[number]).policy, request),
    })),
    spending: createSpending(),
    counting: createCounting(),
    approvals: createApprovals(),
    refusedApprovals: createRefusedApprovals(),
  }
}

/** The file, to the byte. */
export function toVectorFile(vectors: ReturnType<typeof createVectors>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

/** CIDv1, raw, SHA-256, in base32: of the policy's block. */
function toCid(hash: Uint8Array): string {
  const bits = [0x01, 0x55, 0x12, 0x20, ...hash].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const groups = bits.match(/.{1,5}/g) ?? []
  return `b${groups.map((group) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(Number.parseInt(group.padEnd(5, '0'), 2))).join('')}`
}

/** Texts that are almost a policy. */
function createRefused() {
  const text = new TextDecoder().decode(toPolicyBytes(limited))
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`nothing to replace: ${from}`)
    return text.replace(from, to)
  }
  return [
    { why: 'white space', code: 'vault_policy_not_canonical', json: `${text}\n` },
    { why: 'a member twice', code: 'vault_policy_not_canonical', json: replace('"log":null', '"log":null,"log":null') },
    { why: 'another version', code: 'vault_policy_malformed', json: replace('"version":1', '"version":2') },
    { why: 'a member more', code: 'vault_policy_malformed', json: replace('"log":null', '"label":"","log":null') },
    { why: 'an unknown kind', code: 'vault_policy_malformed', json: replace('"transaction"', '"authorization"') },
    { why: 'an address in upper case', code: 'vault_policy_malformed', json: replace(alice, alice.replace(/a/g, 'A')) },
    {
      why: 'a list out of order',
      code: 'vault_policy_malformed',
      json: replace(`"${alice}",`, `"0x${'ee'.repeat(20)}",`),
    },
    { why: 'a cap as a number', code: 'vault_policy_malformed', json: replace(`"${ETHER / 10n}"`, '100') },
    { why: 'a cap with a leading zero', code: 'vault_policy_malformed', json: replace(`"${ETHER / 10n}"`, '"01"') },
    {
      why: 'more approvals than approvers',
      code: 'vault_policy_malformed',
      json: replace('"approvals":1', '"approvals":3'),
    },
    {
      why: 'an origin with a path',
      code: 'vault_policy_malformed',
      json: replace('https://vault.example', 'https://vault.example/'),
    },
  ]
}

function createRequests(): { policy: number; request: PolicyRequest }[] {
  const txMetadata = {
    chainId: 1,
    nonce: 10,
    to: alice,
    value: String(ETHER / 10n),
    data: '0x' as Hex,
    gas: '21000',
    maxFeePerGas: '30000000000',
    maxPriorityFeePerGas: '1500000000',
  }
  const word = (hex: string) => hex.padStart(64, '0')
  const data = `0xa9059cbb${word(alice.slice(2))}${word((500_000_000).toString(16))}` as Hex
  const transfer = { ...txMetadata, to: token, value: '0', data, gas: '60000' }
  const startsAtMs = scheduled.schedule?.startsAtMs ?? 0
  const transaction = (metadata: typeof txMetadata, timeMs?: number): PolicyRequest => ({
    kind: 'transaction',
    txMetadata: metadata,
    ...(timeMs === undefined ? {} : { sample: { source: satellite, timeMs } }),
  })
  const typedData = {
    domain: { name: 'Mail' },
    types: { Mail: [{ name: 'value', type: 'uint256' }] },
    primaryType: 'Mail',
    message: { value: '1' },
  }
  return [
    { policy: 0, request: transaction(txMetadata) },
    { policy: 0, request: transaction({ ...txMetadata, value: String(ETHER / 10n + 1n) }) },
    { policy: 0, request: transaction({ ...txMetadata, to: token, data: '0x00' }) },
    { policy: 0, request: transaction({ ...txMetadata, nonce: -1 }) },
    { policy: 1, request: transaction(transfer) },
    { policy: 1, request: transaction({ ...transfer, data: `${data}00` }) },
    { policy: 1, request: transaction({ ...transfer, data: data.replace('a9059cbb00', 'a9059cbb01') as Hex }) },
    { policy: 1, request: { kind: 'message', content: { message: '0x68656c6c6f' } } },
    { policy: 1, request: { kind: 'typed-data', content: typedData } },
    {
      policy: 1,
      request: {
        kind: 'typed-data',
        content: { ...typedData, domain: { name: 'Mail', salt: `0x${'00'.repeat(32)}` } },
      },
    },
    { policy: 2, request: transaction(txMetadata) },
    { policy: 2, request: transaction(txMetadata, startsAtMs + 86_399_999) },
    { policy: 2, request: transaction(txMetadata, startsAtMs + 86_400_000) },
  ]
}

const nowMs = Date.UTC(2027, 0, 1)
const vaultAddress = toPrefixedHex(sample('vault').subarray(0, 20))
const context: SpendContext = { vaultAddress, nowMs }
const nowS = nowMs / 1000

const members = (text: string) =>
  text.split(',').map((member) => {
    const [type = '', name = ''] = member.split(' ')
    return { name, type }
  })

const authorization: TypedData = {
  domain: { name: 'USD Coin', version: '2', chainId: 1, verifyingContract: token },
  types: {
    TransferWithAuthorization: members(
      'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce',
    ),
  },
  primaryType: 'TransferWithAuthorization',
  message: {
    from: vaultAddress,
    to: alice,
    value: '4000000',
    validAfter: '0',
    validBefore: String(nowS + 3_600),
    nonce: toPrefixedHex(sample('nonce')),
  },
}

const permit: TypedData = {
  domain: { name: 'Permit2', chainId: 1, verifyingContract: '0x000000000022d473030f116ddee9f6b43ac78ba3' },
  types: {
    PermitWitnessTransferFrom: members(
      'TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness',
    ),
    TokenPermissions: members('address token,uint256 amount'),
    Witness: members('address to,uint256 validAfter'),
  },
  primaryType: 'PermitWitnessTransferFrom',
  message: {
    permitted: { token, amount: '4000000' },
    spender: X402_SPENDERS[0],
    nonce: '1',
    deadline: String(nowS + 3_600),
    witness: { to: bob, validAfter: String(nowS) },
  },
}

const withMessage = (content: TypedData, changes: object): TypedData => ({
  ...content,
  message: { ...content.message, ...changes },
})

/** Requests of the rule that spends. */
function createSpending() {
  const rule = budgeted.rules.findIndex(({ kind }) => kind === 'spend')
  const word = (hex: string) => hex.padStart(64, '0')
  const coin = {
    chainId: 1,
    nonce: 0,
    to: alice,
    value: '1000',
    data: '0x' as Hex,
    gas: '21000',
    maxFeePerGas: '1000000000',
    maxPriorityFeePerGas: '0',
  }
  const data = `0xa9059cbb${word(alice.slice(2))}${word((4_000_000).toString(16))}` as Hex
  const transfer = { ...coin, to: token, value: '0', data, gas: '60000' }
  const tx = (txMetadata: typeof coin) => ({ kind: 'transaction', txMetadata }) as const
  const typed = (content: TypedData) => ({ kind: 'typed-data', content }) as const
  const { chainId: _, ...withoutChain } = authorization.domain
  const cases: [string, PolicyRequest, number?][] = [
    ['coins: value and fee are one amount', tx(coin)],
    ['coins without a fee', tx({ ...coin, maxFeePerGas: '0' })],
    ['coins to another payee', tx({ ...coin, to: token })],
    ['coins on another chain', tx({ ...coin, chainId: 10 })],
    ['a transfer: the token, and the fee in coins', tx(transfer)],
    ['a transfer without a fee', tx({ ...transfer, maxFeePerGas: '0' })],
    ['a transfer with 1 wei', tx({ ...transfer, value: '1' })],
    ['a transfer with dirty padding', tx({ ...transfer, data: data.replace('a9059cbb00', 'a9059cbb01') as Hex })],
    ['a transfer with a byte more', tx({ ...transfer, data: `${data}00` })],
    ['a transfer of a token without a budget', tx({ ...transfer, to: bob })],
    ['approve()', tx({ ...transfer, data: data.replace('a9059cbb', '095ea7b3') as Hex })],
    ['EIP-3009', typed(authorization)],
    ['EIP-3009, integers in hex', typed(withMessage(authorization, { value: '0x3d0900', validAfter: '0x0' }))],
    [
      'EIP-3009, EIP712Domain listed',
      typed({
        ...authorization,
        types: {
          ...authorization.types,
          EIP712Domain: members('string name,string version,uint256 chainId,address verifyingContract'),
        },
      }),
    ],
    ['EIP-3009 with another struct', typed({ ...authorization, types: { ...authorization.types, Other: [] } })],
    ['EIP-3009 without a chain', typed({ ...authorization, domain: withoutChain })],
    ['EIP-3009 from another address', typed(withMessage(authorization, { from: alice }))],
    ['EIP-3009 valid for a second too long', typed(withMessage(authorization, { validBefore: nowS + 3_601 }))],
    ['EIP-3009 valid a second later', typed(withMessage(authorization, { validAfter: nowS + 1 }))],
    [
      'ReceiveWithAuthorization',
      typed({
        ...authorization,
        types: { ReceiveWithAuthorization: authorization.types.TransferWithAuthorization ?? [] },
        primaryType: 'ReceiveWithAuthorization',
      }),
    ],
    ['x402 by Permit2', typed(permit)],
    ['x402 by Permit2 for another spender', typed(withMessage(permit, { spender: alice }))],
    ['x402 by Permit2 to another payee', typed(withMessage(permit, { witness: { to: token, validAfter: '0' } }))],
    ['x402 by Permit2, valid for too long', typed(withMessage(permit, { deadline: nowS + 3_601 }))],
    ['x402 by Permit2 with a version in the domain', typed({ ...permit, domain: { ...permit.domain, version: '1' } })],
    ['x402 by another Permit2', typed({ ...permit, domain: { ...permit.domain, verifyingContract: token } })],
    [
      'a payment under a rule that does not spend',
      tx(coin),
      budgeted.rules.findIndex(({ kind }) => kind === 'message'),
    ],
    ['a rule that the policy does not have', tx(coin), budgeted.rules.length],
  ]
  return cases.map(([name, request, index = rule]) => {
    const verdict = checkPolicy(budgeted, request, index, context)
    const spends = verdict.allowed && verdict.spends ? { spends: verdict.spends.map(toJson) } : {}
    return { name, policy: 3, rule: index, ...context, request, verdict: { ...verdict, ...spends } }
  })
}

/** Two payments of the token per day up to the limit, and a clock that goes back. */
function createCounting() {
  const coin = { chainId: 1, token: null }
  const asset = { chainId: 1, token }
  const day = 86_400
  const payments: [string, { chainId: number; token: Hex | null; amount: bigint }[], number][] = [
    ['the first', [{ ...asset, amount: 4_000_000n }], nowS],
    ['up to the limit of the day', [{ ...asset, amount: 6_000_000n }], nowS + day - 1],
    ['one unit more', [{ ...asset, amount: 1n }], nowS + day - 1],
    ['nothing', [{ ...asset, amount: 0n }], nowS + day - 1],
    ['the next day', [{ ...asset, amount: 10_000_000n }], nowS + day],
    ['with a clock that went back', [{ ...asset, amount: 1n }], nowS],
    [
      'a transfer with its fee',
      [
        { ...asset, amount: 1n },
        { ...coin, amount: ETHER / 100n },
      ],
      nowS + 2 * day,
    ],
    [
      'a fee above its budget',
      [
        { ...asset, amount: 1n },
        { ...coin, amount: 1n },
      ],
      nowS + 2 * day + 3_599,
    ],
    ['more than the limit of a day', [{ ...asset, amount: 10_000_001n }], nowS + 3 * day],
  ]
  let counters: readonly BudgetCounter[] = []
  return payments.map(([name, spends, timeS]) => {
    const verdict = countSpends(budgeted.budgets ?? [], counters, spends, timeS)
    if (verdict.allowed) counters = verdict.counters
    return {
      name,
      timeS,
      spends: spends.map(toJson),
      verdict: verdict.allowed
        ? { allowed: true, changes: verdict.changes.map(toJson) }
        : { ...toJson(verdict), allowed: false },
    }
  })
}

/** Amounts in decimal. */
function toJson(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, typeof member === 'bigint' ? String(member) : member]),
  )
}

const findPasskey = ({ publicKey }: Approver) =>
  passkeys.find(({ approver }) => approver.publicKey === publicKey) as (typeof passkeys)[number]
const findRule = ({ rules }: Policy, kind: ApprovalKind | 'spend') => rules.findIndex((rule) => rule.kind === kind)

function createApprovals() {
  const byPasskeys = (['transaction', 'message', 'typed-data'] as const).map((kind, index) => {
    const digest = sample(`digest ${index}`)
    const expiresMs = nowMs + 3_600_000 * (index + 1)
    const rule = findRule(full, kind)
    // One approver, then two, then all three of the second policy.
    const approvals = full.approvers
      .slice(0, index + 1)
      .map((one, approver) =>
        findPasskey(one).approve(
          { vaultAddress, policyHash: hashPolicy(full), rule, kind, digest, expiresMs },
          approver,
        ),
      )
    const hash = toHex(hashApprovals(approvals))
    const required = index + 1
    return { policy: 1, vaultAddress, rule, kind, digest: toPrefixedHex(digest), nowMs, required, approvals, hash }
  })
  const [kind, rule, digest] = ['transaction' as const, findRule(budgeted, 'spend'), sample('digest 3')]
  const request = { vaultAddress, policyHash: hashPolicy(budgeted), rule, kind, digest, expiresMs: nowMs + 600_000 }
  const approvals = [agent.approve(request, agentIndex)]
  const hash = toHex(hashApprovals(approvals))
  const byAgent = {
    policy: 3,
    vaultAddress,
    rule,
    kind,
    digest: toPrefixedHex(digest),
    nowMs,
    required: 1,
    approvals,
    hash,
  }
  return [...byPasskeys, byAgent]
}

const agentIndex = budgeted.approvers.findIndex(({ type }) => type === 'key')

/** With a valid signature. */
function createRefusedApprovals() {
  return [...createRefusedByData(), ...createRefusedByRule()]
}

function createRefusedByData() {
  const kind = 'transaction' as const
  const rule = findRule(full, kind)
  const digest = sample('digest 0')
  const request = { vaultAddress, policyHash: hashPolicy(full), rule, kind, digest, expiresMs: nowMs + 3_600_000 }
  const withMember = (member: string) => (text: string) => text.replace('}', `,${member}}`)
  return [
    { why: 'half of a surrogate pair, escaped, in a member that is passed over', member: '"more":"\\ud800"' },
    { why: 'half of a surrogate pair, escaped, in a name', member: '"more":{"\\udfff":1}' },
    { why: 'a member twice', member: '"more":1,"m\\u006fre":2' },
  ].map(({ why, member }) => {
    const changes = { clientDataText: withMember(member) }
    const approvals = [findPasskey(full.approvers[0] as Approver).approve(request, 0, changes)]
    const reason = 'client_data_malformed'
    const asked = { policy: 1, vaultAddress, rule, kind, digest: toPrefixedHex(digest) }
    return { why, ...asked, nowMs, required: 1, approvals, reason }
  })
}

/** By the passkey and the agent of the last policy. */
function createRefusedByRule() {
  const kind = 'transaction' as const
  const [spending, other] = [findRule(budgeted, 'spend'), findRule(budgeted, kind)]
  const digest = sample('digest 3')
  const common = { vaultAddress, policyHash: hashPolicy(budgeted), kind, digest, expiresMs: nowMs + 600_000 }
  const passkeyIndex = 1 - agentIndex
  const passkey = findPasskey(budgeted.approvers[passkeyIndex] as Approver)
  const byAgent = (changes: object) => agent.approve({ ...common, rule: spending, ...changes }, agentIndex)
  const cases = [
    ['an agent for a rule of passkeys', other, byAgent({ rule: other }), 'approver_not_allowed'],
    [
      'a passkey for a rule of agents',
      spending,
      passkey.approve({ ...common, rule: spending }, passkeyIndex),
      'approver_not_allowed',
    ],
    [
      'the approval of an agent as one of a passkey',
      other,
      { ...byAgent({ rule: other }), approver: passkeyIndex },
      'approver_not_allowed',
    ],
    [
      'the approval of a passkey as one of an agent',
      spending,
      passkey.approve({ ...common, rule: spending }, agentIndex),
      'approver_not_allowed',
    ],
    ['an agent, for another rule', spending, byAgent({ rule: other }), 'approval_signature_invalid'],
    [
      'a passkey, for another rule',
      other,
      passkey.approve({ ...common, rule: spending }, passkeyIndex),
      'challenge_mismatch',
    ],
    ['an agent, for more than 10 minutes', spending, byAgent({ expiresMs: nowMs + 600_001 }), 'approval_too_long'],
    ['an agent, expired', spending, byAgent({ expiresMs: nowMs }), 'approval_expired'],
  ] as const
  return cases.map(([why, rule, approval, reason]) => {
    const asked = { policy: 3, vaultAddress, rule, kind, digest: toPrefixedHex(digest) }
    return { why, ...asked, nowMs, required: 1, approvals: [approval], reason }
  })
}

if (import.meta.main) {
  writeFileSync(new URL('policy-v1.vectors.json', import.meta.url), toVectorFile(createVectors()))
}
