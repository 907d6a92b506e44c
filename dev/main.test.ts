import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { hashUnsignedTransaction, parseTxMetadata, toHex } from '@countersign/protocol'
import { createTestBrowser } from '@countersign/testing'
import { createPublicClient, http } from 'viem'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { serviceAttestations } from '../contracts/abi.ts'
import { startDevChain } from './chain.ts'

const STRANGER = '0x00000000000000000000000000000000000c0ffe'
const MAIN = new URL('main.ts', import.meta.url).pathname

let stateDir: string
let stops: (() => Promise<unknown>)[]
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'countersign-dev-'))
  stops = [() => rm(stateDir, { recursive: true, force: true })]
})
afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
})

async function listen(): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()))
  return { port: (server.address() as AddressInfo).port, close }
}

/** Held together, so that they differ; then given back. */
async function getFreePorts() {
  const held = await Promise.all([listen(), listen(), listen(), listen()])
  for (const { close } of held) await close()
  const [coordinator, enclave, oidc, chain] = held.map(({ port }) => port) as [number, number, number, number]
  return { coordinator, enclave, oidc, chain }
}

type Ports = Awaited<ReturnType<typeof getFreePorts>>

function startDev(args: readonly string[]) {
  const child = spawn(process.execPath, ['-C', 'source', MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output: string[] = []
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const waits = new Map<string, (line: string) => void>()
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      output.push(line)
      for (const [text, resolve] of waits) if (line.includes(text)) resolve(line)
    })
  }
  stops.push(async () => {
    child.kill('SIGTERM')
    await ended
  })
  return {
    child,
    output,
    ended,
    /** The next line that holds the text. */
    line: (text: string) =>
      new Promise<string>((resolve, reject) => {
        waits.set(text, resolve)
        void ended.then(() => reject(new Error(`ended without ${text}:\n${output.join('\n')}`)))
      }),
  }
}

function toArgs({ coordinator, enclave, oidc, chain }: Ports, state = stateDir) {
  const ports = ['--port', coordinator, '--enclave-port', enclave, '--oidc-port', oidc, '--chain-port', chain].map(
    String,
  )
  return [...ports, '--state', state, '--quote-latency', '0']
}

/** What the summary says after a word. */
function summaryOf({ output }: { output: readonly string[] }, word: string): string {
  const line = output.find((text) => text.includes(`  ${word} `))
  return line?.split(` ${word} `)[1]?.trim().split(' ')[0] ?? ''
}

async function drip(chainUrl: string): Promise<`0x${string}`> {
  const body = JSON.stringify({ address: STRANGER })
  const response = await fetch(`${chainUrl}/faucet`, { method: 'POST', body })
  return ((await response.json()) as { txHash: `0x${string}` }).txHash
}

/** What a process was started with. Linux alone tells. */
async function readEnvironments(parent: number): Promise<Record<string, string>[]> {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8')
  return Promise.all(
    children
      .trim()
      .split(' ')
      .map(async (pid) => {
        const pairs = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').filter((pair) => pair !== '')
        return Object.fromEntries(pairs.map((pair) => [pair.split('=')[0], pair.slice(pair.indexOf('=') + 1)]))
      }),
  )
}

describe('npm run dev', () => {
  test('starts everything; one signs in and signs; Ctrl-C stops it with 0, and the wallet is there at the next start', async () => {
    const args = toArgs(await getFreePorts())
    const api = `http://localhost:${args[1]}`
    const addresses: string[] = []
    for (const nonce of [0, 1]) {
      const dev = startDev(args)
      await dev.line('Ctrl-C stops it')
      const signIn =
        dev.output
          .find((line) => line.includes('Sign in '))
          ?.split(/\s+/)
          .at(-1) ?? ''
      const browser = createTestBrowser()
      const { url } = await browser.navigate(signIn)
      const { url: landed, response } = await browser.navigate(new URL('?as=alice', url))
      expect([landed.href, response.status]).toEqual([`${api}/docs`, 200])
      const { address } = (await (await browser.request(`${api}/wallet/me`)).json()) as { address: string }
      addresses.push(address)
      const txMetadata = {
        chainId: 31337,
        nonce,
        to: `0x${'11'.repeat(20)}`,
        value: '1',
        data: '0x',
        gas: '21000',
        maxFeePerGas: '2',
        maxPriorityFeePerGas: '1',
      }
      const digest = `0x${toHex(hashUnsignedTransaction(parseTxMetadata(txMetadata)))}`
      const signed = await browser.request(`${api}/sign/digest`, {
        method: 'POST',
        headers: { origin: api, 'content-type': 'application/json' },
        body: JSON.stringify({ digest, txMetadata }),
      })
      expect(signed.status).toBe(200)
      const { slug } = (await signed.json()) as { slug: string }
      expect((await fetch(`${api}/proof/${slug}`)).status).toBe(200)
      dev.child.kill('SIGINT')
      expect(await dev.ended).toBe(0)
      const order = dev.output.flatMap((line) => /(Stopped the \w+|Stopped\.)/.exec(line)?.[1] ?? [])
      expect(order).toEqual(['Stopped the coordinator', 'Stopped the enclave', 'Stopped.'])
    }
    expect(addresses[0]).toBe(addresses[1])
  })

  test('the chain goes on where it was, and the coordinator is told of it and of the contract', async () => {
    const before = await startDevChain({ port: 0, stateDir })
    const hash = await before.faucet(STRANGER)
    await before.stop()
    const ports = await getFreePorts()
    const chainUrl = `http://127.0.0.1:${ports.chain}`
    const dev = startDev(toArgs(ports))
    await dev.line('Ctrl-C stops it')
    expect([summaryOf(dev, 'Chain'), summaryOf(dev, 'Contract')]).toEqual([chainUrl, before.contract])
    const reader = createPublicClient({ transport: http(chainUrl) })
    expect(await reader.getTransactionReceipt({ hash })).toMatchObject({ blockNumber: 3n })
    const contract = { address: before.contract, abi: serviceAttestations.abi }
    expect(await reader.readContract({ ...contract, functionName: 'publisher' })).toBe(before.publisher.address)
    const environments = await readEnvironments(dev.child.pid ?? 0)
    expect(environments.find(({ PORT }) => PORT === String(ports.coordinator))).toMatchObject({
      RPC_URL: chainUrl,
      CHAIN_ID: '31337',
      ATTESTATIONS_ADDRESS: before.contract,
      PUBLISHER_PRIVATE_KEY_FILE: before.publisher.privateKeyFile,
      CONFIRMATIONS: '1',
      CONFIRM_INTERVAL_MS: '1000',
      IPFS_GATEWAY_URL: `http://localhost:${ports.coordinator}`,
    })
  })

  test('--reset clears the chain, and its key', async () => {
    const before = await startDevChain({ port: 0, stateDir })
    await before.faucet(STRANGER)
    await before.stop()
    const ports = await getFreePorts()
    const dev = startDev([...toArgs(ports), '--reset'])
    await dev.line('Ctrl-C stops it')
    const reader = createPublicClient({ transport: http(`http://127.0.0.1:${ports.chain}`) })
    expect(await reader.getBlockNumber()).toBe(2n)
    expect(await reader.getBalance({ address: STRANGER })).toBe(0n)
    expect(await reader.getBalance({ address: before.publisher.address })).toBe(0n)
  })

  test('two stacks at once, each with its own state', async () => {
    const [one, other] = [await getFreePorts(), await getFreePorts()]
    const stacks = [startDev(toArgs(one)), startDev(toArgs(other, join(stateDir, 'other')))]
    await Promise.all(stacks.map((dev) => dev.line('Ctrl-C stops it')))
    await drip(`http://127.0.0.1:${one.chain}`)
    const balances = [one, other].map(({ chain }) =>
      createPublicClient({ transport: http(`http://127.0.0.1:${chain}`) }).getBalance({ address: STRANGER }),
    )
    expect(await Promise.all(balances)).toEqual([10n ** 18n, 0n])
  })

  test('told to stop while it starts, it stops with 0', async () => {
    const dev = startDev(toArgs(await getFreePorts()))
    await dev.line('Started the enclave')
    dev.child.kill('SIGTERM')
    expect(await dev.ended).toBe(0)
  })

  test.each(['enclave', 'chain'])('a taken port of the %s is said plainly, before anything starts', async (name) => {
    const taken = await listen()
    stops.push(taken.close)
    const dev = startDev(toArgs({ ...(await getFreePorts()), [name]: taken.port }))
    expect(await dev.ended).toBe(1)
    expect(dev.output).toEqual([
      `Port ${taken.port} is taken: end what uses it, or choose another with --${name}-port.`,
    ])
  })

  test('a chain that cannot be replayed is said plainly, and starts nothing', async () => {
    await mkdir(join(stateDir, 'chain'))
    await writeFile(join(stateDir, 'chain', 'journal.jsonl'), '{}\n')
    const dev = startDev(toArgs(await getFreePorts()))
    expect(await dev.ended).toBe(1)
    expect(dev.output.at(-1)).toContain('npm run dev -- --reset')
    expect(dev.output.join('\n')).not.toContain('Started')
  })

  test('a service that dies ends the rest with 1', async () => {
    // No PostgreSQL answers there, so the coordinator gives up.
    const { port, close } = await listen()
    await close()
    const ports = await getFreePorts()
    const dev = startDev([...toArgs(ports), '--database', `postgres://nobody@127.0.0.1:${port}/none`])
    expect(await dev.ended).toBe(1)
    expect(dev.output.at(-1)).toBe('The coordinator ended with 1; its last lines say why.')
    expect(dev.output.join('\n')).toContain('Stopped the enclave')
    await expect(fetch(`http://127.0.0.1:${ports.enclave}/health`)).rejects.toThrow()
  })

  test('a supervisor that is killed leaves nobody behind', async () => {
    const ports = await getFreePorts()
    const dev = startDev(toArgs(ports))
    await dev.line('Ctrl-C stops it')
    const connections = [ports.coordinator, ports.enclave].map((port) => connect(port, '127.0.0.1'))
    const closed = connections.map((connection) => once(connection, 'close'))
    for (const connection of connections) {
      connection.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n')
      await once(connection, 'data')
    }
    dev.child.kill('SIGKILL')
    await Promise.all(closed)
  })

  test('unknown options are answered with the usage and 2', async () => {
    const dev = startDev(['--fast'])
    expect(await dev.ended).toBe(2)
    expect(dev.output.join('\n')).toMatch(/'--fast'.*usage: npm run dev/s)
  })
})
