import type { ServerResponse } from 'node:http'
import { createNoteKey, toVkey } from '@countersign/log'
import { measureSimulatedEnclave, startFakeChain } from '@countersign/testing'
import { startFakeEnclave } from '../sign/enclave/httpEnclave.ts'
import { type Bed, type Break, type Case, serve, serveSilence, writeJson } from './bed.ts'

/** The key of an unknown account. */
export const STRANGERS_KEY = `0x${'42'.repeat(32)}`

const answerJson = (status: number, body: unknown) => (_: unknown, response: ServerResponse) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

/** Makes the satellite misbehave during the check. */
function spoilEntropy(fault: Parameters<Bed['backend']['satellite']['setFault']>[0]): Break {
  return (scope, { backend }) => {
    backend.satellite.setFault(fault)
    scope.add(backend, async () => backend.satellite.setFault())
    return {}
  }
}

/** Another chain with the same publisher. */
async function startOtherChain(...[scope, bed, options]: [...Parameters<Break>, { now?: () => number }?]) {
  const publisher = bed.contract.chain.accounts[1]?.address ?? '0x'
  const chain = scope.add(await startFakeChain({ publisher, ...options }), ({ stop }) => stop())
  return { chain, publisher, settings: { RPC_URL: chain.url, ATTESTATIONS_ADDRESS: chain.contract } }
}

/** An Ed25519 key of RFC 8032 §7.1. */
const publicKey = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')
const WITNESS = toVkey(createNoteKey({ name: 'witness.example/w1', type: 'cosignature-ed25519', publicKey }))
export const LOG = toVkey(createNoteKey({ name: 'log.example/a', type: 'ed25519', publicKey }))

/** Settings for real hardware, which this machine doesn't have. */
async function toHardware(bed: Bed) {
  const configHashes = [String(bed.backend.enclaveFields().configHash)]
  const path = await writeJson(bed, 'hardware.json', { measurements: [measureSimulatedEnclave()], configHashes })
  return { MOCK_ATTESTATION: undefined, ENCLAVE_POLICY_FILE: path, COLLATERAL_URL: `http://${bed.closedAddress}` }
}

/** Faults of other services. */
export const outsideCases: readonly Case[] = [
  ['chain', /invalid publisher private key/, () => ({ PUBLISHER_PRIVATE_KEY: `0x${'00'.repeat(32)}` })],
  ['enclave', /connection refused/, (_, bed) => ({ ENCLAVE_URL: `http://${bed.closedAddress}` })],
  ['enclave', /not an enclave/, async (scope) => ({ ENCLAVE_URL: await serve(scope, answerJson(404, {})) })],
  [
    'enclave',
    /no answer/,
    async (scope) => ({ ENCLAVE_URL: `http://${await serveSilence(scope)}` }),
    { args: ['--timeout', '5', '--only', 'enclave'] },
  ],
  [
    'enclave',
    /does not list its configuration/,
    async (_, bed) => {
      const policy = { measurements: [measureSimulatedEnclave()], configHashes: ['12'.repeat(16) + '34'.repeat(16)] }
      return { ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-configuration.json', policy) }
    },
  ],
  [
    'enclave',
    /quote was rejected/,
    async (_, bed) => {
      const measurement = { ...measureSimulatedEnclave(), mrTd: '12'.repeat(24) + '34'.repeat(24) }
      const configHashes = [String(bed.backend.enclaveFields().configHash)]
      return {
        ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-build.json', { measurements: [measurement], configHashes }),
      }
    },
  ],
  [
    'enclave',
    /does not list its root secret [0-9a-f]{64}/,
    async (_, bed) => {
      const configHashes = [String(bed.backend.enclaveFields().configHash)]
      const commitments = ['12'.repeat(16) + '34'.repeat(16)]
      const policy = { measurements: [measureSimulatedEnclave()], configHashes, commitments }
      return { ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-secret.json', policy) }
    },
  ],
  [
    'enclave',
    /another root secret than http/,
    async (scope, { backend }) => {
      const fake = scope.add(await startFakeEnclave(), ({ close }) => close())
      fake.commitment = '12'.repeat(32)
      return { ENCLAVE_URL: `${backend.enclaveUrl},${fake.url}` }
    },
  ],
  ['enclave-settings', /does not accept google/, () => ({ OIDC_GOOGLE_CLIENT_ID: 'another' })],
  [
    'enclave-settings',
    /does not accept samples signed by d75a/,
    () => ({ ENTROPY_PUBLIC_KEY: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' }),
  ],
  ['entropy', /connection refused/, (_, bed) => ({ ENTROPY_URL: `http://${bed.closedAddress}` })],
  ['entropy', /key other than ENTROPY_PUBLIC_KEY/, spoilEntropy('foreign-key')],
  ['entropy', /invalid signature/, spoilEntropy('wrong-signature')],
  ['entropy', /too old/, spoilEntropy('stale')],
  ['entropy', /quota exceeded \(429\)/, async (scope) => ({ ENTROPY_URL: await serve(scope, answerJson(429, {})) })],
  [
    'entropy',
    /rejected credentials/,
    async (scope) => {
      const url = await serve(scope, answerJson(401, {}))
      const source = { ENTROPY_SOURCE: 'orbitport', ENTROPY_ALLOW_UNSIGNED: 'true', ENTROPY_AUTH_URL: url }
      return { ...source, ENTROPY_URL: url, ENTROPY_CLIENT_ID: 'x', ENTROPY_CLIENT_SECRET: 'canary-secret' }
    },
  ],
  ['pins', /rejected credentials/, () => ({ IPFS_API_TOKEN: 'canary-token' })],
  ['pins', /connection refused/, (_, bed) => ({ IPFS_API_URL: `http://${bed.closedAddress}` })],
  [
    'pins',
    /no usable answer/,
    async (scope) => ({
      IPFS_API_URL: await serve(scope, (_, response) => void response.end('<!doctype html>')),
    }),
  ],
  [
    'pins',
    /other bytes/,
    async (scope, bed) => {
      bed.kubo.setFault('flipped')
      scope.add(bed, async () => bed.kubo.setFault())
      return {}
    },
  ],
  ['chain', /expected chain 1, but the RPC serves 31337/, () => ({ CHAIN_ID: '1' })],
  ['chain', /no code at/, () => ({ ATTESTATIONS_ADDRESS: `0x${'11'.repeat(20)}` })],
  ['chain', /the publisher is 0x/, () => ({ PUBLISHER_PRIVATE_KEY: STRANGERS_KEY })],
  ['chain', /RPC/, (_, bed) => ({ RPC_URL: `http://user:canary-password@${bed.closedAddress}/canary-path` })],
  [
    'chain',
    /no usable answer/,
    async (scope) => ({ RPC_URL: `${await serve(scope, answerJson(401, { no: 1 }))}/canary-path` }),
  ],
  [
    'balance',
    /not enough for one publication/,
    async (scope, bed) => {
      const { chain, publisher, settings } = await startOtherChain(scope, bed)
      chain.setBalance(publisher, 1n)
      return settings
    },
  ],
  [
    'balance',
    /enough for about \d+ publications/,
    async (scope, bed) => {
      const { chain, publisher, settings } = await startOtherChain(scope, bed)
      chain.setBalance(publisher, 10n ** 15n)
      return settings
    },
    { state: 'warning' },
  ],
  [
    'chain-head',
    /minutes old/,
    async (scope, bed) => {
      const { settings } = await startOtherChain(scope, bed, { now: () => Date.now() - 7_200_000 })
      return { ...settings, NODE_ENV: 'production' }
    },
    { args: ['--worker'] },
  ],
  ['sign-in', /connection refused/, (_, bed) => ({ OIDC_GOOGLE_ISSUER: `http://${bed.closedAddress}` })],
  [
    'sign-in',
    /another issuer/,
    async (scope) => ({
      OIDC_GOOGLE_ISSUER: await serve(scope, answerJson(200, { issuer: 'https://other.example' })),
    }),
  ],
  [
    'sign-in',
    /no OpenID provider metadata/,
    async (scope) => ({ OIDC_GOOGLE_ISSUER: await serve(scope, answerJson(404, {})) }),
  ],
  ['sign-in', /redirect URI/, () => ({ PUBLIC_URL: 'http://localhost:1234' })],
  ['clock', /120 s behind the clock of/, () => ({}), { now: () => Date.now() - 120_000 }],
  ['enclave', /differ by more than 30 s/, () => ({}), { now: () => Date.now() + 45_000 }],
  [
    'enclave-settings',
    /the enclave has no log/,
    (_, bed) => ({ RECEIPTS: '2', LOG_WITNESSES: `${WITNESS}@http://${bed.closedAddress}` }),
    { state: 'warning' },
  ],
  [
    'log',
    /witness.example\/w1: connection refused/,
    (_, bed) => ({ RECEIPTS: '2', LOG_WITNESSES: `${WITNESS}@http://${bed.closedAddress}` }),
    { state: 'warning' },
  ],
  ['report', /configfs_unavailable/, (_, bed) => toHardware(bed)],
  [
    'report',
    /SNP_CERTS_FILE cannot be read/,
    async (_, bed) => ({ ...(await toHardware(bed)), SNP_CERTS_FILE: '/nowhere/certificates.pem' }),
  ],
  [
    'report',
    /^COLLATERAL_URL: .*https/,
    async (_, bed) => ({ ...(await toHardware(bed)), COLLATERAL_URL: 'http://collateral.example' }),
  ],
]
