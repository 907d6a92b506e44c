// Writes the test vectors of limits to this folder:
//   node -C source packages/policy/vectors/createLimitVectors.ts
// `src/limitVectors.test.ts` compares the file with this script, and the code with the file.

import { writeFileSync } from 'node:fs'
import { ServiceError, toCanonicalJson, toHex, toPrefixedHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { checkApprovals, hashPolicy, parsePolicy, verifyEs256 } from '../src/index.ts'
import { beacon, full, limited, passkeys, satellite, scheduled } from '../test/policies.ts'

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
  ] satisfies [string, object][]
}

const nowMs = Date.UTC(2027, 0, 1)

/** Approvals of the second policy of `policy-v1.vectors.json`, by its first approver, with a valid signature. */
function createClientData() {
  const digest = sample('digest 0')
  const vaultAddress = toPrefixedHex(sample('vault').subarray(0, 20))
  const request = { vaultAddress, policyHash: hashPolicy(full), kind: 'transaction', digest } as const
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
    const parameters = { vaultAddress, kind: request.kind, nowMs, required: 1, approvals }
    const verdict = checkApprovals({ verifyEs256 }, { ...parameters, policy: full, digest })
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
