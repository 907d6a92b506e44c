import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createTestBrowser, findFreePorts, type TestBrowser } from '@countersign/testing'
import { createTx, toDigest, waitForCompleteProofs } from '@countersign/testing/stack'

const MAIN = join(import.meta.dirname, 'main.ts')

const FLAGS = {
  web: '--web-port',
  demo: '--demo-port',
  coordinator: '--port',
  enclave: '--enclave-port',
  oidc: '--oidc-port',
  chain: '--chain-port',
} as const
export type Ports = Record<keyof typeof FLAGS, number>

export async function getFreePorts(): Promise<Ports> {
  const names = Object.keys(FLAGS)
  const ports = await findFreePorts(names.length)
  return Object.fromEntries(names.map((name, index) => [name, ports[index]])) as Ports
}

export function toArgs(ports: Ports, stateDir: string): string[] {
  const flags = Object.entries(FLAGS).flatMap(([name, flag]) => [flag, String(ports[name as keyof Ports])])
  return [...flags, '--state', stateDir, '--quote-latency', '0']
}

export type Dev = {
  child: ChildProcess
  output: readonly string[]
  ended: Promise<number | null>
  /** The next line that contains the text. */
  line(text: string): Promise<string>
  stop(): Promise<unknown>
}

/** Starts `npm run dev` in a separate process. */
export function startDev(args: readonly string[]): Dev {
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
  return {
    child,
    output,
    ended,
    line: (text) =>
      new Promise<string>((resolve, reject) => {
        waits.set(text, resolve)
        void ended.then(() => reject(new Error(`ended without ${text}:\n${output.join('\n')}`)))
      }),
    stop() {
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** The rest of the summary's line that begins with a word. */
export function summaryOf({ output }: Pick<Dev, 'output'>, word: string): string {
  const line = output.find((text) => text.includes(`  ${word} `))
  return line?.split(` ${word} `)[1]?.trim().split(' ')[0] ?? ''
}

/** The address of each part. */
export const urlsOf = (ports: Ports) => ({
  web: `http://localhost:${ports.web}`,
  demo: `http://localhost:${ports.demo}`,
  api: `http://localhost:${ports.coordinator}`,
  chain: `http://127.0.0.1:${ports.chain}`,
})

/** Signs in as alice, with separate cookies. */
export async function signIn(startUrl: string) {
  const browser = createTestBrowser()
  const { url } = await browser.navigate(startUrl)
  const { url: landed, response } = await browser.navigate(new URL('?as=alice', url))
  return { browser, landed: landed.href, status: response.status }
}

export function post(ports: Ports, browser: TestBrowser, path: string, body: object): Promise<Response> {
  const { api, web } = urlsOf(ports)
  const headers = { origin: web, 'content-type': 'application/json' }
  return browser.request(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** Signs one transaction, waits until its proof is complete, and returns the slug. */
export async function sign(ports: Ports, browser: TestBrowser, nonce = 0): Promise<string> {
  const { api } = urlsOf(ports)
  const txMetadata = createTx(nonce)
  const signed = await post(ports, browser, '/sign/digest', { digest: toDigest(txMetadata), txMetadata })
  if (signed.status !== 200) throw new Error(`not signed: ${await signed.text()}`)
  const { slug } = (await signed.json()) as { slug: string }
  await waitForCompleteProofs({ url: api, slugs: [slug] })
  return slug
}

/** The child processes of a process, with their arguments. Works only on Linux. */
export async function readChildren({ child }: Dev): Promise<{ pid: number; env: Record<string, string> }[]> {
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
