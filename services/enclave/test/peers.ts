import { randomBytes } from 'node:crypto'
import { createVerifier, parseQuote, toTdMeasurement } from '@countersign/attestation'
import { createSimulator, type SimulatedQuoteOptions } from '@countersign/attestation/simulator'
import { createSimulatedQuoteSource, type QuoteSource } from '@countersign/evidence'
import {
  createEnclaveSettings,
  type EnclaveConfig,
  type EnclaveSettings,
  hashEnclaveConfig,
  toEnclaveVersion,
  toHex,
  toRootSecretName,
} from '@countersign/protocol'
import { type ParsedRootSecretPolicy, parseRootSecretPolicy, type RootSecretPolicy } from '@countersign/root-secret'
import { createX25519Pair, type X25519Pair } from '@countersign/root-secret/sealing'
import { createLog } from '@countersign/service'
import { createRootSecretHolder } from '../src/rootSecret/rootSecretHolder.ts'
import { satelliteKey } from './witness.ts'

/** Simulated enclaves of one service, limited to the root secret, without processes, threads and network. */

export const at = new Date('2026-06-15T12:00:00.000Z')
export const simulator = createSimulator({ at })
/** Hardware under other roots, with the same code. */
export const foreignSimulator = createSimulator({ seed: 'foreign', at })
const { body } = parseQuote(new Uint8Array(simulator.quote({ reportData: new Uint8Array(64) })))
/** Of simulated enclaves, with every register that a policy must name. */
export const measurement = toTdMeasurement(body)

export const custodians: readonly X25519Pair[] = [1, 2, 3].map(() => createX25519Pair())

export function createTestPolicy(changes: Partial<RootSecretPolicy> = {}): ParsedRootSecretPolicy {
  const keys = custodians.map(({ publicKey }) => toHex(publicKey))
  const parsed = parseRootSecretPolicy(
    JSON.stringify({ measurements: [measurement], custodians: { threshold: 2, keys }, ...changes }),
    { requirePlatforms: false },
  )
  if ('faults' in parsed) throw new Error(parsed.faults.join())
  return parsed
}

const testSettings = createEnclaveSettings([{ kind: 'satellite', key: satelliteKey }])

function createTestConfig(
  { policyHash }: ParsedRootSecretPolicy,
  { version = '0.0.0', ...changes }: Partial<EnclaveConfig> = {},
  settings: EnclaveSettings = testSettings,
): EnclaveConfig {
  return {
    issuers: [{ issuer: 'https://issuer.example', audience: 'a', jwksOrigin: 'https://issuer.example' }],
    caSet: 'bundled',
    rootSecret: toRootSecretName(policyHash),
    quoteSource: 'mock',
    callerPolicy: 'any',
    version: toEnclaveVersion(version, settings),
    ...changes,
  }
}

export type TestPeerOptions = {
  policy?: ParsedRootSecretPolicy
  config?: Partial<EnclaveConfig>
  settings?: EnclaveSettings
  quote?: Partial<SimulatedQuoteOptions>
  silicon?: typeof simulator
}

export type TestPeer = ReturnType<typeof createTestPeer>

/** The parts of donor, joiner and recovery. `secrets` has the secrets that the holder received. */
export function createTestPeer(options: TestPeerOptions = {}) {
  const { policy = createTestPolicy(), settings = testSettings, quote = {}, silicon = simulator } = options
  const config = createTestConfig(policy, options.config, settings)
  const secrets: string[] = []
  const lines: string[] = []
  let now = at.getTime()
  let quotes = 0
  const source = createSimulatedQuoteSource({ simulator: silicon, quoteOptions: quote, latencyMs: 0 })
  const quoteSource: QuoteSource = {
    mode: 'mock',
    getQuote(reportData) {
      quotes += 1
      return source.getQuote(reportData)
    },
  }
  const clock = { now: () => now }
  const random = (length: number) => new Uint8Array(randomBytes(length))
  return {
    policy: policy.policy,
    policyHash: policy.policyHash,
    parsed: policy,
    config,
    settings,
    configHash: hashEnclaveConfig(config),
    quoteSource,
    fetchCollateral: async () => silicon.collateral(),
    verifier: createVerifier({ roots: [simulator.intelRoot] }),
    holder: createRootSecretHolder({
      configHash: hashEnclaveConfig(config),
      random,
      onSecret: (secret) => secrets.push(toHex(secret)),
    }),
    clock,
    random,
    wait: async (durationMs: number) => {
      now += durationMs
    },
    log: createLog((line) => lines.push(line), clock.now),
    health: {},
    secrets,
    lines,
    countQuotes: () => quotes,
    pass(durationMs: number) {
      now += durationMs
    },
  }
}
