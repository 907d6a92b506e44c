import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { onSync } from '../../../../packages/service/test/onSync.ts'
import { loadRootSecret } from './loadRootSecret.ts'

let folder = ''
const random = (length: number) => new Uint8Array(randomBytes(length))

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'root-secret-'))
})
afterEach(() => rm(folder, { recursive: true }))

test('a file is created at the first start, readable only by its owner, and read at the next', async () => {
  const path = join(folder, 'deep/root-secret')
  const first = await loadRootSecret({ kind: 'file', path }, random)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await loadRootSecret({ kind: 'file', path }, random)).toEqual(first)
  expect(await readdir(join(folder, 'deep'))).toEqual(['root-secret'])
})

test('a new file and its folders are synced to disk, because another secret would mean another set of wallets', async () => {
  const synced: string[] = []
  await onSync((path) => void synced.push(relative(folder, path)))
  await loadRootSecret({ kind: 'file', path: join(folder, 'very/deep/root-secret') }, random)
  expect(synced).toEqual(['very', '', expect.stringMatching(/^very\/deep\/root-secret\..*\.draft$/), 'very/deep'])
})

test('ten concurrent first starts agree on one secret', async () => {
  const path = join(folder, 'root-secret')
  const all = await Promise.all(Array.from({ length: 10 }, () => loadRootSecret({ kind: 'file', path }, random)))
  const onDisk = (await readFile(path, 'utf8')).trim()
  expect(new Set(all.map((secret) => Buffer.from(secret).toString('hex')))).toEqual(new Set([onDisk]))
})

test.each([
  ['open to others', `${'00'.repeat(31)}01`, 0o644],
  ['cut short', '0011', 0o600],
  ['not hex', 'zz'.repeat(32), 0o600],
  ['all one byte', '00'.repeat(32), 0o600],
  ['empty', '', 0o600],
])('a file that is %s is refused, and left as it is', async (_, text, mode) => {
  const path = join(folder, 'root-secret')
  await writeFile(path, text)
  await chmod(path, mode)
  const error = await loadRootSecret({ kind: 'file', path }, random).catch((reason: Error) => reason)
  expect(error).toBeInstanceOf(Error)
  expect(String(error)).not.toContain(text.slice(0, 32) || 'nothing to leak')
  expect(await readFile(path, 'utf8')).toBe(text)
})

test('dstack derives it for this application, always under the same path', async () => {
  const requests: unknown[] = []
  const key = randomBytes(32).toString('hex')
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    requests.push([request.url, JSON.parse(body)])
    response.end(JSON.stringify({ key, signature_chain: [] }))
  })
  const socketPath = join(folder, 'dstack.sock')
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))
  try {
    const secret = await loadRootSecret({ kind: 'dstack', socketPath }, random)
    expect(Buffer.from(secret).toString('hex')).toBe(key)
    expect(requests).toEqual([['/GetKey', { path: 'countersign/root-secret/v1', purpose: '' }]])
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
})
