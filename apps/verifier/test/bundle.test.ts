import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { toCid } from '@countersign/receipt'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { contract, issueGoldenV2, toChain, toManifest } from '../../../packages/verify/test/issues.ts'
import { serveBlocks, serveRpc, startLoopback } from '../../../packages/verify/test/loopback.ts'
import { type BundleFile, createBundle } from '../../../scripts/bundle/createBundle.ts'
import { chromiumArgs } from '../../../scripts/findChromium.ts'

const root = join(import.meta.dirname, '../../..')
const golden = join(root, 'packages/receipt/spec/golden-v2/cases')
const car = readFileSync(join(golden, 'transaction.car'))
const { receipts } = JSON.parse(readFileSync(join(golden, 'cases.json'), 'utf8'))
const manifest = JSON.stringify(toManifest(receipts.transaction))
const tampered = Buffer.from(car)
tampered.writeUInt8(tampered.readUInt8(car.length - 9) ^ 1, car.length - 9)
const { version } = JSON.parse(readFileSync(join(root, 'apps/verifier/package.json'), 'utf8'))

const folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'))
let program: BundleFile
let page: BundleFile

beforeAll(async () => {
  ;[program, page] = (await createBundle()) as [BundleFile, BundleFile]
  for (const { name, bytes } of [program, page]) writeFileSync(join(folder, name), bytes)
  writeFileSync(join(folder, 'transaction.car'), car)
  writeFileSync(join(folder, 'tampered.car'), tampered)
  writeFileSync(join(folder, 'manifest.json'), manifest)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A copy of the verifier's sources and packages, in a folder with another name and depth. */
function copyCheckout(): string {
  const copy = join(mkdtempSync(join(tmpdir(), 'copy-')), 'of/the checkout')
  onTestFinished(() => rmSync(dirname(dirname(copy)), { recursive: true }))
  for (const name of ['package.json', 'tsconfig.base.json']) cpSync(join(root, name), join(copy, name))
  const paths = new Set(['apps/verifier'])
  // A set iterates in insertion order and includes paths added during the loop.
  for (const path of paths) {
    const isOurs = !path.startsWith('node_modules/')
    const filter = (file: string) => !isOurs || !/\/(?:node_modules|dist)$/.test(file)
    cpSync(join(root, path), join(copy, path), { recursive: true, filter })
    const link = join(copy, 'node_modules/@countersign', basename(path))
    mkdirSync(dirname(link), { recursive: true })
    if (isOurs) symlinkSync(join(copy, path), link)
    const { dependencies = {}, devDependencies = {} } = JSON.parse(
      readFileSync(join(root, path, 'package.json'), 'utf8'),
    )
    for (const name of Object.keys({ ...dependencies, ...(path === 'apps/verifier' ? devDependencies : {}) })) {
      paths.add(name.startsWith('@countersign/') ? `packages/${basename(name)}` : `node_modules/${name}`)
    }
  }
  return copy
}

test('another copy of the sources gives the same bytes', async () => {
  const copy = copyCheckout()
  for (const [index, { bytes }] of (await createBundle(copy)).entries()) {
    expect([program, page][index]?.bytes.equals(bytes)).toBe(true)
  }
})

test('both files have at most 1.5 MB, and name no folder of this machine', () => {
  for (const { bytes } of [program, page]) {
    expect(bytes.length).toBeLessThanOrEqual(1_500_000)
    expect(bytes.includes(root)).toBe(false)
    expect(bytes.includes(`..${sep}..${sep}node_modules`)).toBe(false)
  }
})

test('the program imports only modules of Node', () => {
  const imports = [...String(program.bytes).matchAll(/^(?:import|export) .*?"([^"]+)";$|\bimport\("([^"]+)"\)/gm)]
  const names = imports.map(([, fixed, dynamic]) => fixed ?? dynamic ?? '')
  expect(names.length).toBeGreaterThan(3)
  expect(names.filter((name) => !name.startsWith('node:') || !builtinModules.includes(name.slice(5)))).toEqual([])
})

test.each<[string, string[], number]>([
  ['the golden CAR file', ['transaction.car', '--manifest', 'manifest.json', '--offline'], 3],
  [
    'the golden CAR file, with mock evidence accepted',
    ['transaction.car', '--manifest', 'manifest.json', '--allow-mock'],
    7,
  ],
  ['a changed CAR file', ['tampered.car', '--manifest', 'manifest.json', '--offline'], 1],
  ['a file that is no receipt', ['manifest.json'], 4],
  ['an unknown option', ['transaction.car', '--frobnicate'], 4],
])('the program, alone in a folder, verifies %s', (_, argv, exitCode) => {
  const { status, stderr } = run(argv)
  expect({ status, stack: /^ +at /m.test(stderr) }).toEqual({ status: exitCode, stack: false })
})

test('the program prints its version and its help', () => {
  expect(run(['--version'])).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' })
  expect(run(['--help'])).toMatchObject({ status: 0, stderr: '' })
})

function run(argv: readonly string[]) {
  return spawnSync(process.execPath, ['countersign-verify.mjs', ...argv], { cwd: folder, encoding: 'utf8' })
}

// Set by scripts/test.ts where there is a browser.
const { CHROMIUM_PATH: executablePath } = process.env

describe.skipIf(!executablePath)('the page, opened from disk', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: [...chromiumArgs] })
  })
  afterAll(() => browser?.close())

  async function open({ isOffline = false } = {}) {
    const context = await browser.newContext({ viewport: { width: 390, height: 800 }, offline: isOffline })
    onTestFinished(() => context.close())
    // The machine may be busy.
    context.setDefaultTimeout(60_000)
    const opened = await context.newPage()
    const errors: string[] = []
    opened.on('pageerror', ({ message }) => errors.push(message))
    opened.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    await opened.goto(pathToFileURL(join(folder, 'verify.html')).href)
    return { opened, errors }
  }

  const verify = (opened: Page) => opened.getByRole('button', { name: 'Verify' }).click()
  const chooseFor = (opened: Page, field: string, ...names: string[]) =>
    opened.locator(field).setInputFiles(names.map((name) => join(folder, name)))
  const choose = (opened: Page, ...names: string[]) => chooseFor(opened, '#files', ...names)
  const statusOf = (opened: Page, step: string) => opened.locator(`[data-step=${step}]`).getAttribute('data-status')

  test('verifies a CAR file with a manifest offline, says MOCK, and fits on a phone', async () => {
    const { opened, errors } = await open({ isOffline: true })
    await choose(opened, 'transaction.car')
    await chooseFor(opened, '#manifest', 'manifest.json')
    await verify(opened)
    await opened.getByRole('heading', { name: 'Not verified: MOCK evidence' }).waitFor()
    expect(await Promise.all(['quote', 'measurement', 'event'].map((step) => statusOf(opened, step)))).toEqual([
      'pass',
      'pass',
      'skip',
    ])
    expect(await opened.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    for (const colorScheme of ['light', 'dark'] as const) {
      await opened.emulateMedia({ colorScheme })
      // The page's policy allows no other script.
      await opened.evaluate(axe.source)
      const { violations } = await opened.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
      expect(violations.map(({ id }) => id)).toEqual([])
    }
    expect(errors).toEqual([])
  })

  test('verifies blocks that were dropped as single files, and names a file that it did not use', async () => {
    const { opened } = await open()
    const blocks = ['transaction/attestation', 'transaction/batch', 'transaction/release', 'coordinator']
    const names = [...blocks, 'cases/collateral-2028'].map((name) => join(golden, '..', `${name}.json`))
    await opened.locator('#files').setInputFiles(names)
    await verify(opened)
    await opened.getByText('Not used, because the receipt doesn’t name it: collateral-2028.json').waitFor()
  })

  test('verifies a CID with a gateway, and the event with a node', async () => {
    const issue = await issueGoldenV2()
    const { blocks } = issue
    const all = [issue.bytes, issue.collateral, ...Object.values(blocks)]
    const gateway = serveBlocks(Object.fromEntries(all.map((block) => [toCid(block), block])))
    const node = serveRpc(toChain(issue))
    const { url } = await startLoopback((request, response) => {
      response.setHeader('access-control-allow-origin', '*')
      response.setHeader('access-control-allow-headers', '*')
      if (request.method === 'OPTIONS') response.end()
      else (request.method === 'POST' ? node : gateway)(request, response)
    })
    const { opened } = await open()
    for (const [id, value] of Object.entries({ subject: issue.cid, gateway: url, node: url, contract })) {
      await opened.locator(`#${id}`).fill(value)
    }
    await verify(opened)
    await opened.locator('#verdict h2').first().waitFor()
    const steps = ['cid', 'quote', 'event', 'time-bound']
    expect(await Promise.all(steps.map((step) => statusOf(opened, step)))).toEqual(steps.map(() => 'pass'))
  })

  test('rejects a node that is no address, without starting', async () => {
    const { opened } = await open()
    await choose(opened, 'transaction.car')
    await opened.locator('#node').fill('javascript:alert(1)')
    await verify(opened)
    await opened.getByRole('alert').getByText('Invalid node address').waitFor()
  })

  test('says that a file is no receipt', async () => {
    const { opened } = await open()
    await choose(opened, 'countersign-verify.mjs')
    await verify(opened)
    await opened.getByRole('alert').getByText('countersign-verify.mjs').waitFor()
    expect(await opened.locator('#verdict').textContent()).toBe('')
  })

  test('takes no manifest from the receipt’s files', async () => {
    const { opened } = await open()
    await choose(opened, 'transaction.car', 'manifest.json')
    await verify(opened)
    await opened.getByRole('alert').getByText('manifest.json').waitFor()
    expect(await opened.locator('#verdict').textContent()).toBe('')
  })

  test('stops showing a verdict when the input changes, and rejects a changed CAR file', async () => {
    const { opened } = await open()
    const verdict = opened.locator('#verdict h2').first()
    await choose(opened, 'transaction.car')
    await verify(opened)
    await verdict.waitFor()
    await opened.locator('#gateway').fill('x')
    await verdict.waitFor({ state: 'detached' })
    await opened.locator('#gateway').fill('')
    await verify(opened)
    await verdict.waitFor()
    await choose(opened, 'tampered.car')
    await verdict.waitFor({ state: 'detached' })
    await verify(opened)
    await opened
      .getByRole('alert')
      .getByRole('heading', { name: /^Not verified: .* changed/ })
      .waitFor()
    expect(await opened.locator('#verdict').textContent()).toBe('')
  })
})
