// Writes the test vectors of policies and approvals to this folder, computed with this package's functions:
//   node -C source packages/policy/vectors/createVectors.ts
// `src/vectors.test.ts` compares the file with this script and with independent code.

import { writeFileSync } from 'node:fs'
import { type Hex, toHex, toPrefixedHex } from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type Approver,
  checkPolicy,
  hashApprovals,
  hashPolicy,
  type Policy,
  type PolicyRequest,
  toPolicyBytes,
} from '../src/index.ts'
import { alice, ETHER, full, limited, passkeys, satellite, scheduled, token } from '../test/policies.ts'

const sample = (name: string) => sha256(new TextEncoder().encode(name))
const policies: readonly { name: string; policy: Policy }[] = [
  { name: 'a limit for each payment, and approval above it', policy: limited },
  { name: 'every kind of rule, a log, three approvers', policy: full },
  { name: 'a schedule, with the time of a satellite and of a beacon', policy: scheduled },
]

/** Every vector, as plain JSON. */
export function createVectors() {
  return {
    version: 'countersign-policy-vectors/1',
    notes: [
      'Byte strings are lower-case hex: with 0x where they are values of Ethereum, without elsewhere.',
      'Members with the name `policy` that are numbers name one of `policies`, by its place.',
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
const findPasskey = ({ publicKey }: Approver) =>
  passkeys.find(({ approver }) => approver.publicKey === publicKey) as (typeof passkeys)[number]

function createApprovals() {
  return (['transaction', 'message', 'typed-data'] as const).map((kind, index) => {
    const digest = sample(`digest ${index}`)
    const expiresMs = nowMs + 3_600_000 * (index + 1)
    // One approver, then two, then all three of the second policy.
    const approvals = full.approvers
      .slice(0, index + 1)
      .map((one, approver) =>
        findPasskey(one).approve({ vaultAddress, policyHash: hashPolicy(full), kind, digest, expiresMs }, approver),
      )
    const hash = toHex(hashApprovals(approvals))
    return { policy: 1, vaultAddress, kind, digest: toPrefixedHex(digest), nowMs, required: index + 1, approvals, hash }
  })
}

/** By the first approver, with a valid signature. */
function createRefusedApprovals() {
  const kind = 'transaction' as const
  const digest = sample('digest 0')
  const request = { vaultAddress, policyHash: hashPolicy(full), kind, digest, expiresMs: nowMs + 3_600_000 }
  const withMember = (member: string) => (text: string) => text.replace('}', `,${member}}`)
  return [
    { why: 'half of a surrogate pair, escaped, in a member that is passed over', member: '"more":"\\ud800"' },
    { why: 'half of a surrogate pair, escaped, in a name', member: '"more":{"\\udfff":1}' },
    { why: 'a member twice', member: '"more":1,"m\\u006fre":2' },
  ].map(({ why, member }) => {
    const changes = { clientDataText: withMember(member) }
    const approvals = [findPasskey(full.approvers[0] as Approver).approve(request, 0, changes)]
    const reason = 'client_data_malformed'
    return { why, policy: 1, vaultAddress, kind, digest: toPrefixedHex(digest), nowMs, required: 1, approvals, reason }
  })
}

if (import.meta.main) {
  writeFileSync(new URL('policy-v1.vectors.json', import.meta.url), toVectorFile(createVectors()))
}
