import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stepTitles } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { contract, signedAt, slug, toChain, toProof } from '../../../packages/verify/test/issues.ts'
import { serveBlocks, serveRpc, startLoopback } from '../../../packages/verify/test/loopback.ts'
import { createFolder, honest, toFlags } from '../test/folder.ts'
import { runCli } from './runCli.ts'

const cli = join(import.meta.dirname, 'cli.ts')
const { version } = JSON.parse(await readFile(join(import.meta.dirname, '../package.json'), 'utf8'))
const TIMEOUT_MS = 60_000
const anchors = toFlags(honest)
const files = { 'receipt.json': honest.bytes, 'collateral.json': honest.collateral }

type Result = { exitCode: number | null; stdout: string; stderr: string }

type Files = Readonly<Record<string, string | Uint8Array>>

/** The whole program but for its process, in a folder with these files. */
async function verify(argv: readonly string[], content: Files = files) {
  return runIn(await createFolder(content), argv)
}

async function runIn(folder: string, argv: readonly string[]): Promise<Result> {
  const previous = process.cwd()
  process.chdir(folder)
  try {
    return await runCli({ fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }, argv)
  } finally {
    process.chdir(previous)
  }
}

/** The program as people run it: a process takes a second to start, so only what depends on one is tried this way. */
async function verifyInProcess(
  argv: readonly string[],
  content: Files = files,
  onOutput: (stdout: string) => void = () => {},
): Promise<Result> {
  const folder = await createFolder(content)
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['-C', 'source', cli, ...argv], {
      cwd: folder,
      env: { ...process.env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const result = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk) => {
      result.stdout += chunk
      onOutput(result.stdout)
    })
    child.stderr.on('data', (chunk) => {
      result.stderr += chunk
    })
    child.on('error', reject)
    child.on('close', (exitCode) => resolve({ exitCode, ...result }))
  })
}

/** Options that name a node of the chain that has the event of the honest receipt. */
async function startNode(changes?: Readonly<Record<string, unknown>>): Promise<string[]> {
  const { url } = await startLoopback(serveRpc(toChain(honest, changes)))
  return ['--rpc', url, '--contract', contract]
}

function expectOneLine({ exitCode, stdout, stderr }: Result, expected: { exitCode: number; code: string }) {
  expect(exitCode).toBe(expected.exitCode)
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^countersign-verifier: [^\n]+\n$/)
  expect(stderr).toContain(`[${expected.code}]`)
  expect(stderr).not.toContain('    at ')
}

describe('a process of its own', { timeout: TIMEOUT_MS }, () => {
  test('its exit code, stdout and stderr are those of the program', async () => {
    const argv = ['verify', 'receipt.json', ...anchors]
    const result = await verifyInProcess(argv)
    expect(result).toEqual(await verify(argv))
    expect(result.exitCode).toBe(3)
  })

  test('bad input is one line on stderr', async () => {
    const result = await verifyInProcess(['receipt.json'], { 'receipt.json': 'hello' })
    expectOneLine(result, { exitCode: 4, code: 'receipt_not_canonical' })
  })

  test('a proof URL, and the process ends though the connection was kept alive', async () => {
    const gateway = serveBlocks({ [honest.cid]: honest.bytes, [honest.receipt.signer.collateral]: honest.collateral })
    const { url } = await startLoopback((request, response) => {
      if (request.url === `/proof/${slug}`) response.end(JSON.stringify(toProof(honest)))
      else gateway(request, response)
    })
    const { exitCode } = await verifyInProcess([`${url}/proof/${slug}`, '--allow-mock', ...anchors], {})
    expect(exitCode).toBe(7)
  })

  test('prints each step as it finishes, to a pipe too', async () => {
    const last = Promise.withResolvers<void>()
    const node = serveRpc(toChain(honest))
    // The chain answers once the step before it has been read.
    const { url } = await startLoopback((request, response) => void last.promise.then(() => node(request, response)))
    const argv = ['receipt.json', '--allow-mock', ...anchors, '--rpc', url, '--contract', contract]
    const { exitCode } = await verifyInProcess(argv, files, (stdout) => {
      if (stdout.includes(stepTitles.release)) last.resolve()
    })
    expect(exitCode).toBe(0)
  })

  test('--version', async () => {
    expect(await verifyInProcess(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe('exit codes', () => {
  test('0: with --allow-mock, every anchor and a chain; still not by hardware', async () => {
    const argv = ['verify', 'receipt.json', '--allow-mock', ...anchors, ...(await startNode())]
    const { exitCode, stdout, stderr } = await verify(argv)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('\nNothing failed, on MOCK evidence\n')
    expect(stdout).not.toMatch(/^(not )?verified/im)
  })

  test('7: the same without a chain to ask: nothing is verified, and it says what is missing', async () => {
    const { exitCode, stdout, stderr } = await verify(['verify', 'receipt.json', '--allow-mock', ...anchors])
    expect({ exitCode, stderr }).toEqual({ exitCode: 7, stderr: '' })
    expect(stdout).toContain('– The event came soon after the signing')
    expect(stdout).toContain('Time of signing: No event was seen')
    expect(stdout).toContain('a node with --rpc')
    expect(stdout).not.toMatch(/verified, on|VERIFIED/)
  })

  test('6: an event ten years after the stated time, unless the reader accepts that', async () => {
    const { hash } = toChain(honest).eth_getBlockByNumber
    const tenYears = 10 * 365 * 24 * 3600
    const timestamp = `0x${(signedAt.getTime() / 1000 + tenYears).toString(16)}`
    const node = await startNode({ eth_getBlockByNumber: { hash, timestamp } })
    const argv = ['verify', 'receipt.json', '--allow-mock', ...anchors, ...node]
    const { exitCode, stdout } = await verify(argv)
    expect(exitCode).toBe(6)
    expect(stdout).toContain('– The event came soon after the signing')
    expect(stdout).toContain('more than 72 h after')
    expect(stdout).not.toMatch(/verified, on|VERIFIED/)
    expect((await verify([...argv, '--maximum-event-delay', String(tenYears - 1)])).exitCode).toBe(6)
    expect((await verify([...argv, '--maximum-event-delay', String(tenYears)])).exitCode).toBe(0)
  })

  // The key of the simulated satellite is known to be mock, so it needs no anchor.
  test.each(['--measurement', '--config-hash', '--coordinator-measurement', '--coordinator-config-hash'])(
    '2: with --allow-mock but without %s',
    async (flag) => {
      const at = anchors.indexOf(flag)
      const { exitCode, stdout } = await verify(['receipt.json', '--allow-mock', ...anchors.toSpliced(at, 2)])
      expect(exitCode).toBe(2)
      expect(stdout).toContain(`${flag} ${anchors[at + 1]}`)
      expect(stdout).not.toContain('verified, on')
    },
  )

  test('--help and --version', async () => {
    const help = await verify(['--help'])
    expect(help).toMatchObject({ exitCode: 0, stderr: '' })
    for (const code of [0, 1, 2, 3, 4, 5, 6, 7, 8]) expect(help.stdout).toMatch(new RegExp(`^ {2}${code} {2}\\S`, 'm'))
    expect(await verify(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe('bad input is one clear line and its code, never a stack trace', () => {
  const receipt = (content: string | Uint8Array) => ({ ...files, 'receipt.json': content })
  const text = new TextDecoder().decode(honest.bytes)
  const withoutMember = text.replace(/"issuedAt":"[^"]*",/, '')
  const otherVersion = text.replace('countersign-attestation/1', 'countersign-attestation/3')

  test.each<[string, number, string, string[], Readonly<Record<string, string | Uint8Array>>]>([
    ['not JSON', 4, 'receipt_not_canonical', ['receipt.json'], receipt('hello')],
    ['300 KB', 4, 'receipt_too_large', ['receipt.json'], receipt('a'.repeat(300_000))],
    ['another version', 4, 'receipt_version_unsupported', ['receipt.json'], receipt(otherVersion)],
    ['a missing member', 4, 'receipt_malformed', ['receipt.json'], receipt(withoutMember)],
    ['re-saved by an editor', 4, 'receipt_not_canonical', ['receipt.json'], receipt(`${text}\n`)],
    ['an empty file', 4, 'file_unreadable', ['receipt.json'], receipt('')],
    ['a missing file', 4, 'invalid_arguments', ['missing.json'], files],
    ['a directory', 4, 'file_unreadable', ['.'], files],
    ['a missing collateral', 4, 'file_unreadable', ['receipt.json', '--collateral', 'missing.json'], files],
    ['a receipt as collateral', 4, 'collateral_malformed', ['receipt.json', '--collateral', 'receipt.json'], files],
    ['an unknown flag', 4, 'invalid_arguments', ['receipt.json', '--frobnicate'], files],
    ['three registers', 4, 'invalid_arguments', ['receipt.json', '--measurement', 'a:b:c'], files],
    ['bad hex', 4, 'invalid_arguments', ['receipt.json', '--measurement', 'xyz'], files],
    ['a bad manifest', 4, 'manifest_malformed', ['receipt.json', '--manifest', 'collateral.json'], files],
    ['nothing at all', 4, 'invalid_arguments', [], files],
    ['something else to explain', 4, 'evidence_unrecognised', ['explain', 'x'], { x: 'hello' }],
  ])('%s: exit %i, %s', async (_, exitCode, code, argv, content) => {
    expectOneLine(await verify(argv, content), { exitCode, code })
  })

  test('with --json the error is JSON, on stdout', async () => {
    const { exitCode, stdout, stderr } = await verify(['receipt.json', '--json'], receipt('hello'))
    expect({ exitCode, stderr }).toEqual({ exitCode: 4, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({ error: { code: 'receipt_not_canonical', message: expect.any(String) } })
  })
})
