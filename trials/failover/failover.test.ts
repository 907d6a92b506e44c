import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { createAuthority } from '../cluster/authority.ts'
import { replaceAll } from '../cluster/haproxy.ts'
import { countReasons, findLongestPause } from './load.ts'
import { parseParts } from './parts.ts'

test('the longest pause is between two good answers, in whichever order they came, and ends after the moment', () => {
  expect(findLongestPause([100, 900, 140, 130], 0)).toBe(760)
  expect(findLongestPause([100, 900, 910, 990], 905)).toBe(80)
  expect(findLongestPause([100], 0)).toBe(0)
  expect(findLongestPause([], 0)).toBe(0)
})

test('parts are those that there are, and nothing else', () => {
  expect(parseParts('backups,database')).toEqual(['backups', 'database'])
  for (const text of ['', 'all', 'database,', 'toString']) expect(parseParts(text)).toBeUndefined()
})

test('failed tries since a moment are counted by reason', () => {
  const failures = [
    { at: 1, reason: 'ECONNRESET' },
    { at: 5, reason: 'ECONNRESET' },
    { at: 6, reason: '503 database_unavailable' },
    { at: 7, reason: '503 database_unavailable' },
  ]
  expect(countReasons(failures, 5)).toEqual([
    { reason: '503 database_unavailable', count: 2 },
    { reason: 'ECONNRESET', count: 1 },
  ])
})

test('an address that the deployed file does not have is not left as it is', () => {
  expect(replaceAll('bind :1\nserver :2\nserver :2', { ':1': ':8', ':2': ':9' })).toBe('bind :8\nserver :9\nserver :9')
  expect(() => replaceAll('bind :1', { ':2': ':9' })).toThrow(/:2 is not in the file/)
})

test('certificates of an authority are believed by who trusts it, and by nobody who trusts another', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'authority-'))
  const [ours, other] = [await createAuthority(folder), await createAuthority(folder)]
  const { certificate, key } = await ours.issue()
  const server = createServer({ cert: certificate, key }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const ask = (ca: string, host: string) =>
    new Promise<string>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', servername: host, ca }, () => resolve('believed'))
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
      socket.once('secureConnect', () => socket.destroy())
    })
  expect(await ask(ours.pem, 'localhost')).toBe('believed')
  expect(await ask(other.pem, 'localhost')).not.toBe('believed')
  expect(await ask(ours.pem, 'example.org')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  server.close()
  await rm(folder, { recursive: true })
})
