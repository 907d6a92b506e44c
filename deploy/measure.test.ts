import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, readFileSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createImageLauncher, launched, NODE_FLAGS } from './launcher/launchers.ts'
import { type Architecture, type Image, images } from './measure/images.ts'
import { listSources, type Source } from './measure/listSources.ts'
import { listTree } from './measure/listTree.ts'
import { MeasureError } from './measure/MeasureError.ts'
import {
  compareFiles,
  createManifest,
  type Entry,
  parseManifest,
  readTree,
  toJson,
  toManifest,
} from './measure/manifest.ts'
import { parseOptions } from './measure/parseOptions.ts'
import { stageTree } from './measure/stageTree.ts'

const root = join(import.meta.dirname, '..')
const subject = { image: 'enclave', arch: 'x64' } as const

let folder: string
/** A small file instead of Node's hundred megabytes. */
const runtime: Source[] = [{ path: 'bin/node', content: Buffer.from('node'), isExecutable: true }]
const launcher = createImageLauncher('enclave')
let sources: Source[]
let tree: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-measure-'))
  sources = listFor('x64')
  tree = join(folder, 'tree')
  stageTree(tree, sources)
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const paths = () => sources.map(({ path }) => path)
const listFor = (arch: Architecture, image: Image = images.enclave) =>
  listSources({ root, image, arch, runtime, launcher })

describe('the enclave image', () => {
  test("contains the enclave's imports, thread and addon, and files read to resolve them", () => {
    expect(paths()).toEqual(
      expect.arrayContaining([
        'app/services/enclave/src/main.ts',
        'app/services/enclave/src/keys/keyWorkerThread.ts',
        'app/services/enclave/package.json',
        'app/packages/attestation/package.json',
        'app/node_modules/@countersign/attestation',
        'app/node_modules/secp256k1/prebuilds/linux-x64/secp256k1.glibc.node',
        'app/node_modules/tiny-secp256k1/lib/secp256k1.wasm',
        'app/node_modules/jose/package.json',
        'bin/node',
        'bin/launch',
      ]),
    )
  })

  test('contains no simulators, tests, fakes, declarations, lockfiles, install records or other platforms', () => {
    const foreign =
      /simulator|\.test\.|\.fake\.|\.d\.ts$|lock\.json|\.countersign|darwin|win32|musl|README|\/dist\/.*\.map$/
    expect(paths().filter((path) => foreign.test(path))).toEqual([])
  })

  test.each<[Architecture, string[]]>([
    [
      'x64',
      ['secp256k1/prebuilds/linux-x64/secp256k1.glibc.node', 'sodium-native/prebuilds/linux-x64/sodium-native.node'],
    ],
    ['arm64', ['sodium-native/prebuilds/linux-arm64/sodium-native.node']],
  ])('for %s contains only its addons', (arch, expected) => {
    const addons = listFor(arch).filter(({ path }) => path.endsWith('.node'))
    expect(addons.map(({ path }) => path).sort()).toEqual(expected.map((path) => `app/node_modules/${path}`))
  })
})

test.each(['coordinator', 'web', 'witness'] as const)('every import of the %s image is known', (name) => {
  // Without built folders, which may be missing in a checkout.
  expect(listFor('x64', { ...images[name], folders: [] }).length).toBeGreaterThan(5)
})

/** Content, modes and times, which two builds must agree on. */
function describeTree(path: string): string[] {
  const names = listTree(path).map((entry) => entry.path)
  return ['.', ...names].sort().map((name) => {
    const { mode, mtimeMs } = lstatSync(join(path, name))
    return `${name} ${mode.toString(8)} ${mtimeMs}`
  })
}

describe('the hash', () => {
  test('is reproducible from checkouts with other times, modes and umask, and from the tree itself', async () => {
    const checkout = join(folder, 'checkout')
    await cp(join(tree, 'app'), checkout, { recursive: true, verbatimSymlinks: true })
    await cp(join(root, 'package-lock.json'), join(checkout, 'package-lock.json'))
    // Leftovers of an install.
    await writeFile(join(checkout, 'node_modules/.package-lock.json'), '{}')
    await mkdir(join(checkout, 'node_modules/.cache'))
    await writeFile(join(checkout, 'node_modules/.cache/x.js'), 'x')
    for (const entry of listTree(checkout)) {
      if (entry.kind !== 'file') continue
      const path = join(checkout, entry.path)
      await utimes(path, 1_700_000_000, 1_700_000_000)
      await chmod(path, 0o700)
    }
    const again = listSources({ root: checkout, image: images.enclave, arch: 'x64', runtime, launcher })
    const other = join(folder, 'other')
    const umask = process.umask(0o077)
    try {
      stageTree(other, again)
    } finally {
      process.umask(umask)
    }
    const [first, second] = [sources, again].map((list) => createManifest(subject, list))
    expect(second?.hash).toBe(first?.hash)
    expect(compareFiles(readTree(tree), readTree(other))).toEqual([])
    expect(describeTree(other)).toEqual(describeTree(tree))
    expect(describeTree(tree).every((line) => / (100644|100755|120777|40755) 0$/.test(line))).toBe(true)
  })

  test('matches the staged files and can be computed from the listing', () => {
    const manifest = createManifest(subject, sources)
    expect(toManifest(subject, readTree(tree))).toEqual(manifest)
    const lines = manifest.files.map((entry) => {
      if ('link' in entry) return `link ${entry.link} ${entry.path}\n`
      const content = readFileSync(join(tree, entry.path))
      return `${entry.mode} ${createHash('sha256').update(content).digest('hex')} ${content.length} ${entry.path}\n`
    })
    expect(manifest.files.map(({ path }) => path)).toEqual(manifest.files.map(({ path }) => path).sort())
    expect(createHash('sha256').update(lines.join('')).digest('hex')).toBe(manifest.hash)
  })

  test('changes with a byte, a mode or a link', async () => {
    const { files } = createManifest(subject, sources)
    const changed = (index: number, change: Partial<Record<string, unknown>>) =>
      toManifest(subject, files.with(index, { ...files[index], ...change } as Entry)).hash
    const [file, link] = [files.findIndex((entry) => 'mode' in entry), files.findIndex((entry) => 'link' in entry)]
    const hashes = [
      toManifest(subject, files).hash,
      changed(file, { sha256: '0'.repeat(64) }),
      changed(file, { mode: '0755' }),
      changed(link, { link: '../../packages/protocol' }),
    ]
    expect(new Set(hashes).size).toBe(4)
  })
})

test.each([0o4755, 0o2755])('a tree with a file of mode %i has no hash', async (mode) => {
  const special = await mkdtemp(join(folder, 'special-'))
  await writeFile(join(special, 'su'), '')
  await chmod(join(special, 'su'), mode)
  expect(() => readTree(special)).toThrow(MeasureError)
})

describe('the staged tree runs', () => {
  // Runs with this machine's Node, which loads only addons for its own architecture.
  const arch = process.arch as Architecture
  const children: ChildProcess[] = []
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
  })

  function start(path: string, env: Record<string, string>) {
    const args = [...NODE_FLAGS, ...launched.enclave.enclave.args]
    const child = spawn(process.execPath, args, { cwd: join(path, 'app'), env })
    children.push(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    return { child, ended, output: () => output }
  }

  test('in production mode up to the missing configuration, without missing modules', async () => {
    const production = join(folder, 'production')
    stageTree(production, listFor(arch))
    const { ended, output } = start(production, { NODE_ENV: 'production' })
    expect(await ended).toBe(1)
    expect(output()).toContain('Refused to start')
    expect(output()).toContain('LISTEN: expected https in production')
    expect(output()).not.toMatch(/ERR_MODULE|Cannot find/)
  })

  test('with the simulator added, answers at /health and stops on request', async () => {
    const simulated = join(folder, 'simulated')
    stageTree(simulated, listFor(arch, { ...images.enclave, leftOut: [] }))
    const { child, ended, output } = start(simulated, {
      MOCK_ATTESTATION: 'true',
      QUOTE_SOURCE: 'mock',
      ROOT_SECRET: `file:${join(folder, 'root-secret')}`,
      OIDC_ISSUERS: 'https://issuer.example=client',
      ENTROPY_ALLOW_UNSIGNED: 'true',
      PORT: '0',
    })
    const address = () => /"address":"(http:[^"]+)"/.exec(output())?.[1]
    await expect.poll(address).toBeDefined()
    expect(await fetch(`${address()}/health`).then((response) => response.json())).toMatchObject({ status: 'waiting' })
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  })
})

/** A checkout with one source file. */
async function createCheckout(code: string, extra: Record<string, string> = {}): Promise<string> {
  const path = await mkdtemp(join(folder, 'checkout-'))
  const files = {
    'package.json': '{ "type": "module" }',
    'package-lock.json': '{ "packages": {} }',
    'main.ts': code,
    ...extra,
  }
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true })
    await writeFile(join(path, name), text)
  }
  return path
}

const plain: Image = { entries: ['main.ts'], folders: [], leftOut: [], known: {}, absent: [] }

function faultsOf(checkout: string, image: Partial<Image> = {}): readonly string[] {
  try {
    listSources({ root: checkout, image: { ...plain, ...image }, arch: 'x64', runtime, launcher })
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(MeasureError)
    return (error as MeasureError).faults
  }
}

describe('rejects', () => {
  const addon = {
    'node_modules/x/package.json': '{ "version": "1.0.0" }',
    'node_modules/x/index.js': 'module.exports = require(process.env.X)',
    'package-lock.json': '{ "packages": { "node_modules/x": { "version": "1.0.0" } } }',
  }

  test.each<[string, string, Record<string, string>, Partial<Image>, RegExp]>([
    ['an import of a missing file', "import './gone.ts'", {}, {}, /main\.ts imports \.\/gone\.ts, which doesn't exist/],
    ['a computed import', 'await import(process.argv[2])', {}, {}, /has a computed import/],
    ['a separate createRequire', "createRequire('/')('x')", {}, {}, /creates a separate require/],
    ['a package with computed imports', "import 'x'", addon, {}, /has a computed require/],
    [
      'a version other than in the lockfile',
      "import 'x'",
      { ...addon, 'package-lock.json': '{ "packages": {} }' },
      { known: { x: () => [] } },
      /x has version 1\.0\.0, expected no such package from the lockfile/,
    ],
    ['a missing addon', "import 'x'", addon, { known: { x: () => ['x.node'] } }, /x\.node not found/],
    [
      'an excluded module that is required',
      "import './a.ts'",
      { 'a.ts': '' },
      { leftOut: ['./a.ts'] },
      /requires \.\/a\.ts, which is excluded/,
    ],
    ['an unused exception', '', {}, { known: { y: () => [] } }, /unused exception: y/],
    ['a missing entry', '', {}, { entries: ['gone.ts'] }, /gone\.ts not found/],
    ['a missing folder', '', {}, { folders: ['dist'] }, /dist not found; build it first/],
  ])('%s', async (_, code, extra, image, expected) => {
    expect(faultsOf(await createCheckout(code, extra), image).join('\n')).toMatch(expected)
  })

  test('ignores imports in comments and types', async () => {
    const code = "/** @see import('./gone.ts') */\nimport type { A } from './gone.ts'\nawait import('./a.ts')\n"
    expect(faultsOf(await createCheckout(code, { 'a.ts': '' }))).toEqual([])
  })

  test('a file outside of the checkout', async () => {
    const checkout = await createCheckout("import './out.ts'")
    await symlink(join(import.meta.dirname, 'measure/MeasureError.ts'), join(checkout, 'out.ts'))
    expect(faultsOf(checkout).join('\n')).toMatch(/is outside of the repository/)
  })
})

test('staging rejects a folder that is not empty', () => {
  expect(() => stageTree(tree, sources)).toThrow(/is not empty/)
})

test.each<[string, Entry]>([
  ['a line in a path', { path: `a\n0644 ${'0'.repeat(64)} 1 b`, mode: '0644', bytes: 1, sha256: '0'.repeat(64) }],
  ['a line in a link', { path: 'a', link: 'b\nlink c' }],
  ['a space in a link', { path: 'a', link: 'b c' }],
])('lists no names that could give two lists one hash: %s', (_, entry) => {
  expect(() => toManifest(subject, [entry])).toThrow(MeasureError)
})

describe('a manifest', () => {
  const text = () => toJson(createManifest(subject, sources))

  test('is parsed back unchanged', () => {
    expect(toJson(parseManifest(text()))).toBe(text())
  })

  test.each<[string, (manifest: { files: Record<string, unknown>[]; [name: string]: unknown }) => void]>([
    ['another format', (manifest) => void Object.assign(manifest, { format: 'countersign-image/2' })],
    ['an unknown image', (manifest) => void Object.assign(manifest, { image: 'kubo' })],
    ['missing files', (manifest) => void Reflect.deleteProperty(manifest, 'files')],
    ['a file without a hash', (manifest) => void Reflect.deleteProperty(manifest.files.at(-1) ?? {}, 'sha256')],
    ['a changed file hash', (manifest) => void Object.assign(manifest.files.at(-1) ?? {}, { sha256: 'a'.repeat(64) })],
    ['a link with a hash', (manifest) => void Object.assign(manifest.files[0] ?? {}, { sha256: 'a'.repeat(64) })],
    ['a duplicate file', (manifest) => void manifest.files.push(manifest.files[0] ?? {})],
    ['a removed file', (manifest) => void manifest.files.pop()],
  ])('with %s is rejected', (_, change) => {
    const manifest = JSON.parse(text())
    change(manifest)
    expect(() => parseManifest(JSON.stringify(manifest))).toThrow(MeasureError)
  })

  test('that is not JSON is rejected', () => {
    expect(() => parseManifest('x')).toThrow('the manifest is not JSON')
  })
})

describe('the options', () => {
  test('have defaults', () => {
    expect(parseOptions([])).toMatchObject({ image: 'enclave', inputs: '.countersign/inputs', isJson: false })
    expect(parseOptions(['--help'])).toBe('help')
  })

  test.each([
    [['--image', 'kubo'], /--image: expected enclave, coordinator, web/],
    [['--inputs', ''], /--inputs: missing/],
    [['--tree', 'a', '--stage', 'b'], /--tree: can't be combined/],
    [['--out', ''], /--out: missing/],
    [['--verbose'], /--verbose/],
    [['enclave'], /enclave/],
  ])('reject %j', (args, expected) => {
    expect(() => parseOptions(args)).toThrow(expected)
  })

  test('--check lists the files that differ and exits with 1, or with 2 for invalid input', async () => {
    const manifestFile = join(folder, 'manifest.json')
    const unpacked = join(folder, 'unpacked')
    await cp(tree, unpacked, { recursive: true, verbatimSymlinks: true })
    await writeFile(manifestFile, toJson(createManifest(subject, sources)))
    const run = (...args: string[]) =>
      spawnSync(process.execPath, ['-C', 'source', join(import.meta.dirname, 'measure.ts'), ...args], {
        encoding: 'utf8',
      })

    const same = run('--tree', unpacked, '--check', manifestFile)
    expect([same.status, same.stderr]).toEqual([0, ''])
    const main = join(unpacked, 'app/services/enclave/src/main.ts')
    await writeFile(main, `${await readFile(main, 'utf8')}\n`)
    await writeFile(join(unpacked, 'app/more.ts'), '')
    await rm(join(unpacked, 'bin/node'))
    const other = run('--tree', unpacked, '--check', manifestFile)
    expect(other.status).toBe(1)
    expect(other.stderr.split('\n')).toEqual([
      'added    app/more.ts',
      'changed  app/services/enclave/src/main.ts',
      'missing  bin/node',
      '',
    ])
    expect(run('--check', join(folder, 'gone.json')).status).toBe(2)
  })
})
