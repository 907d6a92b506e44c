import { join } from 'node:path'
import { createSimulator } from '@countersign/attestation/simulator'
import { toCanonicalJson } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { slug } from '../../../packages/verify/test/issues.ts'
import { createFolder, honest, toFlags } from '../test/folder.ts'
import { accept, collateralCid, deps, run, runJson, txHash } from '../test/runCli.ts'
import { HELP } from './help.ts'
import { runCli } from './runCli.ts'

describe('files', () => {
  test.each(['collateral.json', collateralCid, `${collateralCid}.json`])(
    'collateral beside the receipt is found as %s, offline',
    async (name) => {
      const folder = await createFolder({ 'receipt.json': honest.bytes, [name]: honest.collateral })
      const nobody = { ...deps, fetch: () => Promise.reject(new Error('touched the network')) }
      const argv = [join(folder, 'receipt.json'), '--offline', ...accept]
      expect((await runCli(nobody, argv)).exitCode).toBe(7)
    },
  )

  test('accepts a line feed at the end of collateral, as editors add it', async () => {
    const edited = Buffer.concat([honest.collateral, Buffer.from('\n')])
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': edited })
    expect((await run(join(folder, 'receipt.json'), '--offline', ...accept)).exitCode).toBe(7)
  })

  test('what is beside the receipt and is not its collateral is passed over', async () => {
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.bytes })
    expect(await runJson(join(folder, 'receipt.json'), '--offline', ...accept)).toMatchObject({
      exitCode: 5,
      verdict: 'incomplete',
    })
  })

  test('offline, only a file can be verified', async () => {
    for (const subject of [honest.cid, txHash, slug, `http://127.0.0.1:1/proof/${slug}`]) {
      expect(await runJson(subject, '--offline')).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
    }
  })
})

describe('checked again at another time', () => {
  const at = '2028-03-01T12:00:00Z'
  const simulator = createSimulator({ at: new Date(at) })
  const fresh = toCanonicalJson(simulator.collateral())
  const changed = toCanonicalJson(
    simulator.collateral({ editTcbInfo: (text) => text.replaceAll('"UpToDate"', '"OutOfDate"') }),
  )
  const files = { 'receipt.json': honest.bytes, 'collateral.json': honest.collateral, fresh, changed }

  test.each(['now', at])('--at %s with collateral of that time passes and says so', async (time) => {
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

describe('code that is known only in part', () => {
  const [whole] = honest.anchors.measurements as [Required<(typeof honest.anchors.measurements)[number]>]
  const { mrTd } = whole
  const others = toFlags(honest).slice(2)
  const files = { 'receipt.json': honest.bytes, 'collateral.json': honest.collateral }
  const runWith = async (...measurement: string[]) => {
    const path = join(await createFolder(files), 'receipt.json')
    return run('verify', path, '--allow-mock', ...others, '--measurement', measurement.join(':'))
  }

  test('what is printed to be looked up is what the option takes', async () => {
    const { stdout } = await runWith(mrTd)
    const printed = /--measurement (\S+)/.exec(stdout)?.[1]
    expect((await runWith(printed ?? '')).exitCode).toBe(7)
  })
})

describe('help', () => {
  test.each(['--help', '-h', '--version'])('%s alone succeeds', async (flag) => {
    expect(await run(flag)).toMatchObject({ exitCode: 0, stderr: '' })
  })

  // What a script runs that was handed a hostile name for a receipt.
  test.each([
    ['verify', '--help'],
    ['verify', '-h'],
    ['verify', '--version'],
    ['explain', '--help'],
    ['--help', '--allow-mock'],
    ['--version', '--help'],
  ])('%s %s shows the help, and says on stderr that nothing was verified', async (...argv) => {
    expect(await run(...argv)).toEqual({
      exitCode: 4,
      stdout: HELP,
      stderr: 'countersign-verifier: nothing was verified: --help and --version stand alone [invalid_arguments]\n',
    })
  })

  test('with every anchor and a receipt beside it, it is still no success', async () => {
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.collateral })
    for (const flag of ['--help', '-h', '--version', '--help=', '-hh', '-hv']) {
      expect((await run('verify', flag, ...accept)).exitCode).toBe(4)
      expect((await run('verify', join(folder, 'receipt.json'), flag, ...accept)).exitCode).toBe(4)
    }
  })

  test('with --json it is one JSON object', async () => {
    expect(await runJson('verify', '--help')).toEqual({
      exitCode: 4,
      error: { code: 'invalid_arguments', message: expect.stringContaining('nothing was verified') },
    })
  })
})

describe('errors', () => {
  test('a fault of this program is one line and never a success', async () => {
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

  test('a name cannot paint on the terminal', async () => {
    expect((await run('\u001b[2Jreceipt')).stderr).not.toContain('\u001b')
  })
})
