import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPasswordGuard } from '@countersign/service'
import { startOidcProvider, startSatellite } from '@countersign/testing'
import { startDevChain } from '../../dev/chain.ts'
import { readStagingPassword } from './readStagingPassword.ts'
import { createPagesServer, createPodServer } from './worldServers.ts'

/**
 * What surrounds a staging, in one process: a test chain with the contract on it, a satellite, and an identity provider on whose page anybody can
 * be anybody. All of it is on loopback; what browsers need of it is behind the password.
 */

const CHAIN_PORT = 8545
const SATELLITE_PORT = 8470
const ISSUER_PORT = 8460

/** Ports that other pods of a cluster reach, and what is behind each. */
const POD_PORTS = [
  [18_545, CHAIN_PORT],
  [18_470, SATELLITE_PORT],
] as const

const toTarget = (port: number) => `http://127.0.0.1:${port}`

async function main(): Promise<void> {
  const {
    HOST = '127.0.0.1',
    PUBLIC_URL = '',
    PAGES_URL = '',
    STATE_DIR = '/data',
    SECRETS_DIR = '/run/secrets',
  } = process.env
  const guard = createPasswordGuard(readStagingPassword())
  const readSecret = (name: string) => readFileSync(join(SECRETS_DIR, name), 'utf8').trim()
  // The publisher's key is the operator's, as in production; the chain's folder is where this chain looks for it.
  mkdirSync(join(STATE_DIR, 'chain'), { recursive: true, mode: 0o700 })
  writeFileSync(join(STATE_DIR, 'chain/publisher.key'), `${readSecret('publisher-key')}\n`, { mode: 0o600 })
  const chain = await startDevChain({ port: CHAIN_PORT, stateDir: STATE_DIR })
  const satellite = await startSatellite({ port: SATELLITE_PORT })
  const parts: { stop(): Promise<void> }[] = [chain, satellite]
  if (PAGES_URL !== '') {
    const redirectUris = [`${PUBLIC_URL}/auth/google/callback`]
    const clientSecret = readSecret('google-client-secret')
    parts.push(await startOidcProvider({ port: ISSUER_PORT, clientSecret, redirectUris, pagesUrl: PAGES_URL }))
    createPagesServer({ guard, target: toTarget(ISSUER_PORT) }).listen(8461, HOST)
  }
  if (process.env.IS_CLUSTER === 'true') {
    for (const [port, own] of POD_PORTS) createPodServer({ target: toTarget(own) }).listen(port, HOST)
  }
  process.stdout.write(
    `${JSON.stringify({ level: 'info', msg: 'Started the world', contract: chain.contract, entropyKey: satellite.publicKey })}\n`,
  )
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void Promise.all(parts.map((part) => part.stop())).then(() => process.exit(0)))
  }
}

await main()
