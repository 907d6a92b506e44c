import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Backend, readAnchors, startBackend } from '@countersign/testing'
import { createUser, type TestUser, waitForCompleteProofs } from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { createDevManifest } from '../../dev/webConfig.ts'
import { readLook, runMonitor } from '../monitor/runMonitor.ts'
import { createDatabase } from '../openQuery.ts'
import type { TrialDeps } from '../trial.ts'
import { until } from '../until.ts'

const READY_MS = 90_000

/**
 * A second enclave with the same configuration, and a second coordinator with an empty database, open the spare origin and sign there. The
 * operator shows neither. A monitor that knows only the manifest must find it: the witnesses cosigned the spare.
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
  const look = (address: string, ...more: string[]) =>
    runMonitor([address, '--rpc', chain.url, '--api', url, '--manifest', manifest, '--allow-mock', ...more])
  const expectLook = async (name: string, address: string, expected: ReturnType<typeof readLook>) => {
    const { exitCode, stdout } = await look(address, '--json')
    const found = { ...readLook(stdout), exitCode }
    say(`${name}: exit code ${exitCode}\n${(await look(address)).stdout}`)
    if (JSON.stringify(found) !== JSON.stringify(expected)) faults.push(`${name}: ${JSON.stringify(found)}`)
  }

  const alice = createUser(backend)
  const wallet = await signIn(alice, 'alice')
  const { slug } = (await (await alice.post('/sign/message', { message: '0x6869' })).json()) as { slug: string }
  await waitForCompleteProofs({ url, slugs: [slug] })
  await expectLook('honest', wallet, { exitCode: 0, conclusion: 'complete', kinds: ['log-unused'] })

  await signInSecret(backend)
  await expectLook('secret use', wallet, { exitCode: 3, conclusion: 'incomplete', kinds: ['log-withholds'] })
  // The remaining witness may be one of the two that cosigned the spare. If not, too few answer.
  const lost = witnesses.slice(0, 2)
  await Promise.all(lost.map((witness) => witness.kill('SIGKILL')))
  const { exitCode } = await look(wallet)
  if (exitCode !== 3) faults.push(`with one witness left: exit code ${exitCode}`)
  await Promise.all(lost.map((witness) => witness.start()))

  // The log has an entry of this wallet's key, and nobody publishes the receipt that would show it.
  await backend.stopCoordinator('SIGTERM')
  await backend.startCoordinator({ WORKER: 'off' })
  await backend.untilReady(READY_MS)
  const bob = createUser(backend)
  const other = await signIn(bob, 'bob')
  await sign(bob)
  const unknown = { exitCode: 3, conclusion: 'incomplete', kinds: ['key-unknown', 'logs-unknown', 'wallet-unknown'] }
  await expectLook('wallet without receipts', other, unknown)
  return faults
}

/** Alice's key signs a message in the secret enclave. */
async function signInSecret(backend: Backend): Promise<void> {
  const changes = {
    ENCLAVE_URL: await backend.startSecondEnclave(),
    DATABASE_URL: await createDatabase(backend.databaseUrl),
    WORKER: 'off',
  }
  const second = await backend.startSecond(changes)
  const isOpen = async () => (await fetch(`${second.url}/health/ready`)).status === 200
  if (!(await until(isOpen, READY_MS))) throw new Error('the spare origin was not opened')
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
  if (status !== 200) throw new Error(`a message was answered with ${status}`)
}
