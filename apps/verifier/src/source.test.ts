import { join } from 'node:path'
import { fromHex } from '@countersign/protocol'
import { fromCidHash } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { issue, slug, toProof } from '../../../packages/verify/test/issues.ts'
import { serveBlocks, startLoopback } from '../../../packages/verify/test/loopback.ts'
import {
  appCompose,
  changeCompose,
  createRecord,
  createReleaseFiles,
  hashText,
  releaseSigner,
  releaseWitness,
} from '../../../packages/verify/test/releases.ts'
import { createFolder, toFlags } from '../test/folder.ts'
import { run, runJson } from '../test/runCli.ts'
import { toExitCode } from './exitCodes.ts'

const files = createReleaseFiles([createRecord()])
const issueWith = (text: string) => issue({ events: [{ name: 'compose-hash', payload: hashText(text) }] })
const honest = await issueWith(appCompose)
const cid = fromCidHash(fromHex(hashText(appCompose)))

/** A folder with a receipt, the operator's file and the log of releases. */
async function prepare(text = appCompose, releases = files) {
  const issued = await issueWith(text)
  const folder = await createFolder({ 'receipt.json': issued.bytes, 'collateral.json': issued.collateral, app: text })
  const log = await createFolder(Object.fromEntries(releases))
  // RTMR3 has another value, so these anchors don't name the whole code.
  const anchors = toFlags(issued)
  const argv = [join(folder, 'receipt.json'), '--allow-mock', ...anchors, '--source']
  return { argv, compose: ['--compose', join(folder, 'app')], releases: ['--releases', log] }
}

type Link = { id: string; status: string }
const statusOf = (links: readonly Link[], id: string) => links.find((link) => link.id === id)?.status

test('prints the links and the commit, and keeps the exit code of the receipt', async () => {
  const { argv, compose, releases } = await prepare()
  const keys = ['--release-key', releaseSigner.vkey, '--release-witness', releaseWitness.vkey]
  const { exitCode, source } = await runJson(...argv, ...compose, ...releases, ...keys)
  expect(exitCode).toBe(7)
  expect(source.links.map(({ status }: Link) => status)).toEqual([
    ...Array.from({ length: 7 }, () => 'pass'),
    ...Array.from({ length: 3 }, () => 'skip'),
  ])
  expect(source.source).toMatchObject({ release: '0.2.0', commit: 'c0'.repeat(20) })
  const { stdout } = await run(...argv, ...compose, ...releases)
  expect(stdout).toContain(`Commit ${'c0'.repeat(20)} of version 0.2.0`)
  expect(stdout).toContain('MOCK evidence: Commit')
  expect(stdout).toContain('PORT=8090')
})

test('returns 1 and no good title for a failed link', async () => {
  const { argv, compose, releases } = await prepare(changeCompose((text) => `${text}  other: {}\n`))
  const { exitCode, conclusion, source } = await runJson(...argv, ...compose, ...releases)
  expect({ exitCode, conclusion, source: source.source }).toEqual({ exitCode: 1, conclusion: 'failed' })
  expect(statusOf(source.links, 'template')).toBe('fail')
  const { stdout } = await run(...argv, ...compose, ...releases)
  expect(stdout).toContain('Not verified: the code is not that of a release')
})

test('gets the file from the service, and the log from a server', async () => {
  const blocks = {
    [honest.cid]: honest.bytes,
    [honest.receipt.signer.collateral]: honest.collateral,
    [cid]: new TextEncoder().encode(appCompose),
  }
  const api = await startLoopback((request, response) => {
    if (request.url === `/proof/${slug}`) response.end(JSON.stringify(toProof(honest)))
    else serveBlocks(blocks)(request, response)
  })
  const log = await startLoopback((request, response) => {
    const file = files.get(request.url?.replace('/log/', '') ?? '')
    if (file === undefined) response.writeHead(404).end()
    else response.end(file)
  })
  const argv = [slug, '--api', api.url, '--allow-mock', ...toFlags(honest), '--source']
  const { exitCode, source } = await runJson(...argv, '--releases', `${log.url}/log/`)
  expect({ exitCode, release: source.source?.release }).toEqual({ exitCode: 7, release: '0.2.0' })
  expect(log.requests).toEqual(['GET /log/checkpoint', 'GET /log/key', 'GET /log/0000.json'])
  const closed = await runJson(...argv, '--releases', `${log.url}/other`)
  expect({ exitCode: closed.exitCode, log: statusOf(closed.source.links, 'release-log') }).toEqual({
    exitCode: 7,
    log: 'skip',
  })
})

test('finds the file next to a receipt, and skips it without one', async () => {
  const folder = await createFolder({
    'receipt.json': honest.bytes,
    'collateral.json': honest.collateral,
    'app-compose.json': appCompose,
  })
  const argv = ['--allow-mock', ...toFlags(honest), '--source', '--releases', folder]
  const found = await runJson(join(folder, 'receipt.json'), ...argv)
  expect(statusOf(found.source.links, 'app-compose')).toBe('pass')
  const other = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.collateral })
  const missing = await runJson(join(other, 'receipt.json'), ...argv)
  expect({ exitCode: missing.exitCode, app: statusOf(missing.source.links, 'app-compose') }).toEqual({
    exitCode: 7,
    app: 'skip',
  })
})

test('returns 5 instead of 0 if the links lead to no source', () => {
  expect(toExitCode({ conclusion: 'accepted', receipt: {}, trace: { source: undefined } })).toBe(5)
})

test('rejects files of the reader that are missing', async () => {
  const { argv } = await prepare()
  const codeOf = async (...more: string[]) => (await runJson(...argv, ...more)).error?.code
  expect(await codeOf('--compose', '/no/such')).toBe('file_unreadable')
  expect(await codeOf('--releases', '/no/such')).toBe('invalid_arguments')
})

test.each([
  ['an option without --source', ['--compose', 'x']],
  ['a server offline', ['--source', '--offline', '--releases', 'https://log.example']],
  ['a witness as the log’s key', ['--source', '--release-key', releaseWitness.vkey]],
  ['a log as a witness', ['--source', '--release-witness', releaseSigner.vkey]],
])('rejects %s', async (_, argv) => {
  expect(await runJson('receipt.json', ...argv)).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
})
