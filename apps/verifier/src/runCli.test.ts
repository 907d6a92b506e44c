import { join } from 'node:path'
import { createSimulator } from '@countersign/attestation/simulator'
import { toCanonicalJson } from '@countersign/protocol'
import { canonicalBytes, toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { issue, signedAt, slug, toManifest } from '../../../packages/verify/src/issues.fake.ts'
import { createFolder, honest, toFlags } from './folder.fake.ts'
import { HELP } from './help.ts'
import { accept, collateralCid, deps, run, runJson, statusOf, txHash } from './runCli.fake.ts'
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

  test('a line feed at the end of collateral, as editors add it, does no harm', async () => {
    const edited = Buffer.concat([honest.collateral, Buffer.from('\n')])
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': edited })
    expect((await run(join(folder, 'receipt.json'), '--offline', ...accept)).exitCode).toBe(7)
    const apart = await createFolder({ 'receipt.json': honest.bytes, edited })
    const given = ['--collateral', join(apart, 'edited')]
    expect((await run(join(apart, 'receipt.json'), ...given, '--offline', ...accept)).exitCode).toBe(7)
  })

  test('what is beside the receipt and is not its collateral is passed over', async () => {
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.bytes })
    expect(await runJson(join(folder, 'receipt.json'), '--offline', ...accept)).toMatchObject({
      exitCode: 5,
      verdict: 'incomplete',
    })
  })

  test('a file named after a CID is held against it', async () => {
    const folder = await createFolder({ [`${collateralCid}.json`]: honest.bytes, c: honest.collateral })
    const collateral = ['--collateral', join(folder, 'c')]
    expect(await runJson(join(folder, `${collateralCid}.json`), ...collateral, ...accept)).toMatchObject({
      exitCode: 1,
      verdict: 'failed',
    })
  })

  test('offline, only a file can be verified', async () => {
    for (const subject of [honest.cid, txHash, slug, `http://127.0.0.1:1/proof/${slug}`]) {
      expect(await runJson(subject, '--offline')).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
    }
  })

  test('a receipt fails before its missing collateral counts', async () => {
    const { transaction } = honest.receipt
    const bytes = canonicalBytes({ ...honest.receipt, transaction: { ...transaction, value: '2' } })
    const folder = await createFolder({ 'receipt.json': bytes })
    expect(await runJson(join(folder, 'receipt.json'), '--offline')).toMatchObject({ exitCode: 1 })
  })

  test('a receipt that names another receipt as its collateral fails', async () => {
    const { signer } = honest.receipt
    const bytes = canonicalBytes({ ...honest.receipt, signer: { ...signer, collateral: honest.cid } })
    const folder = await createFolder({ 'receipt.json': bytes, 'collateral.json': honest.bytes })
    const { exitCode, steps } = await runJson(join(folder, 'receipt.json'), '--offline', ...accept)
    expect({ exitCode, collateral: statusOf(steps, 'collateral') }).toEqual({ exitCode: 1, collateral: 'fail' })
  })
})

describe('judged again at another time', () => {
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

  test('what changed since is a failure of that step alone, unless the reader accepts it', async () => {
    const folder = await createFolder(files)
    const again = ['--at', at, '--collateral', join(folder, 'changed')]
    const { exitCode, steps } = await runJson(join(folder, 'receipt.json'), ...accept, ...again)
    expect(exitCode).toBe(1)
    expect(steps.filter(({ status }: { status: string }) => status === 'fail')).toMatchObject([
      { id: 'reevaluation', detail: expect.stringContaining('OutOfDate (UpToDate when issued)') },
    ])
    const accepting = [...accept, ...again, '--tcb-status', 'OutOfDate']
    expect((await run(join(folder, 'receipt.json'), ...accepting)).exitCode).toBe(7)
  })

  test('collateral that is not of that time fails', async () => {
    const folder = await createFolder(files)
    const again = ['--at', '2029-03-01', '--collateral', join(folder, 'fresh')]
    expect((await run(join(folder, 'receipt.json'), ...accept, ...again)).exitCode).toBe(1)
  })

  test('the receipt’s own collateral is not that of another time', async () => {
    const folder = await createFolder(files)
    const again = ['--at', at, '--collateral', join(folder, 'collateral.json')]
    const { exitCode, error } = await runJson(join(folder, 'receipt.json'), ...again)
    expect({ exitCode, message: error.message }).toMatchObject({
      exitCode: 4,
      message: expect.stringContaining('--at needs it in --collateral'),
    })
  })

  test('two collaterals for one time are bad input', async () => {
    const folder = await createFolder(files)
    const again = ['--at', at, '--collateral', join(folder, 'fresh'), '--collateral', join(folder, 'changed')]
    expect(await runJson(join(folder, 'receipt.json'), ...again)).toMatchObject({
      exitCode: 4,
      error: { code: 'collateral_not_named', message: expect.stringContaining('(--at takes one --collateral') },
    })
  })

  test('without --at, collateral that the receipt does not name is bad input', async () => {
    const folder = await createFolder(files)
    const given = ['--collateral', join(folder, 'fresh')]
    expect(await runJson(join(folder, 'receipt.json'), ...given)).toMatchObject({
      exitCode: 4,
      error: {
        code: 'collateral_not_named',
        message: expect.stringMatching(new RegExp(`${toCid(fresh)}.*\\(--at\\)$`)),
      },
    })
  })
})

describe('the state of the enclave', () => {
  test('a platform that Intel rates as outdated fails, unless the reader accepts that', async () => {
    const issued = await issue({ quote: { status: 'OutOfDate' } })
    const folder = await createFolder({ 'receipt.json': issued.bytes, 'collateral.json': issued.collateral })
    const argv = [join(folder, 'receipt.json'), '--allow-mock', ...toFlags(issued)]
    const { exitCode, stdout } = await run(...argv)
    expect(exitCode).toBe(1)
    expect(stdout).toContain('name the status with --tcb-status')
    expect((await run(...argv, '--tcb-status', 'OutOfDate')).exitCode).toBe(7)
    expect((await run(...argv, '--tcb-status', 'ConfigurationNeeded')).exitCode).toBe(1)
  })
})

describe('code that is known only in part', () => {
  const [whole] = honest.anchors.measurements as [Required<(typeof honest.anchors.measurements)[number]>]
  const { mrTd, rtmr0, rtmr1, rtmr2, rtmr3 } = whole
  const others = toFlags(honest).slice(2)
  const files = { 'receipt.json': honest.bytes, 'collateral.json': honest.collateral }
  const runWith = async (...measurement: string[]) => {
    const path = join(await createFolder(files), 'receipt.json')
    return run('verify', path, '--allow-mock', ...others, '--measurement', measurement.join(':'))
  }

  test('MRTD alone is unknown code, even with every other anchor and --allow-mock', async () => {
    const { exitCode, stdout } = await runWith(mrTd)
    expect(exitCode).toBe(2)
    expect(stdout).not.toContain('verified, on')
    expect(stdout).toContain(`--measurement ${mrTd}:${rtmr0}:${rtmr1}:${rtmr2}:0:0:0:0\n`)
  })

  test('so it is without RTMR3 where no manifest names events, and without what the host sets at launch', async () => {
    expect((await runWith(mrTd, rtmr0, rtmr1, rtmr2)).exitCode).toBe(2)
    const { exitCode, stdout } = await runWith(mrTd, rtmr0, rtmr1, rtmr2, rtmr3)
    expect(exitCode).toBe(2)
    expect(stdout.replace(/\s+/g, ' ')).toContain('they do not name MRCONFIGID, MROWNER and MROWNERCONFIG.')
    expect((await runWith(mrTd, rtmr0, rtmr1, rtmr2, rtmr3, '0', '', '0')).exitCode).toBe(2)
  })

  test('what is printed to be looked up is what the option takes', async () => {
    const { stdout } = await runWith(mrTd)
    const printed = /--measurement (\S+)/.exec(stdout)?.[1]
    expect((await runWith(printed ?? '')).exitCode).toBe(7)
  })

  test('a register that differs fails, with or without RTMR3', async () => {
    const other = 'ee'.repeat(48)
    expect((await runWith(mrTd, rtmr0, rtmr1, other, rtmr3)).exitCode).toBe(1)
    expect((await runWith(mrTd, rtmr0, rtmr1, rtmr2, other)).exitCode).toBe(1)
    expect((await runWith(mrTd, other, rtmr1, rtmr2)).exitCode).toBe(1)
    expect((await runWith(mrTd, rtmr0, rtmr1, rtmr2, rtmr3, other, '0', '0')).exitCode).toBe(1)
  })

  test('a manifest that names MRTD alone is no better; one that names all registers passes', async () => {
    const manifest = toManifest(honest)
    const folder = await createFolder({
      ...files,
      whole: JSON.stringify(manifest),
      part: JSON.stringify({ ...manifest, enclave: { ...manifest.enclave, measurements: [{ mrTd }] } }),
    })
    const runManifest = (name: string) =>
      run(join(folder, 'receipt.json'), '--allow-mock', '--manifest', join(folder, name))
    expect((await runManifest('part')).exitCode).toBe(2)
    expect((await runManifest('whole')).exitCode).toBe(7)
  })
})

describe('floors in a manifest', () => {
  const manifest = toManifest(honest)
  const withNumber = (minimumTcbEvaluationDataNumber: number) => ({
    ...manifest,
    enclave: { ...manifest.enclave, minimumTcbEvaluationDataNumber },
  })
  const withTcb = (minimumTcb: unknown) => ({ ...manifest, coordinator: { ...manifest.coordinator, minimumTcb } })
  const runWith = async (content: unknown) => {
    const folder = await createFolder({
      'receipt.json': honest.bytes,
      'collateral.json': honest.collateral,
      manifest: JSON.stringify(content),
    })
    const { exitCode, steps } = await runJson(
      join(folder, 'receipt.json'),
      '--allow-mock',
      '--manifest',
      join(folder, 'manifest'),
    )
    const failed = steps.filter(({ status }: { status: string }) => status === 'fail')
    return { exitCode, failed: failed.map(({ id, code }: { id: string; code: string }) => [id, code]) }
  }

  test.each<[string, unknown]>([
    ['an evaluation', withNumber(20)],
    ['patch levels', withTcb({ Milan: { fmc: 0, bl: 4, tee: 0, snp: 24, ucode: 219 } })],
    ['one patch level', withTcb({ Milan: { bl: 4 }, Genoa: {} })],
  ])('%s that the evidence just reaches passes', async (_, content) => {
    expect(await runWith(content)).toEqual({ exitCode: 7, failed: [] })
  })

  test('a product without a patch level is no floor: the code stays unknown', async () => {
    expect(await runWith(withTcb({ Milan: {}, Genoa: { bl: 1 } }))).toEqual({ exitCode: 2, failed: [] })
    expect(await runWith(withTcb({ Milan: { bl: 0 } }))).toEqual({ exitCode: 2, failed: [] })
    expect(await runWith(withTcb(undefined))).toEqual({ exitCode: 2, failed: [] })
  })

  test('an evaluation by Intel that is newer than the collateral’s fails quote-policy', async () => {
    expect(await runWith(withNumber(21))).toEqual({
      exitCode: 1,
      failed: [['quote-policy', 'tcb_evaluation_too_old']],
    })
  })

  test.each([{ fmc: 1 }, { bl: 5 }, { tee: 1 }, { snp: 25 }, { ucode: 220 }])(
    'a patch level above the coordinator’s fails coordinator-policy: %j',
    async (Milan) => {
      expect(await runWith(withTcb({ Milan }))).toEqual({
        exitCode: 1,
        failed: [['coordinator-policy', 'tcb_too_old']],
      })
    },
  )

  test('a processor that is not named fails coordinator-policy', async () => {
    expect(await runWith(withTcb({ Turin: {} }))).toEqual({
      exitCode: 1,
      failed: [['coordinator-policy', 'platform_not_allowed']],
    })
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

  test('the receipt is judged as issued, whatever the clock says', async () => {
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.collateral })
    const late = { ...deps, now: () => new Date(signedAt.getTime() + 50 * 365 * 86_400_000) }
    expect((await runCli(late, [join(folder, 'receipt.json'), ...accept])).exitCode).toBe(7)
  })
})
