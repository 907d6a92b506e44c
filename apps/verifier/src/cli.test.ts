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

/** Runs the program without a process, in a folder with these files. */
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

/** Runs the program as a process, which takes a second to start. Only for tests that depend on the process. */
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

/** Options for a node of the chain with the honest receipt's event. */
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

describe('as a process', { timeout: TIMEOUT_MS }, () => {
  test('returns the program’s exit code, stdout and stderr', async () => {
    const argv = ['verify', 'receipt.json', ...anchors]
    const result = await verifyInProcess(argv)
    expect(result).toEqual(await verify(argv))
    expect(result.exitCode).toBe(3)
  })

  test('prints bad input as one line on stderr', async () => {
    const result = await verifyInProcess(['receipt.json'], { 'receipt.json': 'hello' })
    expectOneLine(result, { exitCode: 4, code: 'receipt_not_canonical' })
  })

  test('verifies a proof URL and exits although the connection is kept alive', async () => {
    const gateway = serveBlocks({ [honest.cid]: honest.bytes, [honest.receipt.signer.collateral]: honest.collateral })
    const { url } = await startLoopback((request, response) => {
      if (request.url === `/proof/${slug}`) response.end(JSON.stringify(toProof(honest)))
      else gateway(request, response)
    })
    const { exitCode } = await verifyInProcess([`${url}/proof/${slug}`, '--allow-mock', ...anchors], {})
    expect(exitCode).toBe(7)
  })

  test('prints each step as it finishes, also to a pipe', async () => {
    const last = Promise.withResolvers<void>()
    const node = serveRpc(toChain(honest))
    // The chain responds only after the previous step has been read.
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
  test('returns 0 with --allow-mock, every anchor and a chain, but not for real hardware', async () => {
    const argv = ['verify', 'receipt.json', '--allow-mock', ...anchors, ...(await startNode())]
    const { exitCode, stdout, stderr } = await verify(argv)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('\nNothing failed, on MOCK evidence\n')
    expect(stdout).not.toMatch(/^(not )?verified/im)
  })

  test('returns 7 without a chain, and names what is missing', async () => {
    const { exitCode, stdout, stderr } = await verify(['verify', 'receipt.json', '--allow-mock', ...anchors])
    expect({ exitCode, stderr }).toEqual({ exitCode: 7, stderr: '' })
    expect(stdout).toContain('– The receipt was published soon after the signing')
    expect(stdout).toContain('Signing time: No event was found')
    expect(stdout).toContain('a node with --rpc')
    expect(stdout).not.toMatch(/verified, on|VERIFIED/)
  })

  test('returns 6 for an event ten years after signing, unless the reader accepts the delay', async () => {
    const { hash } = toChain(honest).eth_getBlockByNumber
    const tenYears = 10 * 365 * 24 * 3600
    const timestamp = `0x${(signedAt.getTime() / 1000 + tenYears).toString(16)}`
    const node = await startNode({ eth_getBlockByNumber: { hash, timestamp } })
    const argv = ['verify', 'receipt.json', '--allow-mock', ...anchors, ...node]
    const { exitCode, stdout } = await verify(argv)
    expect(exitCode).toBe(6)
    expect(stdout).toContain('– The receipt was published soon after the signing')
    expect(stdout).toContain('more than 72 h after')
    expect(stdout).not.toMatch(/verified, on|VERIFIED/)
    expect((await verify([...argv, '--maximum-event-delay', String(tenYears - 1)])).exitCode).toBe(6)
    expect((await verify([...argv, '--maximum-event-delay', String(tenYears)])).exitCode).toBe(0)
  })

  // The simulated satellite's key is known, so it needs no anchor.
  test.each(['--measurement', '--config-hash', '--coordinator-measurement', '--coordinator-config-hash'])(
    'returns 2 with --allow-mock but without %s',
    async (flag) => {
      const at = anchors.indexOf(flag)
      const { exitCode, stdout } = await verify(['receipt.json', '--allow-mock', ...anchors.toSpliced(at, 2)])
      expect(exitCode).toBe(2)
      expect(stdout).toContain(`${flag} ${anchors[at + 1]}`)
      expect(stdout).not.toContain('verified, on')
    },
  )

  test('prints --help and --version', async () => {
    const help = await verify(['--help'])
    expect(help).toMatchObject({ exitCode: 0, stderr: '' })
    for (const code of [0, 1, 2, 3, 4, 5, 6, 7, 8]) expect(help.stdout).toMatch(new RegExp(`^ {2}${code} {2}\\S`, 'm'))
    expect(await verify(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe('bad input prints one line and its code, never a stack trace', () => {
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
  ])('%s returns exit code %i and %s', async (_, exitCode, code, argv, content) => {
    expectOneLine(await verify(argv, content), { exitCode, code })
  })

  test('prints the error as JSON to stdout with --json', async () => {
    const { exitCode, stdout, stderr } = await verify(['receipt.json', '--json'], receipt('hello'))
    expect({ exitCode, stderr }).toEqual({ exitCode: 4, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({ error: { code: 'receipt_not_canonical', message: expect.any(String) } })
  })
})
