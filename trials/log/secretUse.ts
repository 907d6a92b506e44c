import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Backend, readAnchors, startBackend } from '@countersign/testing'
import { createUser, type TestUser, waitForCompleteProofs } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { createDevManifest } from '../../dev/webConfig.ts'
import { readReport, runMonitor } from '../monitor/runMonitor.ts'
import { createDatabase } from '../openQuery.ts'
import type { TrialDeps } from '../trial.ts'
import { until } from '../until.ts'

const READY_MS = 90_000

/**
 * Simulates an operator who opens the spare origin with a second enclave of the same configuration and a second coordinator with an empty
 * database, signs there, and hides both. A monitor that knows only the manifest must detect it, because the witnesses cosigned the spare.
 */
export async function secretUse({ scope, say }: TrialDeps): Promise<string[]> {
  const { chain, address: contract, env } = await startContract()
  scope.add(chain, ({ stop }) => stop())
  const backend = scope.add(await startBackend({ env, log: {} }), ({ stop }) => stop())
  await backend.untilReady(READY_MS)
  const manifest = join(await scope.createFolder(), 'manifest.json')
  const { url, satellite, witnesses } = backend
  const anchors = await readAnchors({ url, enclave: backend.enclaveFields(), satellite })
  await writeFile(manifest, JSON.stringify(createDevManifest({ ...chain, contract }, anchors, witnesses)))
  const faults: string[] = []
  const runCheck = (address: string, ...more: string[]) =>
    runMonitor([address, '--rpc', chain.url, '--api', url, '--manifest', manifest, '--allow-mock', ...more])
  const expectReport = async (name: string, address: string, expected: ReturnType<typeof readReport>) => {
    const { exitCode, stdout } = await runCheck(address, '--json')
    const found = { ...readReport(stdout), exitCode }
    say(`${name}: exit code ${exitCode}\n${(await runCheck(address)).stdout}`)
    if (JSON.stringify(found) !== JSON.stringify(expected)) faults.push(`${name}: ${JSON.stringify(found)}`)
  }

  const alice = createUser(backend)
  const wallet = await signIn(alice, 'alice')
  const { slug } = (await (await alice.post('/sign/message', { message: '0x6869' })).json()) as { slug: string }
  await waitForCompleteProofs({ url, slugs: [slug] })
  await expectReport('honest', wallet, { exitCode: 0, conclusion: 'complete', kinds: ['log-unused'] })

  await signInHiddenEnclave(backend)
  await expectReport('secret use', wallet, { exitCode: 3, conclusion: 'incomplete', kinds: ['log-withholds'] })
  // A quorum of witnesses must answer, because the remaining one may not have cosigned the spare.
  const lost = witnesses.slice(0, 2)
  await Promise.all(lost.map((witness) => witness.kill('SIGKILL')))
  const { exitCode } = await runCheck(wallet)
  if (exitCode !== 3) faults.push(`expected exit code 3 with one witness left, got ${exitCode}`)
  await Promise.all(lost.map((witness) => witness.start()))

  // The log has an entry of this wallet's key, but the receipt isn't published.
  await backend.stopCoordinator('SIGTERM')
  await backend.startCoordinator({ WORKER: 'off' })
  await backend.untilReady(READY_MS)
  const bob = createUser(backend)
  const other = await signIn(bob, 'bob')
  await sign(bob)
  const unknown = { exitCode: 3, conclusion: 'incomplete', kinds: ['key-unknown', 'logs-unknown', 'wallet-unknown'] }
  await expectReport('wallet without receipts', other, unknown)
  return faults
}

/** Signs a message with Alice's key in the hidden enclave. */
async function signInHiddenEnclave(backend: Backend): Promise<void> {
  const changes = {
    ENCLAVE_URL: await backend.startSecondEnclave(),
    DATABASE_URL: await createDatabase(backend.databaseUrl),
    WORKER: 'off',
  }
  const second = await backend.startSecond(changes)
  const isOpen = async () => (await fetch(`${second.url}/health/ready`)).status === 200
  if (!(await until(isOpen, READY_MS))) throw new Error('the spare origin did not open in time')
  const alice = createUser(second)
  await signIn(alice, 'alice')
  await sign(alice)
  await second.stop()
}

async function signIn(user: TestUser, name: string): Promise<string> {
  await user.signIn(name)
  const { address } = (await (await user.get('/wallet/me')).json()) as { address: string }
  return address
}

async function sign(user: TestUser): Promise<void> {
  const { status } = await user.post('/sign/message', { message: '0x736563726574' })
  if (status !== 200) throw new Error(`signing a message failed with ${status}`)
}
