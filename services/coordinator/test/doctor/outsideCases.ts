import type { ServerResponse } from 'node:http'
import { createNoteKey, toVkey } from '@countersign/log'
import { measureSimulatedEnclave, startFakeChain } from '@countersign/testing'
import { startFakeEnclave } from '../../src/sign/enclave/httpEnclave.fake.ts'
import { type Bed, type Case, serve, serveSilence, writeJson } from './bed.ts'

/** Of an account that nobody knows. */
export const STRANGERS_KEY = `0x${'42'.repeat(32)}`

const answerJson = (status: number, body: unknown) => (_: unknown, response: ServerResponse) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

/** A satellite that misbehaves for as long as it is looked at. */
function spoilEntropy(fault: Parameters<Bed['backend']['satellite']['setFault']>[0]): Case['break'] {
  return (scope, { backend }) => {
    backend.satellite.setFault(fault)
    scope.add(backend, async () => backend.satellite.setFault())
    return {}
  }
}

/** A chain of its own, whose publisher is that of the bed. */
async function startOtherChain(...[scope, bed, options]: [...Parameters<Case['break']>, { now?: () => number }?]) {
  const publisher = bed.contract.chain.accounts[1]?.address ?? '0x'
  const chain = scope.add(await startFakeChain({ publisher, ...options }), ({ stop }) => stop())
  return { chain, publisher, settings: { RPC_URL: chain.url, ATTESTATIONS_ADDRESS: chain.contract } }
}

/** An Ed25519 key of RFC 8032 §7.1. */
const publicKey = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')
const WITNESS = toVkey(createNoteKey({ name: 'witness.example/w1', type: 'cosignature-ed25519', publicKey }))
export const LOG = toVkey(createNoteKey({ name: 'log.example/a', type: 'ed25519', publicKey }))

/** Real silicon, which is not here. */
async function toHardware(bed: Bed) {
  const configHashes = [String(bed.backend.enclaveFields().configHash)]
  const path = await writeJson(bed, 'hardware.json', { measurements: [measureSimulatedEnclave()], configHashes })
  return { MOCK_ATTESTATION: undefined, ENCLAVE_POLICY_FILE: path, COLLATERAL_URL: `http://${bed.nobody}` }
}

/** Of everything that the settings name elsewhere. */
export const outsideCases: readonly Case[] = [
  {
    what: 'a publisher’s key of zeros',
    break: () => ({ PUBLISHER_PRIVATE_KEY: `0x${'00'.repeat(32)}` }),
    name: 'chain',
    text: /private key is not one/,
    mend: /Correct .*key/,
  },
  {
    what: 'no enclave there',
    break: (_, bed) => ({ ENCLAVE_URL: `http://${bed.nobody}` }),
    name: 'enclave',
    text: /nothing listens/,
    mend: /ENCLAVE_URL/,
  },
  {
    what: 'something else than an enclave',
    break: async (scope) => ({ ENCLAVE_URL: await serve(scope, answerJson(404, {})) }),
    name: 'enclave',
    text: /something else than an enclave/,
    mend: /Correct ENCLAVE_URL/,
  },
  {
    what: 'an enclave that says nothing',
    break: async (scope) => ({ ENCLAVE_URL: `http://${await serveSilence(scope)}` }),
    args: ['--timeout', '5', '--only', 'enclave'],
    name: 'enclave',
    text: /no answer/,
    mend: /frozen|hangs/,
  },
  {
    what: 'an enclave of another configuration',
    async break(_, bed) {
      const policy = { measurements: [measureSimulatedEnclave()], configHashes: ['12'.repeat(16) + '34'.repeat(16)] }
      return { ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-configuration.json', policy) }
    },
    name: 'enclave',
    text: /does not name its configuration/,
    mend: /configHashes/,
  },
  {
    what: 'an enclave of another build',
    async break(_, bed) {
      const measurement = { ...measureSimulatedEnclave(), mrTd: '12'.repeat(24) + '34'.repeat(24) }
      const configHashes = [String(bed.backend.enclaveFields().configHash)]
      return {
        ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-build.json', { measurements: [measurement], configHashes }),
      }
    },
    name: 'enclave',
    text: /quote is not accepted/,
    mend: /distrust it/,
  },
  {
    what: 'an enclave of another root secret than the policy names',
    async break(_, bed) {
      const configHashes = [String(bed.backend.enclaveFields().configHash)]
      const commitments = ['12'.repeat(16) + '34'.repeat(16)]
      const policy = { measurements: [measureSimulatedEnclave()], configHashes, commitments }
      return { ENCLAVE_POLICY_FILE: await writeJson(bed, 'other-secret.json', policy) }
    },
    name: 'enclave',
    text: /does not name its root secret [0-9a-f]{64}/,
    mend: /commitments/,
  },
  {
    what: 'two enclaves with a root secret each',
    async break(scope, { backend }) {
      const fake = scope.add(await startFakeEnclave(), ({ close }) => close())
      fake.commitment = '12'.repeat(32)
      return { ENCLAVE_URL: `${backend.enclaveUrl},${fake.url}` }
    },
    name: 'enclave',
    text: /another root secret than http/,
    mend: /backup’s commitment/,
  },
  {
    what: 'a client that the enclave does not accept',
    break: () => ({ OIDC_GOOGLE_CLIENT_ID: 'another' }),
    name: 'enclave-settings',
    text: /does not accept google/,
    mend: /OIDC_ISSUERS/,
  },
  {
    what: 'entropy that the enclave does not accept',
    break: () => ({ ENTROPY_PUBLIC_KEY: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' }),
    name: 'enclave-settings',
    text: /does not accept samples of key d75a/,
    mend: /same ENTROPY_PUBLIC_KEY/,
  },
  {
    what: 'no entropy there',
    break: (_, bed) => ({ ENTROPY_URL: `http://${bed.nobody}` }),
    name: 'entropy',
    text: /nothing listens/,
    mend: /ENTROPY_URL/,
  },
  {
    what: 'entropy of another key',
    break: spoilEntropy('foreign-key'),
    name: 'entropy',
    text: /another key than ENTROPY_PUBLIC_KEY/,
    mend: /key that the source publishes/,
  },
  {
    what: 'entropy whose signature does not hold',
    break: spoilEntropy('wrong-signature'),
    name: 'entropy',
    text: /does not hold/,
    mend: /Distrust/,
  },
  {
    what: 'old entropy',
    break: spoilEntropy('stale'),
    name: 'entropy',
    text: /too old/,
    mend: /clock/,
  },
  {
    what: 'entropy whose quota is spent',
    break: async (scope) => ({ ENTROPY_URL: await serve(scope, answerJson(429, {})) }),
    name: 'entropy',
    text: /quota is spent \(429\)/,
    mend: /for more/,
  },
  {
    what: 'entropy with credentials that are refused',
    async break(scope) {
      const url = await serve(scope, answerJson(401, {}))
      const source = { ENTROPY_SOURCE: 'orbitport', ENTROPY_ALLOW_UNSIGNED: 'true', ENTROPY_AUTH_URL: url }
      return { ...source, ENTROPY_URL: url, ENTROPY_CLIENT_ID: 'x', ENTROPY_CLIENT_SECRET: 'canary-secret' }
    },
    name: 'entropy',
    text: /refuses the credentials/,
    mend: /ENTROPY_CLIENT_SECRET/,
  },
  {
    what: 'a token that the pin service refuses',
    break: () => ({ IPFS_API_TOKEN: 'canary-token' }),
    name: 'pins',
    text: /refuses the credentials/,
    mend: /IPFS_API_TOKEN/,
  },
  {
    what: 'no pin service there',
    break: (_, bed) => ({ IPFS_API_URL: `http://${bed.nobody}` }),
    name: 'pins',
    text: /nothing listens/,
    mend: /IPFS_API_URL/,
  },
  {
    what: 'something else than a pin service',
    break: async (scope) => ({
      IPFS_API_URL: await serve(scope, (_, response) => void response.end('<!doctype html>')),
    }),
    name: 'pins',
    text: /no usable answer/,
    mend: /IPFS_API_URL/,
  },
  {
    what: 'a pin service that gives other bytes',
    async break(scope, bed) {
      bed.kubo.setFault('flipped')
      scope.add(bed, async () => bed.kubo.setFault())
      return {}
    },
    name: 'pins',
    text: /other bytes/,
    mend: /Distrust/,
  },
  {
    what: 'an RPC of another chain',
    break: () => ({ CHAIN_ID: '1' }),
    name: 'chain',
    text: /configured 1, but the RPC is of 31337/,
    mend: /Correct CHAIN_ID/,
  },
  {
    what: 'no contract there',
    break: () => ({ ATTESTATIONS_ADDRESS: `0x${'11'.repeat(20)}` }),
    name: 'chain',
    text: /no code at/,
    mend: /deploy:contract/,
  },
  {
    what: 'an account that may not publish',
    break: () => ({ PUBLISHER_PRIVATE_KEY: STRANGERS_KEY }),
    name: 'chain',
    text: /the publisher is 0x/,
    mend: /rotatePublisher/,
  },
  {
    what: 'no node there',
    break: (_, bed) => ({ RPC_URL: `http://user:canary-password@${bed.nobody}/canary-path` }),
    name: 'chain',
    text: /RPC/,
    mend: /RPC_URL/,
  },
  {
    what: 'something else than a node',
    break: async (scope) => ({ RPC_URL: `${await serve(scope, answerJson(401, { no: 1 }))}/canary-path` }),
    name: 'chain',
    text: /no usable answer/,
    mend: /its key is valid/,
  },
  {
    what: 'an empty account',
    async break(scope, bed) {
      const { chain, publisher, settings } = await startOtherChain(scope, bed)
      chain.setBalance(publisher, 1n)
      return settings
    },
    name: 'balance',
    text: /not enough for one publication/,
    mend: /Send funds to 0x/,
  },
  {
    what: 'an account that is nearly empty',
    async break(scope, bed) {
      const { chain, publisher, settings } = await startOtherChain(scope, bed)
      chain.setBalance(publisher, 10n ** 15n)
      return settings
    },
    name: 'balance',
    state: 'warning',
    text: /enough for about \d+ publications/,
    mend: /Send funds to 0x/,
  },
  {
    what: 'a node that has stopped',
    async break(scope, bed) {
      const { settings } = await startOtherChain(scope, bed, { now: () => Date.now() - 7_200_000 })
      return { ...settings, NODE_ENV: 'production' }
    },
    args: ['--worker'],
    name: 'chain-head',
    text: /minutes old/,
    mend: /follows the chain/,
  },
  {
    what: 'no identity provider there',
    break: (_, bed) => ({ OIDC_GOOGLE_ISSUER: `http://${bed.nobody}` }),
    name: 'sign-in',
    text: /nothing listens/,
    mend: /OIDC_GOOGLE_ISSUER/,
  },
  {
    what: 'an issuer that is another',
    break: async (scope) => ({
      OIDC_GOOGLE_ISSUER: await serve(scope, answerJson(200, { issuer: 'https://other.example' })),
    }),
    name: 'sign-in',
    text: /of another issuer/,
    mend: /exactly as "issuer"/,
  },
  {
    what: 'no OpenID provider',
    break: async (scope) => ({ OIDC_GOOGLE_ISSUER: await serve(scope, answerJson(404, {})) }),
    name: 'sign-in',
    text: /no metadata/,
    mend: /well-known/,
  },
  {
    what: 'a redirect URI that is not registered',
    break: () => ({ PUBLIC_URL: 'http://localhost:1234' }),
    name: 'sign-in',
    text: /redirect URI/,
    mend: /Register http:\/\/localhost:1234\/auth\/google\/callback/,
  },
  {
    what: 'a clock that is behind',
    break: () => ({}),
    now: () => Date.now() - 120_000,
    name: 'clock',
    text: /120 s behind that of/,
    mend: /NTP/,
  },
  {
    what: 'a clock that the enclave refuses',
    break: () => ({}),
    now: () => Date.now() + 45_000,
    name: 'enclave',
    text: /more than 30 s apart/,
    mend: /Set both clocks/,
  },
  {
    what: 'a log of a coordinator whose enclave has none',
    break: (_, bed) => ({ RECEIPTS: '2', LOG_WITNESSES: `${WITNESS}@http://${bed.nobody}` }),
    name: 'enclave-settings',
    state: 'warning',
    text: /the enclave has no log/,
    mend: /LOG_ORIGINS/,
  },
  {
    what: 'a witness that is away',
    break: (_, bed) => ({ RECEIPTS: '2', LOG_WITNESSES: `${WITNESS}@http://${bed.nobody}` }),
    name: 'log',
    state: 'warning',
    text: /witness.example\/w1: nothing listens/,
    mend: /LOG_WITNESSES/,
  },
  {
    what: 'a machine that is none of AMD’s',
    break: (_, bed) => toHardware(bed),
    name: 'report',
    text: /configfs_unavailable/,
    mend: /SEV-SNP guest/,
  },
  {
    what: 'certificates of AMD that are not there',
    break: async (_, bed) => ({ ...(await toHardware(bed)), SNP_CERTS_FILE: '/nowhere/certificates.pem' }),
    name: 'report',
    text: /SNP_CERTS_FILE cannot be read/,
    mend: /can read it/,
  },
  {
    what: 'collateral by plain http',
    break: async (_, bed) => ({ ...(await toHardware(bed)), COLLATERAL_URL: 'http://collateral.example' }),
    name: 'report',
    text: /^COLLATERAL_URL: .*https/,
    mend: /https:\/\/HOST/,
  },
]
