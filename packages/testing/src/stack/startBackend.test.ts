import { expect, test } from 'vitest'
import { findFreePorts } from '../ports.ts'
import { startBackend } from './startBackend.ts'

test('ends the enclave if the database fails to start', async () => {
  const [port = 0] = await findFreePorts(1)
  const starting = startBackend(
    { enclaveEnv: { PORT: String(port) } },
    { createTestDatabase: () => Promise.reject(new Error('no database')) },
  )
  await expect(starting).rejects.toThrow('no database')
  await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow('fetch failed')
})

test('stop ends the second coordinator and restarted processes', async () => {
  const backend = await startBackend()
  const before = backend.pids()
  const { url } = await backend.startSecond()
  await backend.stopCoordinator('SIGKILL')
  await backend.startCoordinator()
  await backend.stopEnclave('SIGKILL')
  await backend.startEnclave()
  expect(backend.pids()).not.toEqual(before)
  const urls = [url, backend.url, backend.enclaveUrl]
  const readHealth = () => Promise.allSettled(urls.map(async (each) => (await fetch(`${each}/health`)).status))
  expect((await readHealth()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
  await backend.stop()
  expect((await readHealth()).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
})
