import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { computeApprovalChallenge, concatBytes, fromHex, type Hex, toHex, verifyEd25519 } from '@countersign/protocol'
import { p256 } from '@noble/curves/nist.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { verifyAuthenticationResponse } from '@simplewebauthn/server'
import { createRandom, type Random } from '../../protocol/fuzz/random.ts'
import { hashPolicy } from '../src/assertPolicy.ts'
import { checkApprovals, verifyEs256 } from '../src/checkApprovals.ts'
import type { Policy } from '../src/policy.ts'
import { toDer } from '../test/passkey.ts'
import { limited } from '../test/policies.ts'

/** How many approvals both verifiers accept, only the other one accepts, and both reject. */
export type ApprovalTally = { accepted: number; stricter: number; rejected: number }

const RP_ID = 'vault.example'
const ORIGINS = ['https://pay.vault.example', 'https://vault.example', 'https://vault.example:8443']
const secretKeys = [1, 2].map((seed) => sha256(new TextEncoder().encode(`approver ${seed}`)))
const [publicKey = ''] = secretKeys.map((key) => toHex(p256.getPublicKey(key, false)))
const [signer, otherSigner] = secretKeys.map(toPrivateKey) as [KeyObject, KeyObject]
const policy: Policy = { ...limited, approvers: [{ type: 'passkey', publicKey, rpId: RP_ID, origins: ORIGINS }] }
const policyHash = hashPolicy(policy)
const vaultAddress: Hex = `0x${'5a'.repeat(20)}`
const nowMs = Date.UTC(2027, 0, 1)
const { n } = p256.Point.CURVE()

/**
 * Generates valid and faulty approvals, signed by the passkey, and compares our verifier with that of
 * `@simplewebauthn/server`. Throws at the first approval that only ours accepts.
 */
export async function compareApprovals({ runs, seed }: { runs: number; seed: number }): Promise<ApprovalTally> {
  const random = createRandom(seed)
  const tally: ApprovalTally = { accepted: 0, stricter: 0, rejected: 0 }
  for (let run = 0; run < runs; run++) {
    const digest = random.bytes(32)
    const expiresMs = nowMs + 1 + random.below(86_400_000)
    const request = { policyHash, rule: 0, kind: 'transaction', digest, expiresMs } as const
    const challenge = computeApprovalChallenge({ ...request, vaultAddress: fromHex(vaultAddress.slice(2)) })
    const assertion = drawAssertion(random, toBase64Url(challenge))
    const hex = (name: keyof typeof assertion) => toHex(assertion[name])
    const [authenticatorData, clientDataJSON, signature] = [
      hex('authenticatorData'),
      hex('clientDataJSON'),
      hex('signature'),
    ]
    const approvals = [{ approver: 0, authenticatorData, clientDataJSON, signature, expiresMs }]
    const asked = { policy, vaultAddress, rule: 0, kind: 'transaction', digest } as const
    const parameters = { ...asked, approvals, required: 1, nowMs }
    const isOurs = checkApprovals({ verifyEs256, verifyEd25519 }, parameters).valid
    const isTheirs = await verifyElsewhere(assertion, toBase64Url(challenge))
    if (isOurs && !isTheirs) throw new Error(`run ${run}: only ours accepts ${JSON.stringify(approvals[0])}`)
    tally[isOurs ? 'accepted' : isTheirs ? 'stricter' : 'rejected'] += 1
  }
  return tally
}

type Assertion = Record<'authenticatorData' | 'clientDataJSON' | 'signature', Uint8Array>

/** About a third are valid. The others have one or two faults, most of them added before the passkey signs. */
function drawAssertion(random: Random, challenge: string): Assertion {
  const draft: Draft = {
    members: { type: 'webauthn.get', challenge, origin: random.pick(ORIGINS), crossOrigin: false },
    toText: (members) => JSON.stringify(members),
    spoil: (bytes) => bytes,
    rpId: RP_ID,
    flags: random.pick([0x05, 0x0d, 0x1d, 0x07, 0x25]),
    extra: new Uint8Array(),
    key: signer,
    toSignature: (der) => der,
  }
  const faults = random.pick([0, 1, 1, 2])
  for (let index = 0; index < faults; index++) random.pick(CHANGES)(draft, random)
  const clientDataJSON = draft.spoil(new TextEncoder().encode(draft.toText(draft.members)))
  const rpIdHash = sha256(new TextEncoder().encode(draft.rpId))
  const counter = random.pick([new Uint8Array(4), random.bytes(4)])
  const authenticatorData = concatBytes(rpIdHash, Uint8Array.of(draft.flags), counter, draft.extra)
  const der = sign('sha256', concatBytes(authenticatorData, sha256(clientDataJSON)), draft.key)
  return { authenticatorData, clientDataJSON, signature: draft.toSignature(new Uint8Array(der)) }
}

type Draft = {
  members: Record<string, unknown>
  toText(members: Record<string, unknown>): string
  spoil(bytes: Uint8Array): Uint8Array
  rpId: string
  flags: number
  extra: Uint8Array
  key: KeyObject
  toSignature(der: Uint8Array): Uint8Array
}

const VALUES = [null, true, false, 0, 1, '', 'null', 'webauthn.get', 'webauthn.create', [], {}, RP_ID, ...ORIGINS]
const NAMES = ['type', 'challenge', 'origin', 'crossOrigin', 'topOrigin', 'tokenBinding', '__proto__', 'other', '']
const BINDINGS = ['present', 'supported', 'notSupported', 'absent', '', null, 1, ['present']]

const CHANGES: ((draft: Draft, random: Random) => void)[] = [
  (draft, random) => Object.assign(draft.members, { [random.pick(NAMES)]: random.pick(VALUES) }),
  (draft, random) => delete draft.members[random.pick(NAMES)],
  (draft, random) => Object.assign(draft.members, { tokenBinding: { status: random.pick(BINDINGS) } }),
  (draft, random) =>
    Object.assign(draft.members, { origin: `${draft.members.origin}${random.pick(['/', ':443', '.', ' '])}` }),
  (draft, random) =>
    Object.assign(draft.members, { challenge: `${draft.members.challenge}${random.pick(['=', 'A', '\0'])}` }),
  (draft) => {
    draft.toText = (members) => JSON.stringify(members, undefined, 2)
  },
  (draft, random) => {
    const [name, value] = [random.pick(NAMES), random.pick(VALUES)]
    const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`
    const isFirst = random.below(2) === 0
    draft.toText = (members) =>
      isFirst ? `{${member},${JSON.stringify(members).slice(1)}` : `${JSON.stringify(members).slice(0, -1)},${member}}`
  },
  (draft, random) => {
    const [before, after] = [random.pick(['\ufeff', ' ', '[', '']), random.pick(['\n', '\0', ']', '{}', ','])]
    draft.toText = (members) => `${before}${JSON.stringify(members)}${after}`
  },
  (draft, random) => {
    const member = random.pick(['"\\ud800"', '1e999', '01', '"\\x"', "'a'", 'NaN', '[1,]', '"\t"', '{"a":1,"a":2}'])
    draft.toText = (members) => `${JSON.stringify(members).slice(0, -1)},"more":${member}}`
  },
  (draft, random) => {
    draft.spoil = (bytes) => changeByte(bytes, random)
  },
  (draft, random) => {
    draft.rpId = random.pick(['evil.example', 'pay.vault.example', 'https://vault.example', 'VAULT.example', ''])
  },
  (draft, random) => {
    draft.flags = random.below(256)
  },
  (draft, random) => {
    draft.extra = random.bytes(1 + random.below(40))
  },
  (draft) => {
    draft.key = otherSigner
  },
  (draft) => {
    draft.toSignature = (der) => changeInteger(der, ({ r, s }) => ({ r, s: n - s }))
  },
  (draft, random) => {
    const [one, add] = [random.pick(['r', 's'] as const), random.pick([n, 1n])]
    draft.toSignature = (der) => changeInteger(der, (parts) => ({ ...parts, [one]: parts[one] + add }))
  },
  (draft, random) => {
    draft.toSignature = (der) => toDer(random.pick([{ r: 0n, s: 1n }, { r: 1n, s: 0n }, toParts(der)]))
  },
  (draft, random) => {
    draft.toSignature = (der) =>
      random.pick([concatBytes(der, random.bytes(1)), der.slice(0, -1), toLongForm(der), new Uint8Array()])
  },
  (draft, random) => {
    draft.toSignature = (der) => changeByte(der, random)
  },
]

/** Replaces, removes or inserts one byte. */
function changeByte(bytes: Uint8Array, random: Random): Uint8Array {
  const at = random.below(bytes.length)
  const inserted = random.pick([random.bytes(1), random.bytes(1), new Uint8Array()])
  return concatBytes(bytes.subarray(0, at), inserted, bytes.subarray(at + random.below(2)))
}

const toParts = (der: Uint8Array) => p256.Signature.fromBytes(der, 'der')

function changeInteger(der: Uint8Array, change: (parts: { r: bigint; s: bigint }) => { r: bigint; s: bigint }) {
  return toDer(change(toParts(der)))
}

/** BER allows the length in two bytes, DER does not. */
function toLongForm(der: Uint8Array): Uint8Array {
  return concatBytes(Uint8Array.of(0x30, 0x81), der.subarray(1))
}

function toPrivateKey(secretKey: Uint8Array): KeyObject {
  const point = p256.getPublicKey(secretKey, false)
  const [d, x, y] = [secretKey, point.subarray(1, 33), point.subarray(33)].map(toBase64Url) as [string, string, string]
  return createPrivateKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', d, x, y } })
}

/** COSE (RFC 9053 §7.1): {1: EC2, 3: ES256, -1: P-256, -2: x, -3: y}. */
const coseKey = concatBytes(
  fromHex('a5010203262001215820'),
  fromHex(publicKey.slice(2, 66)),
  fromHex('225820'),
  fromHex(publicKey.slice(66)),
)

async function verifyElsewhere(assertion: Assertion, challenge: string): Promise<boolean> {
  const id = 'AAAA'
  const parts = Object.entries(assertion).map(([name, bytes]) => [name, toBase64Url(bytes)])
  try {
    const { verified } = await verifyAuthenticationResponse({
      response: { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response: Object.fromEntries(parts) },
      expectedChallenge: challenge,
      expectedOrigin: [...ORIGINS],
      expectedRPID: RP_ID,
      credential: { id, publicKey: coseKey, counter: 0 },
    })
    return verified
  } catch {
    return false
  }
}

function toBase64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}
