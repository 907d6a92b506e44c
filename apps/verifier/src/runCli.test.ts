import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { createSimulator } from '@countersign/attestation/simulator'
import { toCanonicalJson } from '@countersign/protocol'
import { canonicalBytes, toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import {
  contract,
  issue,
  signedAt,
  slug,
  toChain,
  toLog,
  toManifest,
  toProof,
} from '../../../packages/verify/src/issues.fake.ts'
import { findClosedUrl, serveBlocks, serveRpc, startLoopback } from '../../../packages/verify/src/loopback.fake.ts'
import { createFolder, honest, toFlags } from './folder.fake.ts'
import { HELP } from './help.ts'
import { runCli } from './runCli.ts'

const deps = { fetch, timeoutMs: 5_000, now: () => new Date('2028-03-01T12:00:00Z'), isColored: false }
const accept = ['--allow-mock', ...toFlags(honest)]
const collateralCid = honest.receipt.signer.collateral
const blocks = { [honest.cid]: honest.bytes, [collateralCid]: honest.collateral }
const { txHash } = honest.receipt.transaction

const run = (...argv: string[]) => runCli(deps, argv)

async function runJson(...argv: string[]) {
  const { exitCode, stdout, stderr } = await run(...argv, '--json')
  expect(stderr).toBe('')
  return { exitCode, ...JSON.parse(stdout) }
}

const statusOf = (steps: readonly { id: string; status: string }[], id: string) =>
  steps.find((step) => step.id === id)?.status

/** The service: the proof under its slug, and a gateway. */
const serveApi =
  (proof: unknown, served: Readonly<Record<string, Uint8Array>> = blocks): RequestListener =>
  (request, response) => {
    if (request.url === `/proof/${slug}`) response.end(JSON.stringify(proof))
    else serveBlocks(served)(request, response)
  }

describe('a receipt by its proof', () => {
  test('URL: the origin is the service, and its gateway has the blocks', async () => {
    const { url, requests } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(`${url}/proof/${slug}`, ...accept)).exitCode).toBe(0)
    expect(requests).toEqual([
      `GET /proof/${slug}`,
      `GET /ipfs/${honest.cid}?format=raw`,
      `GET /ipfs/${collateralCid}?format=raw`,
    ])
  })

  test('URL of a web app: --api says where the service is', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(`https://app.invalid/proof/${slug}`, '--api', url, ...accept)).exitCode).toBe(0)
  })

  test('slug, with --api', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(slug, '--api', url, ...accept)).exitCode).toBe(0)
  })

  test('slug alone is bad input', async () => {
    expect(await runJson(slug)).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
  })

  test('gateways are asked in order: the reader’s, the one that the proof names, the service’s own', async () => {
    const own = await startLoopback(serveBlocks({}))
    const named = await startLoopback(serveBlocks({}))
    const api = await startLoopback(serveApi(toProof(honest, { ipfsUrl: `${named.url}/ipfs/${honest.cid}` })))
    expect((await run(slug, '--api', api.url, '--ipfs', own.url, ...accept)).exitCode).toBe(0)
    expect([own, named, api].map(({ requests }) => requests.length)).toEqual([2, 2, 3])
  })

  test.each<[string, unknown]>([
    ['the receipt itself', honest.receipt],
    ['another receipt', { ...honest.receipt, issuedAt: '2026-03-01T12:00:01.000Z' }],
    ['no receipt', { version: 1 }],
    ['nothing', null],
  ])('where no gateway has it, the object in the proof is not read: %s', async (_, receipt) => {
    const { url, host } = await startLoopback(serveApi(toProof(honest, { receipt }), {}))
    const { exitCode, error } = await runJson(slug, '--api', url, ...accept)
    expect(exitCode).toBe(5)
    expect(error).toEqual({ code: 'fetch_failed', message: expect.stringContaining(`${host} answers 404`) })
  })

  test.each([
    ['pending_pin', 'try again'],
    ['pin_failed', 'gave up'],
  ])('that is not pinned (%s) is told plainly', async (status, words) => {
    const { url } = await startLoopback(serveApi(toProof(honest, { status, ipfsCid: null, receipt: null })))
    const { exitCode, stderr } = await run(slug, '--api', url)
    expect(exitCode).toBe(5)
    expect(stderr).toContain(words)
    expect(stderr).toContain('[proof_not_pinned]')
  })

  test.each<[string, unknown]>([
    ['of another slug', toProof(honest, { slug: 'A'.repeat(22) })],
    ['without a status', toProof(honest, { status: 'fine' })],
    ['with a CID of another kind', toProof(honest, { ipfsCid: 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnHFaP' })],
    ['with a malformed hash', toProof(honest, { txHash: '0x' })],
    ['that is a list', []],
    ['that is null', null],
  ])('a proof %s cannot be used', async (_, proof) => {
    const { url } = await startLoopback(serveApi(proof))
    expect(await runJson(slug, '--api', url)).toMatchObject({ exitCode: 5, error: { code: 'fetch_failed' } })
  })

  test('a proof page that shows one transaction and links the receipt of another fails', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest, { txHash: `0x${'00'.repeat(32)}` })))
    const { exitCode, verdict, steps } = await runJson(slug, '--api', url, ...accept)
    expect({ exitCode, verdict, subject: statusOf(steps, 'subject') }).toEqual({
      exitCode: 1,
      verdict: 'failed',
      subject: 'fail',
    })
  })

  test('an unknown slug and a service that is down are no verdict', async () => {
    const { url } = await startLoopback((_, response) => response.writeHead(404).end())
    expect(await runJson(slug, '--api', url)).toMatchObject({ exitCode: 5, error: { code: 'fetch_failed' } })
    expect(await runJson(slug, '--api', await findClosedUrl())).toMatchObject({ exitCode: 5 })
  })
})

describe('a receipt by its CID', () => {
  test('from a gateway; the bytes are held against it', async () => {
    const { url } = await startLoopback(serveBlocks(blocks))
    const { exitCode, cid, steps } = await runJson(honest.cid, '--ipfs', url, ...accept)
    expect({ exitCode, cid, step: statusOf(steps, 'cid') }).toEqual({ exitCode: 0, cid: honest.cid, step: 'pass' })
  })

  test('without a gateway is bad input: no public one is asked', async () => {
    expect(await runJson(honest.cid)).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
  })

  test('other bytes from every gateway: who sent what', async () => {
    const { url, host } = await startLoopback(serveBlocks({ [honest.cid]: honest.collateral }))
    const { exitCode, stderr } = await run(honest.cid, '--ipfs', url, ...accept)
    expect(exitCode).toBe(5)
    expect(stderr).toContain(`${host} sent ${honest.collateral.length} other bytes, with the CID ${collateralCid}`)
  })

  test('of a block that is no receipt is bad input', async () => {
    const { url } = await startLoopback(serveBlocks(blocks))
    expect(await runJson(collateralCid, '--ipfs', url)).toMatchObject({
      exitCode: 4,
      error: { code: 'receipt_version_unsupported' },
    })
  })

  test('collateral that no gateway has leaves the verdict open', async () => {
    const { url, host } = await startLoopback(serveBlocks({ [honest.cid]: honest.bytes }))
    const { exitCode, stdout, stderr } = await run(honest.cid, '--ipfs', url, ...accept)
    expect(exitCode).toBe(5)
    expect(stdout).toContain('NOT VERIFIED: evidence is missing')
    expect(stdout).toContain(collateralCid)
    expect(stderr).toBe(`countersign-verifier: could not fetch: ${host} answers 404\n`)
  })
})

describe('a receipt by its transaction', () => {
  const chainFlags = async (changes?: Readonly<Record<string, unknown>>) => {
    const { url } = await startLoopback(serveRpc(toChain(honest, changes)))
    return ['--rpc', url, '--contract', contract]
  }

  test('the event names the CID, and the chain is part of the verdict', async () => {
    const { url } = await startLoopback(serveBlocks(blocks))
    const { exitCode, steps } = await runJson(txHash, '--ipfs', url, ...(await chainFlags()), ...accept)
    expect(exitCode).toBe(0)
    expect(['event', 'transaction', 'time', 'subject'].map((id) => statusOf(steps, id))).toEqual(Array(4).fill('pass'))
  })

  test('without a chain is bad input, even where a service is named', async () => {
    const { exitCode, error } = await runJson(txHash, '--api', 'http://127.0.0.1:1')
    expect(exitCode).toBe(4)
    expect(error.message).toContain('needs --rpc and --contract')
  })

  test('an event under this hash that points to the receipt of another fails', async () => {
    // Only a dishonest publisher can do this: both transactions point to the same, genuine receipt.
    const asked = `0x${'11'.repeat(32)}`
    const [topic, wallet] = toLog(honest).topics
    const answer = ({ topics }: { topics: (string | null)[] }) => [
      topics[2] === asked ? toLog(honest, { topics: [topic, wallet, asked] }) : toLog(honest),
    ]
    const { url } = await startLoopback(serveBlocks(blocks))
    const flags = await chainFlags({ eth_getLogs: answer })
    const { exitCode, steps } = await runJson(asked, '--ipfs', url, ...flags, ...accept)
    expect(exitCode).toBe(1)
    expect(steps.filter(({ status }: { status: string }) => status === 'fail')).toMatchObject([{ id: 'subject' }])
  })

  test('no event is no verdict', async () => {
    const flags = await chainFlags({ eth_getLogs: [] })
    expect(await runJson(txHash, '--ipfs', 'http://127.0.0.1:1', ...flags)).toMatchObject({
      exitCode: 5,
      error: { code: 'event_not_found' },
    })
  })

  test('an event that names something else than a receipt is no verdict', async () => {
    const flags = await chainFlags({ eth_getLogs: [toLog({ ...honest, cid: 'x'.repeat(59) })] })
    expect(await runJson(txHash, '--ipfs', 'http://127.0.0.1:1', ...flags)).toMatchObject({ exitCode: 5 })
  })
})

describe('a chain beside a receipt file', () => {
  const receiptFolder = () => createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.collateral })

  test('the manifest names the contract of the node’s chain, and where to search from', async () => {
    const folder = await createFolder({
      'receipt.json': honest.bytes,
      'collateral.json': honest.collateral,
      'manifest.json': JSON.stringify(toManifest(honest)),
    })
    let fromBlock: unknown
    const eth_getLogs = (filter: { fromBlock: string }) => {
      fromBlock = filter.fromBlock
      return [toLog(honest)]
    }
    const { url } = await startLoopback(serveRpc(toChain(honest, { eth_getLogs })))
    const manifest = ['--manifest', join(folder, 'manifest.json'), '--allow-mock']
    const { exitCode, steps } = await runJson(join(folder, 'receipt.json'), '--rpc', url, ...manifest)
    expect({ exitCode, event: statusOf(steps, 'event'), fromBlock }).toEqual({
      exitCode: 0,
      event: 'pass',
      fromBlock: '0x7',
    })
    const elsewhere = await startLoopback(serveRpc(toChain(honest, { eth_chainId: '0x1' })))
    expect(await runJson(join(folder, 'receipt.json'), '--rpc', elsewhere.url, ...manifest)).toMatchObject({
      exitCode: 4,
      error: { message: expect.stringContaining('none on chain 1') },
    })
  })

  test('a node without a contract to ask is bad input', async () => {
    const path = join(await receiptFolder(), 'receipt.json')
    expect(await runJson(path, '--rpc', 'http://127.0.0.1:1')).toMatchObject({ exitCode: 4 })
  })

  test('a node that is down leaves the verdict open, a chain that points elsewhere fails', async () => {
    const path = join(await receiptFolder(), 'receipt.json')
    const down = ['--rpc', await findClosedUrl(), '--contract', contract]
    expect(await runJson(path, ...accept, ...down)).toMatchObject({ exitCode: 5, verdict: 'incomplete' })
    const { url } = await startLoopback(serveRpc(toChain(honest, { eth_getLogs: [] })))
    expect(await runJson(path, ...accept, '--rpc', url, '--contract', contract)).toMatchObject({ exitCode: 1 })
  })
})

describe('files', () => {
  test.each(['collateral.json', collateralCid, `${collateralCid}.json`])(
    'collateral beside the receipt is found as %s, offline',
    async (name) => {
      const folder = await createFolder({ 'receipt.json': honest.bytes, [name]: honest.collateral })
      const nobody = { ...deps, fetch: () => Promise.reject(new Error('touched the network')) }
      const argv = [join(folder, 'receipt.json'), '--offline', ...accept]
      expect((await runCli(nobody, argv)).exitCode).toBe(0)
    },
  )

  test('a line feed at the end of collateral, as editors add it, does no harm', async () => {
    const edited = Buffer.concat([honest.collateral, Buffer.from('\n')])
    const folder = await createFolder({ 'receipt.json': honest.bytes, 'collateral.json': edited })
    expect((await run(join(folder, 'receipt.json'), '--offline', ...accept)).exitCode).toBe(0)
    const apart = await createFolder({ 'receipt.json': honest.bytes, edited })
    const given = ['--collateral', join(apart, 'edited')]
    expect((await run(join(apart, 'receipt.json'), ...given, '--offline', ...accept)).exitCode).toBe(0)
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
    expect(exitCode).toBe(0)
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
    expect((await run(join(folder, 'receipt.json'), ...accepting)).exitCode).toBe(0)
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
      message: expect.stringContaining('--at needs the collateral of that time'),
    })
  })

  test('two collaterals for one time are bad input', async () => {
    const folder = await createFolder(files)
    const again = ['--at', at, '--collateral', join(folder, 'fresh'), '--collateral', join(folder, 'changed')]
    expect(await runJson(join(folder, 'receipt.json'), ...again)).toMatchObject({ exitCode: 4 })
  })

  test('without --at, collateral that the receipt does not name is bad input', async () => {
    const folder = await createFolder(files)
    const given = ['--collateral', join(folder, 'fresh')]
    expect(await runJson(join(folder, 'receipt.json'), ...given)).toMatchObject({
      exitCode: 4,
      error: { code: 'collateral_not_named', message: expect.stringContaining(toCid(fresh)) },
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
    expect((await run(...argv, '--tcb-status', 'OutOfDate')).exitCode).toBe(0)
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
    expect(stdout).toContain(`--measurement ${mrTd}:${rtmr0}:${rtmr1}:${rtmr2}:${rtmr3}\n`)
  })

  test('so it is without RTMR3 where no manifest names events', async () => {
    expect((await runWith(mrTd, rtmr0, rtmr1, rtmr2)).exitCode).toBe(2)
  })

  test('what is printed to be looked up is what the option takes', async () => {
    const { stdout } = await runWith(mrTd)
    const printed = /--measurement (\S+)/.exec(stdout)?.[1]
    expect((await runWith(printed ?? '')).exitCode).toBe(0)
  })

  test('a register that differs fails, with or without RTMR3', async () => {
    const other = 'ee'.repeat(48)
    expect((await runWith(mrTd, rtmr0, rtmr1, other, rtmr3)).exitCode).toBe(1)
    expect((await runWith(mrTd, rtmr0, rtmr1, rtmr2, other)).exitCode).toBe(1)
    expect((await runWith(mrTd, other, rtmr1, rtmr2)).exitCode).toBe(1)
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
    expect((await runManifest('whole')).exitCode).toBe(0)
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
    ['a product, at any patch level,', withTcb({ Milan: {}, Genoa: {} })],
  ])('%s that the evidence just reaches passes', async (_, content) => {
    expect(await runWith(content)).toEqual({ exitCode: 0, failed: [] })
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
    expect((await runCli(late, [join(folder, 'receipt.json'), ...accept])).exitCode).toBe(0)
  })
})
