import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestBrowser } from '@countersign/testing'
import { createTx, toDigest, waitForCompleteProofs } from '@countersign/testing/stack'
import { toMeasurementText, toMinimumTcbTexts } from '@countersign/verify'
import { createPublicClient, http } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { readOperatorTrust } from '../apps/web/src/anchors/trust.ts'
import { parseConfig } from '../apps/web/src/config.ts'
import { serviceAttestations } from '../contracts/abi.ts'
import { type DevChain, startDevChain } from './chain.ts'
import { type Dev, getFreePorts, type Ports, startDev, toArgs } from './startDev.ts'

const STRANGER = '0x00000000000000000000000000000000000c0ffe'
/** A stack takes seconds to start, and many of them where the machine has other work. */
const START_LIMIT_MS = 180_000

/** What the summary says after a word. */
function summaryOf({ output }: Pick<Dev, 'output'>, word: string): string {
  const line = output.find((text) => text.includes(`  ${word} `))
  return line?.split(` ${word} `)[1]?.trim().split(' ')[0] ?? ''
}

/** The processes that were started by another, and what with. Linux alone tells. */
async function readChildren({ child }: Dev): Promise<{ pid: number; env: Record<string, string> }[]> {
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  const pids = children.trim().split(' ').map(Number)
  return Promise.all(
    pids.map(async (pid) => {
      const pairs = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').filter((pair) => pair !== '')
      const env = Object.fromEntries(pairs.map((pair) => [pair.split('=')[0], pair.slice(pair.indexOf('=') + 1)]))
      return { pid, env }
    }),
  )
}

/** A chain that has moved an ether, for a stack to go on with. */
async function prepareChain(stateDir: string) {
  const chain = await startDevChain({ port: 0, stateDir })
  const hash = await chain.faucet(STRANGER)
  await chain.stop()
  return { ...chain, hash }
}

const urlsOf = (ports: Ports) => ({
  web: `http://localhost:${ports.web}`,
  api: `http://localhost:${ports.coordinator}`,
  chain: `http://127.0.0.1:${ports.chain}`,
})
const readerOf = (ports: Ports) => createPublicClient({ transport: http(urlsOf(ports).chain) })

async function signIn(startUrl: string) {
  const browser = createTestBrowser()
  const { url } = await browser.navigate(startUrl)
  const { url: landed, response } = await browser.navigate(new URL('?as=alice', url))
  return { browser, landed: landed.href, status: response.status }
}

async function sign(ports: Ports, browser: ReturnType<typeof createTestBrowser>): Promise<string> {
  const { api, web } = urlsOf(ports)
  const txMetadata = createTx(0)
  const signed = await browser.request(`${api}/sign/digest`, {
    method: 'POST',
    headers: { origin: web, 'content-type': 'application/json' },
    body: JSON.stringify({ digest: toDigest(txMetadata), txMetadata }),
  })
  expect(signed.status).toBe(200)
  const { slug } = (await signed.json()) as { slug: string }
  await waitForCompleteProofs({ url: api, slugs: [slug] })
  return slug
}

const readConfig = async (ports: Ports) => parseConfig(await (await fetch(`${urlsOf(ports).web}/config.json`)).json())

/** As a stranger would, with the anchors that the web app was given. */
async function verify(ports: Ports, slug: string) {
  const { manifest, node } = readOperatorTrust(await readConfig(ports)).trust
  const [measurement = { mrTd: '' }] = manifest.enclave.measurements
  const options = {
    '--measurement': toMeasurementText(measurement),
    '--config-hash': manifest.enclave.configHashes[0],
    '--coordinator-measurement': manifest.coordinator.measurements[0],
    '--coordinator-tcb': toMinimumTcbTexts(manifest.coordinator.minimumTcb ?? {})[0],
    '--coordinator-config-hash': manifest.coordinator.configHashes[0],
    '--entropy-key': manifest.entropyKeys[0],
    '--rpc': node?.rpcUrl,
    '--contract': manifest.contracts[0]?.address,
  }
  const args = Object.entries(options).flatMap(([name, value]) => [name, value ?? ''])
  const deps = { fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
  return runCli(deps, ['verify', `${urlsOf(ports).api}/proof/${slug}`, ...args, '--allow-mock'])
}

describe('npm run dev', () => {
  let stateDir: string
  let ports: Ports
  let before: DevChain & { hash: `0x${string}` }
  let dev: Dev
  const stops: (() => Promise<unknown>)[] = []

  /** Stopped with the file, whatever becomes of the tests. */
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
    dev = await startShared(toArgs(ports, stateDir))
  }, START_LIMIT_MS)
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop()
    await rm(stateDir, { recursive: true, force: true })
  }, START_LIMIT_MS)

  test('each part says when it starts, and when it is ready and how long that took; the app leads the summary', () => {
    const { output } = dev
    for (const name of ['oidc', 'satellite', 'chain', 'enclave', 'coordinator', 'web']) {
      const started = output.findIndex((line) => new RegExp(`^${name} +starting`).test(line))
      const ready = output.findIndex((line) => new RegExp(`^${name} +ready \\(\\d+\\.\\d s\\)$`).test(line))
      expect([name, started >= 0, ready > started]).toEqual([name, true, true])
    }
    const isSummary = (line: string) => line.startsWith('dev           ')
    expect(output.find(isSummary)?.split(/\s+/)).toEqual(['dev', 'Open', urlsOf(ports).web])
    // Whoever wrote a line is named before it, libraries too.
    const parts = ['chain', 'coordinator', 'dev', 'enclave', 'oidc', 'satellite', 'web']
    expect(output.filter((line) => !parts.includes(line.split(' ')[0] ?? ''))).toEqual([])
  })

  test('the chain goes on where it was, and the coordinator is told of it, of the contract and of the app', async () => {
    const { chain, api, web } = urlsOf(ports)
    expect([summaryOf(dev, 'Chain'), summaryOf(dev, 'Contract')]).toEqual([chain, before.contract])
    const reader = readerOf(ports)
    expect(await reader.getTransactionReceipt({ hash: before.hash })).toMatchObject({ blockNumber: 3n })
    const contract = { address: before.contract, abi: serviceAttestations.abi }
    expect(await reader.readContract({ ...contract, functionName: 'publisher' })).toBe(before.publisher.address)
    const children = await readChildren(dev)
    const coordinator = children.find(({ env }) => env.PORT === String(ports.coordinator))
    expect(coordinator?.env).toMatchObject({
      ALLOWED_ORIGINS: `${web},${api}`,
      RPC_URL: chain,
      CHAIN_ID: '31337',
      ATTESTATIONS_ADDRESS: before.contract,
      PUBLISHER_PRIVATE_KEY_FILE: before.publisher.privateKeyFile,
      CONFIRMATIONS: '1',
      CONFIRM_INTERVAL_MS: '1000',
      IPFS_GATEWAY_URL: api,
    })
  })

  test.each(['/', '/proof/q8Zk2vXo1fTn0uYbWcR3dA', '/verify?cid=x'])('%s is the page of the app', async (path) => {
    const response = await fetch(`${urlsOf(ports).web}${path}`, { headers: { accept: 'text/html' } })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html'])
    expect(await response.text()).toContain('<div id="root">')
  })

  test('its modules are compiled from source', async () => {
    const response = await fetch(`${urlsOf(ports).web}/src/config.ts`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/javascript'])
  })

  test('/config.json tells the page of this stack, and nothing else is called so', async () => {
    const { chain, api, web } = urlsOf(ports)
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
    })
    for (const path of ['/config.json.map', '/proof/config.json']) {
      expect(await (await fetch(`${web}${path}`)).text()).not.toContain('apiBaseUrl')
    }
  })

  test('a page of the app may call chain, faucet and coordinator, the last as whoever is signed in', async () => {
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
    const { headers: answered } = await fetch(`${api}/auth/me`, { headers: { origin: web } })
    expect(answered.get('access-control-allow-origin')).toBe(web)
    expect(answered.get('access-control-allow-credentials')).toBe('true')
  })

  test(
    'a second stack has ports and state of its own; --reset clears the chain and its key; a child that dies ends it with 1',
    async () => {
      const otherDir = join(stateDir, 'other')
      const cleared = await prepareChain(otherDir)
      const otherPorts = await getFreePorts()
      const other = await startShared([...toArgs(otherPorts, otherDir), '--reset'])
      const reader = readerOf(otherPorts)
      expect(await reader.getBlockNumber()).toBe(2n)
      expect(await reader.getBalance({ address: STRANGER })).toBe(0n)
      expect(await reader.getBalance({ address: cleared.publisher.address })).toBe(0n)
      expect(await readerOf(ports).getBalance({ address: STRANGER })).toBeGreaterThan(0n)
      const web = (await readChildren(other)).find(({ env }) => env.PORT === String(otherPorts.web))
      if (web === undefined) throw new Error('no web app')
      process.kill(web.pid, 'SIGKILL')
      expect(await other.ended).toBe(1)
      const fault = other.output.lastIndexOf('The web app was ended by SIGKILL. Its last lines:')
      expect(other.output.slice(fault).join('\n')).toContain('Started the web app')
      expect(other.output.join('\n')).toMatch(/Stopped the coordinator.*Stopped the enclave/s)
      await expect(fetch(`http://127.0.0.1:${otherPorts.enclave}/health`)).rejects.toThrow()
    },
    START_LIMIT_MS,
  )

  test(
    'one signs in, lands in the app, and signs; after a restart wallet and proof are there, and the proof verifies as before',
    async () => {
      const { api, web } = urlsOf(ports)
      const readAddress = async (browser: ReturnType<typeof createTestBrowser>) =>
        ((await (await browser.request(`${api}/wallet/me`)).json()) as { address: string }).address

      const first = await signIn(`${api}/auth/google`)
      expect([first.landed, first.status]).toEqual([`${web}/`, 200])
      const address = await readAddress(first.browser)
      expect(address).toMatch(/^0x/)
      const slug = await sign(ports, first.browser)
      const verified = await verify(ports, slug)
      expect(verified).toMatchObject({ exitCode: 0, stderr: '' })

      dev.child.kill('SIGINT')
      expect(await dev.ended).toBe(0)
      const order = dev.output.flatMap((line) => /(Stopped the \w+|Stopped\.)/.exec(line)?.[1] ?? [])
      expect(order).toEqual(['Stopped the coordinator', 'Stopped the enclave', 'Stopped.'])

      const again = await startShared(toArgs(ports, stateDir))
      expect(await verify(ports, slug)).toEqual(verified)
      const second = await signIn(summaryOf(again, 'Sign in'))
      expect([second.landed, second.status]).toEqual([`${api}/docs`, 200])
      expect(await readAddress(second.browser)).toBe(address)

      // A supervisor that is killed leaves nobody behind.
      const connections = [ports.coordinator, ports.enclave, ports.web].map((port) => connect(port, 'localhost'))
      const closed = connections.map((connection) => once(connection, 'close'))
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
