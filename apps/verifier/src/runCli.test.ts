import { join } from 'node:path'
import { createSimulator } from '@countersign/attestation/simulator'
import { toCanonicalJson } from '@countersign/protocol'
import { describePhase, type Phase } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { slug } from '../../../packages/verify/test/issues.ts'
import { serveBlocks, startLoopback } from '../../../packages/verify/test/loopback.ts'
import { createFolder, honest, toFlags } from '../test/folder.ts'
import { accept, blocks, collateralCid, deps, run, runJson, txHash } from '../test/runCli.ts'
import { HELP } from './help.ts'
import { runCli } from './runCli.ts'

describe('files', () => {
  test.each(['collateral.json', collateralCid, `${collateralCid}.json`])(
    'finds collateral next to the receipt as %s, offline',
    async (name) => {
      const folder = await createFolder({ 'receipt.json': honest.bytes, [name]: honest.collateral })
      const nobody = { ...deps, fetch: () => Promise.reject(new Error('touched the network')) }
      const argv = [join(folder, 'receipt.json'), '--offline', ...accept]
      expect((await runCli(nobody, argv)).exitCode).toBe(7)
    },
  )

  test('accepts collateral with a trailing line feed from an editor', async () => {
    const edited = Buffer.concat([honest.collateral, Buffer.from('\n')])
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': edited })
    expect((await run(join(folder, 'receipt.json'), '--offline', ...accept)).exitCode).toBe(7)
  })

  test('ignores other files next to the receipt', async () => {
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.bytes })
    expect(await runJson(join(folder, 'receipt.json'), '--offline', ...accept)).toMatchObject({
      exitCode: 5,
      verdict: 'incomplete',
    })
  })

  test('verifies only files offline', async () => {
    for (const subject of [honest.cid, txHash, slug, `http://127.0.0.1:1/proof/${slug}`]) {
      expect(await runJson(subject, '--offline')).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
    }
  })
})

test('names what it waits for, but not in its output', async () => {
  const { url } = await startLoopback(serveBlocks(blocks))
  const waits: string[] = []
  const argv = ['verify', honest.cid, '--ipfs', url, '--json']
  const { stdout, stderr } = await runCli({ ...deps, writeWait: (text) => waits.push(text) }, argv)
  expect(waits).toEqual(['receipt', 'collateral', 'steps'].map((phase) => `${describePhase(phase as Phase)}\n`))
  expect({ verdict: JSON.parse(stdout).verdict, stderr }).toEqual({ verdict: 'mock', stderr: '' })
})

describe('--at', () => {
  const at = '2028-03-01T12:00:00Z'
  const simulator = createSimulator({ at: new Date(at) })
  const fresh = toCanonicalJson(simulator.collateral())
  const changed = toCanonicalJson(
    simulator.collateral({ editTcbInfo: (text) => text.replaceAll('"UpToDate"', '"OutOfDate"') }),
  )
  const files = { 'receipt.json': honest.bytes, 'collateral.json': honest.collateral, fresh, changed }

  test.each(['now', at])('passes at %s with that time’s collateral, and says so', async (time) => {
    const folder = await createFolder(files)
    const again = ['--at', time, '--collateral', join(folder, 'fresh')]
    const { exitCode, steps } = await runJson(join(folder, 'receipt.json'), ...accept, ...again)
    expect(exitCode).toBe(7)
    expect(steps.at(-1)).toMatchObject({
      id: 'reevaluation',
      status: 'pass',
      detail: expect.stringContaining('At 2028-03-01T12:00:00.000Z the TCB status is UpToDate (UpToDate when issued)'),
    })
  })
})

describe('partly known code', () => {
  const [whole] = honest.anchors.measurements as [Required<(typeof honest.anchors.measurements)[number]>]
  const { mrTd } = whole
  const others = toFlags(honest).slice(2)
  const files = { 'receipt.json': honest.bytes, 'collateral.json': honest.collateral }
  const runWith = async (...measurement: string[]) => {
    const path = join(await createFolder(files), 'receipt.json')
    return run('verify', path, '--allow-mock', ...others, '--measurement', measurement.join(':'))
  }

  test('prints values in the option’s format', async () => {
    const { stdout } = await runWith(mrTd)
    const printed = /--measurement (\S+)/.exec(stdout)?.[1]
    expect((await runWith(printed ?? '')).exitCode).toBe(7)
  })
})

describe('help', () => {
  test.each(['--help', '-h', '--version'])('%s succeeds without other arguments', async (flag) => {
    expect(await run(flag)).toMatchObject({ exitCode: 0, stderr: '' })
  })

  // What a script runs with a hostile receipt name.
  test.each([
    ['verify', '--help'],
    ['verify', '-h'],
    ['verify', '--version'],
    ['explain', '--help'],
    ['--help', '--allow-mock'],
    ['--version', '--help'],
  ])('%s %s prints the help and reports on stderr that nothing was verified', async (...argv) => {
    expect(await run(...argv)).toEqual({
      exitCode: 4,
      stdout: HELP,
      stderr:
        'countersign-verifier: nothing was verified: use --help and --version without other arguments [invalid_arguments]\n',
    })
  })

  test('is no success even with every anchor and a receipt', async () => {
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.collateral })
    for (const flag of ['--help', '-h', '--version', '--help=', '-hh', '-hv']) {
      expect((await run('verify', flag, ...accept)).exitCode).toBe(4)
      expect((await run('verify', join(folder, 'receipt.json'), flag, ...accept)).exitCode).toBe(4)
    }
  })

  test('is one JSON object with --json', async () => {
    expect(await runJson('verify', '--help')).toEqual({
      exitCode: 4,
      error: { code: 'invalid_arguments', message: expect.stringContaining('nothing was verified') },
    })
  })
})

describe('errors', () => {
  test('prints an internal error as one line, never as a success', async () => {
    const broken = {
      ...deps,
      now: () => {
        throw new RangeError('broken clock')
      },
    }
    const { exitCode, stdout, stderr } = await runCli(broken, ['r', '--collateral', 'c', '--at', 'now'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toBe(
      'countersign-verifier: internal error, nothing was verified: RangeError: broken clock [internal]\n',
    )
  })

  test('removes terminal control characters from names', async () => {
    expect((await run('\u001b[2Jreceipt')).stderr).not.toContain('\u001b')
  })
})
