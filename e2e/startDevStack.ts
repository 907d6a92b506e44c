import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '@countersign/testing'
import { startStack } from '../dev/stack.ts'
import { clearState } from '../dev/state.ts'

/**
 * Starts the services of `npm run dev` on separate ports and with separate state. Without the web app, another one may be served at
 * `webUrl`; built, it is the one that is deployed. `isDirect`: this other one signs in at the identity provider itself.
 */
export async function startDevStack({
  hasWeb = true,
  isWebBuilt = false,
  hasDocs = false,
  hasLog = false,
  hasCheckpoints = false,
  isDirect = false,
} = {}) {
  const stateDir = await mkdtemp(join(tmpdir(), 'countersign-e2e-'))
  const [web = 0, demo = 0, coordinator = 0, enclave = 0, oidc = 0, chain = 0] = await findFreePorts(6)
  const ports = { web, demo, coordinator, enclave, oidc, chain }
  const output: string[] = []
  const faults: string[] = []
  const write = (name: string, text: string) => void output.push(`${name} ${text}`)
  const stack = startStack({
    options: {
      reset: false,
      databaseUrl: undefined,
      quoteLatencyMs: 0,
      hasWeb,
      hasLog,
      hasCheckpoints,
      origins: [],
      directUrl: isDirect ? `http://localhost:${web}/` : undefined,
      isVerbose: true,
      ports,
      stateDir,
    },
    voice: { say: write, detail: write, log: write },
    onFault: (text) => void faults.push(text),
    isWebBuilt,
    hasDocs,
  })
  const stop = async () => {
    await stack.stop()
    await clearState(stateDir)
    await rm(stateDir, { recursive: true, force: true })
  }
  if ((await stack.ready) === undefined) {
    await stop()
    throw new Error(`the stack did not start: ${faults.join('\n')}\n${output.join('\n')}`)
  }
  return {
    webUrl: `http://localhost:${web}`,
    /** The demo site for sign-ins. */
    demoUrl: `http://localhost:${demo}`,
    apiUrl: `http://localhost:${coordinator}`,
    oidcUrl: `http://localhost:${oidc}`,
    chainUrl: `http://127.0.0.1:${chain}`,
    /** Sends one ether from the faucet. */
    fund: (address: string) =>
      fetch(`http://127.0.0.1:${chain}/faucet`, { method: 'POST', body: JSON.stringify({ address }) }),
    faults,
    stop,
  }
}
