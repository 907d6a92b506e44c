import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findFreePorts } from '@countersign/testing'

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
  /** The next line that holds the text. */
  line(text: string): Promise<string>
  stop(): Promise<unknown>
}

/** `npm run dev` as a process of its own. */
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
