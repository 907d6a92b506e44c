import { generateKeyPairSync, hash } from 'node:crypto'
import {
  type AnyWitness,
  hashEntropy,
  type OpenSessionRequest,
  type OpenSessionResponse,
  type OwnerOpening,
  toAddress,
  toHex,
  type VaultRequest,
  type VaultResponse,
} from '@countersign/protocol'
import { assembleCoordinator, encodeBlock, type SelfAttestation, type Witness } from '@countersign/receipt'
import type { Log, LogLine } from '@countersign/service'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { evaluateRefusal, type IdentityProvider } from '../src/accounts/oidc.ts'
import { drawIcon } from '../src/accounts/readProviders.ts'
import { CoordinatorError } from '../src/errors.ts'
import { createMlDsa65Signer, type SelfReport, toMlDsa65Bytes } from '../src/sign/enclave/health/selfReport.ts'
import type { KeyEnclave } from '../src/sign/enclave/keyEnclave.ts'
import type { Entropy } from '../src/sign/entropy/readAhead.ts'
import type { Clock, Random } from '../src/system.ts'

/* Fakes of the outside world. Each counts its calls and fails on request. */

export type FakeClock = Clock & { advance(ms: number): void }

/** Controlled by the test. */
export function createFakeClock(start = Date.parse('2026-06-15T12:00:00.000Z')): FakeClock {
  let now = start
  return {
    now: () => now,
    advance(ms: number) {
      now += ms
    },
  }
}

/** Different at each call and the same in each run. Only for tests. */
export function createFakeRandom(seed = 'seed'): Random {
  let counter = 0
  return (length) => {
    counter += 1
    const bytes = hash('shake256', `${seed}/${counter}`, { outputEncoding: 'buffer', outputLength: length })
    return new Uint8Array(bytes)
  }
}

export function createFakeLog() {
  const lines: (LogLine & { level: string })[] = []
  const write = (level: string) => (line: LogLine) => {
    lines.push({ level, ...line })
  }
  const log: Log = { info: write('info'), warn: write('warn'), error: write('error') }
  return { ...log, lines }
}

export function createFakeWitness(sequence: number): Witness {
  const value = hash('sha256', `sample ${sequence}`, 'hex')
  return {
    source: 'fake-satellite',
    valueHex: value,
    signatureHex: hash('sha512', `signature ${sequence}`, 'hex'),
    publicKey: '5a'.repeat(32),
    timestamp: '2026-06-15T12:00:00.000Z',
    sequence,
  }
}

/** A witness's form in `provenance`. */
export function toFakeProvenance(witness: Witness) {
  const entropyHash = toHex(hashEntropy(new Uint8Array(Buffer.from(witness.valueHex, 'hex'))))
  return { entropyHash, entropySig: witness.signatureHex, satelliteSource: witness.source }
}

export function createFakeEntropy() {
  const fake = { taken: 0, isDown: false, refused: [] as AnyWitness[] }
  async function take(count: number): Promise<AnyWitness[]> {
    if (fake.isDown) throw new CoordinatorError('entropy_unavailable', 'no sample is available')
    return Array.from({ length: count }, () => {
      fake.taken += 1
      return createFakeWitness(fake.taken)
    })
  }
  const entropy: Entropy = {
    take,
    takeVerified: take,
    refuse: (samples) => void fake.refused.push(...samples),
    stop: async () => {},
  }
  return Object.assign(fake, entropy)
}

/** Opens sessions for the subject in the fake token, with keys derived from it. Signing has separate tests with a real enclave. */
export function createFakeEnclave({ clock, ttlMs = 43_200_000 }: { clock: { now(): number }; ttlMs?: number }) {
  const fake = {
    opened: [] as OpenSessionRequest[],
    derived: [] as VaultRequest[],
    failure: undefined as Error | undefined,
    ttlMs,
    changeVault: (vault: VaultResponse) => vault,
  }
  const owners = new Map<string, OwnerOpening['identity']>()
  const openOwner = (keyId: string, identity: OwnerOpening['identity']): OwnerOpening => ({
    salt: hash('sha256', `salt ${keyId}`, 'hex'),
    identity,
  })
  const enclave: KeyEnclave = {
    async openSession(request): Promise<OpenSessionResponse> {
      if (fake.failure !== undefined) throw fake.failure
      fake.opened.push(request)
      const { issuer, subject } = parseFakeIdToken(request.idToken)
      const owner = `${issuer} ${subject}`
      const sid = hash('sha256', `sid ${fake.opened.length}`, 'hex')
      const identity = { issuer, subject, email: null }
      owners.set(sid, identity)
      const keyId = hash('sha256', `key ${owner}`, 'hex').slice(0, 32)
      return {
        sid,
        grant: `grant-${fake.opened.length}`,
        keyId,
        address: `0x${hash('sha256', `address ${owner}`, 'hex').slice(0, 40)}`,
        owner: openOwner(keyId, identity),
        expiresAt: new Date(clock.now() + fake.ttlMs).toISOString(),
      }
    },
    async deriveVault(request) {
      if (fake.failure !== undefined) throw fake.failure
      fake.derived.push(request)
      const { sid, policy } = request
      const identity = owners.get(sid) ?? { issuer: '', subject: '', email: null }
      const seed = hash('sha256', `vault ${identity.issuer} ${identity.subject} ${policy}`, 'buffer')
      const publicKey = secp256k1.getPublicKey(seed, false)
      const vault = { keyId: toHex(seed).slice(0, 32), address: toAddress(publicKey), publicKey: toHex(publicKey) }
      const owner = openOwner(vault.keyId, identity)
      return fake.changeVault({ ...vault, owner, policy: hash('sha256', policy, 'hex') })
    },
    getTerms: async () => Promise.reject(new CoordinatorError('enclave_unavailable', 'the fake has no terms')),
    signItems: async () => Promise.reject(new CoordinatorError('enclave_unavailable', 'the fake signs nothing')),
    countSlots: () => 8,
    avoid() {},
    release: async () => Promise.reject(new CoordinatorError('enclave_unavailable', 'the fake signs nothing')),
    logs: [],
    check: async () => [],
    stop: async () => {},
  }
  return Object.assign(fake, enclave)
}

export type FakeIdentity = { subject: string; email: string; name: string | null }

type FakeClaims = FakeIdentity & { issuer: string; nonce: string }

function toFakeIdToken(identity: FakeClaims): string {
  return `fake.${Buffer.from(JSON.stringify(identity)).toString('base64url')}.token`
}

function parseFakeIdToken(idToken: string): FakeClaims {
  return JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString()) as FakeClaims
}

/** Every code except `bad` signs in the user in `identity`. An `error` in the callback throws. */
export function createFakeProvider(identity: FakeIdentity, issuer = 'https://provider.example') {
  const fake = {
    identity,
    isDown: false,
    started: [] as { state: string; nonce: string; codeVerifier: string; mustChoose: boolean }[],
    finished: [] as { callbackUrl: URL; state: string; nonce: string; codeVerifier: string }[],
  }
  const failed = () => new CoordinatorError('oauth_exchange_failed', 'the provider did not sign the user in')
  const name = new URL(issuer).host
  const provider: IdentityProvider = {
    name,
    icon: drawIcon(name),
    async start(parameters) {
      if (fake.isDown) throw new CoordinatorError('provider_unavailable', 'the provider is unreachable')
      fake.started.push(parameters)
      const url = new URL('/authorize', issuer)
      url.search = new URLSearchParams({ state: parameters.state, nonce: parameters.nonce }).toString()
      return url
    },
    async finish(parameters) {
      fake.finished.push(parameters)
      const { searchParams } = parameters.callbackUrl
      const error = searchParams.get('error')
      if (error !== null) return evaluateRefusal(error)
      if (fake.isDown || searchParams.get('code') === 'bad') throw failed()
      const idToken = toFakeIdToken({ ...fake.identity, issuer, nonce: parameters.nonce })
      return { idToken, issuer, ...fake.identity }
    },
  }
  return Object.assign(fake, provider)
}

/** A real signing key. The report only has the right form. */
export function createFakeSelfReport() {
  const secretKey = new Uint8Array(32).fill(9)
  const selfAttestation: SelfAttestation = {
    reportHex: '0a'.repeat(1184),
    certificates: { ek: '01', ask: '02', ark: '03' },
    measurement: '0b'.repeat(48),
    configHash: '0c'.repeat(32),
    fetchedAt: '2026-06-15T11:59:00.000Z',
  }
  const mlDsa65 = generateKeyPairSync('ml-dsa-65')
  const publicKey = toHex(ed25519.getPublicKey(secretKey))
  const { measurement: _, ...attested } = selfAttestation
  const keys = { ed25519: publicKey, mlDsa65: toHex(toMlDsa65Bytes(mlDsa65.publicKey)) }
  const coordinator = encodeBlock('coordinator', assembleCoordinator({ ...attested, keys }))
  const fake = { isMissing: false }
  const selfReport: SelfReport = {
    mode: 'mock',
    publicKey,
    current() {
      if (fake.isMissing) throw new Error('no report')
      return { selfAttestation, coordinator, expiresAt: '2026-06-15T12:59:00.000Z' }
    },
    sign: (message) => ed25519.sign(message, secretKey),
    signMlDsa65: createMlDsa65Signer(mlDsa65.privateKey),
    stop: async () => {},
  }
  return Object.assign(fake, selfReport)
}
