import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestBrowser } from '@countersign/testing'
import { createPublicClient, http } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { readOperatorTrust } from '../apps/web/src/anchors/trust.ts'
import { parseConfig } from '../apps/web/src/config.ts'
import { toCommand } from '../apps/web/src/report/toCommand.ts'
import { serviceAttestations } from '../contracts/abi.ts'
import { type DevChain, startDevChain } from './chain.ts'
import {
  type Dev,
  getFreePorts,
  type Ports,
  post,
  readChildren,
  sign,
  signIn,
  startDev,
  summaryOf,
  toArgs,
  urlsOf,
} from './startDev.ts'
import { clearState } from './state.ts'

const STRANGER = '0x00000000000000000000000000000000000c0ffe'
/** The origin of a developer's own app. */
const APP = 'http://localhost:3000'
/** A stack needs seconds to start, and more on a busy machine. */
const START_LIMIT_MS = 180_000

/** A chain with one transfer, for a stack to continue. */
async function prepareChain(stateDir: string) {
  const chain = await startDevChain({ port: 0, stateDir })
  const hash = await chain.faucet(STRANGER)
  await chain.stop()
  return { ...chain, hash }
}

const readerOf = (ports: Ports) => createPublicClient({ transport: http(urlsOf(ports).chain) })

const readConfig = async (ports: Ports) => parseConfig(await (await fetch(`${urlsOf(ports).web}/config.json`)).json())

/** With the command from the proof page. */
async function verify(ports: Ports, slug: string) {
  const config = await readConfig(ports)
  const { trust } = readOperatorTrust(config)
  const command = toCommand(
    { kind: 'proof', slug, apiBaseUrl: config.apiBaseUrl },
    { trust, anchorSource: 'operator', localManifest: config.manifestFile },
  )
  const [words, args = ''] = command.split(' -- ')
  expect(words).toBe('npm run verify')
  const deps = { fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
  return runCli(deps, args.split(' '))
}

describe('npm run dev', () => {
  let stateDir: string
  let ports: Ports
  let before: DevChain & { hash: `0x${string}` }
  let dev: Dev
  const stops: (() => Promise<unknown>)[] = []

  /** Stopped at the end of the file, even if tests fail. */
  async function startShared(args: readonly string[]) {
    const started = startDev(args)
    stops.push(started.stop)
    await started.line('Ctrl-C stops it')
    return started
  }

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'countersign-dev-'))
    before = await prepareChain(stateDir)
    ports = await getFreePorts()
    dev = await startShared([...toArgs(ports, stateDir), '--origin', APP, '--origin', urlsOf(ports).web])
  }, START_LIMIT_MS)
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop()
    await clearState(stateDir)
    await rm(stateDir, { recursive: true, force: true })
  }, START_LIMIT_MS)

  test("each part reports that it is ready, with the time; without --verbose there is little else, and the app's address stands out", () => {
    const { output } = dev
    const parts = ['oidc', 'satellite', 'chain', 'database', 'enclave', 'coordinator', 'web']
    const isReady = (line: string) => /^(\w+) +ready \(\d+\.\d s\)$/.exec(line)?.[1] ?? []
    expect(output.flatMap(isReady).toSorted()).toEqual(parts.toSorted())
    const summary = output.findIndex((line) => line.includes('Countersign is running'))
    expect(summary).toBe(parts.length)
    expect(output.slice(summary + 2, summary + 5)).toEqual(['', `     Open ${urlsOf(ports).web} `, ''])
    // No log lines appear in between, and there are no colours outside a terminal.
    expect(output.slice(summary + 5).filter((line) => !line.startsWith('dev '))).toEqual([])
    expect(output.join('\n')).not.toMatch(/WARNING|"level"/)
    expect(summaryOf(dev, 'Demo site')).toBe(urlsOf(ports).demo)
  })

  test('continues the chain, and gives the coordinator the chain, the contract and the app', async () => {
    const { chain, api, web, demo } = urlsOf(ports)
    expect([summaryOf(dev, 'Chain'), summaryOf(dev, 'Contract')]).toEqual([chain, before.contract])
    const reader = readerOf(ports)
    expect(await reader.getTransactionReceipt({ hash: before.hash })).toMatchObject({ blockNumber: 4n })
    const contract = { address: before.contract, abi: serviceAttestations.abi }
    expect(await reader.readContract({ ...contract, functionName: 'publisher' })).toBe(before.publisher.address)
    const children = await readChildren(dev)
    const coordinator = children.find(({ env }) => env.PORT === String(ports.coordinator))
    expect(coordinator?.env).toMatchObject({
      ALLOWED_ORIGINS: `${web},${api},${demo},${APP}`,
      RPC_URL: chain,
      CHAIN_ID: '31337',
      ATTESTATIONS_ADDRESS: before.contract,
      PUBLISHER_PRIVATE_KEY_FILE: before.publisher.privateKeyFile,
      CONFIRMATIONS: '1',
      CONFIRM_INTERVAL_MS: '1000',
      IPFS_GATEWAY_URL: api,
    })
  })

  test.each(['/', '/proof/q8Zk2vXo1fTn0uYbWcR3dA', '/verify?cid=x'])("serves the app's page at %s", async (path) => {
    const response = await fetch(`${urlsOf(ports).web}${path}`, { headers: { accept: 'text/html' } })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html'])
    expect(await response.text()).toContain('<div id="root">')
  })

  test('compiles modules from source', async () => {
    const response = await fetch(`${urlsOf(ports).web}/src/config.ts`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/javascript'])
  })

  test("serves only the app's files: the checkout contains the local root secret", async () => {
    const root = join(import.meta.dirname, '..')
    const ask = async (path: string) => (await fetch(`${urlsOf(ports).web}/@fs${path}`)).status
    expect(await ask(join(root, 'apps/web/src/App.tsx'))).toBe(200)
    expect(await ask(join(root, 'package.json'))).toBe(403)
    expect(await ask(join(root, '.env.example'))).toBe(403)
  })

  test('/config.json describes this stack, and no similar path does', async () => {
    const { chain, api, web, demo } = urlsOf(ports)
    const response = await fetch(`${web}/config.json?now`)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(parseConfig(await response.json())).toMatchObject({
      apiBaseUrl: api,
      chainId: 31337,
      rpcUrl: chain,
      chainName: 'Local chain',
      faucetUrl: `${chain}/faucet`,
      ipfsGatewayUrl: api,
      attestations: { chainId: 31337, rpcUrl: chain, address: before.contract },
      allowMock: true,
      trust: { version: 'countersign-manifest/1' },
      manifestFile: join(stateDir, 'manifest.json'),
      signInDemoUrl: demo,
    })
    for (const path of ['/config.json.map', '/proof/config.json']) {
      expect(await (await fetch(`${web}${path}`)).text()).not.toContain('apiBaseUrl')
    }
  })

  test('a page of the app may call the chain, the faucet and, as a signed-in user, the coordinator', async () => {
    const { chain, api, web } = urlsOf(ports)
    const headers = { origin: web, 'content-type': 'application/json' }
    const calls = { [chain]: { id: 1, method: 'eth_chainId' }, [`${chain}/faucet`]: { address: STRANGER } }
    for (const [url, body] of Object.entries(calls)) {
      const asking = { origin: web, 'access-control-request-method': 'POST' }
      const preflight = await fetch(url, { method: 'OPTIONS', headers: asking })
      expect(preflight.headers.get('access-control-allow-headers')).toContain('content-type')
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
      expect([url, response.status, response.headers.get('access-control-allow-origin')]).toEqual([url, 200, '*'])
    }
    for (const origin of [web, APP]) {
      const { headers: answered } = await fetch(`${api}/auth/me`, { headers: { origin } })
      expect(answered.get('access-control-allow-origin')).toBe(origin)
      expect(answered.get('access-control-allow-credentials')).toBe('true')
      const begun = await fetch(`${api}/auth/google?return_to=${origin}/x`, { redirect: 'manual' })
      expect([origin, begun.status]).toEqual([origin, 302])
    }
    const refused = await fetch(`${api}/auth/google?return_to=http://localhost:3001/x`, { redirect: 'manual' })
    expect(refused.status).toBe(400)
  })

  test(
    'a user signs in and signs; after a restart the wallet and the proof are still there, and the proof verifies',
    async () => {
      const { api, web } = urlsOf(ports)
      const readAddress = async (browser: TestBrowser) =>
        ((await (await browser.request(`${api}/wallet/me`)).json()) as { address: string }).address

      const first = await signIn(`${api}/auth/google`)
      expect([first.landed, first.status]).toEqual([`${web}/`, 200])
      const address = await readAddress(first.browser)
      expect(address).toMatch(/^0x/)
      const slug = await sign(ports, first.browser)
      const delegate = (address: string) =>
        post(ports, first.browser, '/sign/authorization', { chainId: 31337, address, nonce: 0 })
      expect((await delegate(summaryOf(dev, 'Delegation'))).status).toBe(200)
      expect((await delegate(STRANGER)).status).toBe(422)
      const verified = await verify(ports, slug)
      expect(verified).toMatchObject({ exitCode: 0, stderr: '' })
      expect(verified.stdout).toContain('Nothing failed, on MOCK evidence')

      dev.child.kill('SIGINT')
      expect(await dev.ended).toBe(0)
      expect(dev.output.at(-1)).toMatch(/^dev +Stopped\.$/)

      const again = await startShared(toArgs(ports, stateDir))
      expect(await verify(ports, slug)).toEqual(verified)
      const second = await signIn(summaryOf(again, 'Sign in'))
      expect([second.landed, second.status]).toEqual([`${api}/docs`, 200])
      expect(await readAddress(second.browser)).toBe(address)

      // A killed supervisor leaves no processes behind.
      const connections = [ports.coordinator, ports.enclave, ports.web].map((port) => connect(port, 'localhost'))
      // Not `once` of node:events: a killed process may reset its connections, which emits an error before they close.
      const closed = connections.map(
        (connection) => new Promise((resolve) => connection.on('error', () => {}).once('close', resolve)),
      )
      for (const connection of connections) {
        connection.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n')
        await once(connection, 'data')
      }
      again.child.kill('SIGKILL')
      await Promise.all(closed)
    },
    START_LIMIT_MS,
  )
})
