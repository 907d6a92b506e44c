import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** An enclave as its own process, from its environment alone. */
export type EnclaveProcess = {
  url: string
  child: ChildProcess
  /** Everything it has written so far. */
  output: string[]
  kill(signal: NodeJS.Signals): Promise<number | null>
}

const MAIN = new URL('../src/main.ts', import.meta.url).pathname

export function spawnEnclave(env: Record<string, string>): { child: ChildProcess; output: string[] } {
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['-C', 'source', MAIN], {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface({ input: stream }).on('line', (line) => output.push(line))
  }
  return { child, output }
}

/** Starts an enclave and waits until it says where it listens, and that it serves or (if told so) waits for custodians. */
export async function startEnclave(
  env: Record<string, string>,
  sentence = 'Started the enclave',
): Promise<EnclaveProcess> {
  const { child, output } = spawnEnclave({ PORT: '0', MOCK_ATTESTATION: 'true', QUOTE_SOURCE: 'mock', ...env })
  const url = await new Promise<string>((resolve, reject) => {
    if (child.stdout === null) return reject(new Error('no output'))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { msg, address } = JSON.parse(line)
      if (msg === sentence) resolve(address)
    })
    child.once('exit', () => reject(new Error(`the enclave ended: ${output.join('\n')}`)))
  })
  return {
    url,
    child,
    output,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
      return child.exitCode
    },
  }
}
