import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { createLauncher } from './launcher/createLauncher.ts'
import {
  createImageLauncher,
  type LaunchedImage,
  launchedBy,
  listScripts,
  NODE_ENV,
  NODE_FLAGS,
} from './launcher/launchers.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'countersign-launcher-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const programs: [LaunchedImage, string, string][] = [
  ['enclave', 'enclave', 'Refused to start'],
  ['coordinator', 'coordinator', 'Refused to start'],
  ['coordinator', 'worker', 'Refused to start'],
]
const marker = join(folder, 'marker')
const evilFile = write('planted/evil.cjs', `require('node:fs').appendFileSync('${marker}', 'ran')`)
const planted = join(folder, 'planted')
const evilUrl = `data:text/javascript,import(${encodeURIComponent(`'file://${evilFile}'`)})`

function write(name: string, text: string | Uint8Array): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  return path
}

type Given = { args?: readonly string[]; env?: Record<string, string>; cwd?: string }

/** Runs a launcher. `hasObeyed` tells whether the attacker's code ran, or the loader or Node obeyed an injected setting. */
function run(path: string, { args = [], env = {}, cwd = folder }: Given) {
  rmSync(marker, { force: true, recursive: true })
  const { status, stdout, stderr } = spawnSync(path, args, { env, cwd, encoding: 'utf8' })
  const hasObeyed = existsSync(marker) || /ld\.so/.test(stderr) || /extra certs/.test(stderr)
  return { status, stdout, stderr, hasObeyed }
}

describe('as the image starts it', () => {
  // Files that an attacker could place in a working or home directory.
  write('planted/.npmrc', `node-options=--require=${evilFile}\n`)
  write('planted/package.json', '{ "type": "module" }')
  for (const name of ['node_modules', '.node_modules', '.node_libraries']) {
    write(`planted/${name}/planted/index.js`, `require('${evilFile}')`)
    write(`planted/${name}/planted/package.json`, '{}')
  }
  for (const script of [...listScripts('enclave'), ...listScripts('coordinator')]) {
    write(`planted/${script}`, `import '${evilFile}'`)
  }

  const attacks: [string, Given][] = [
    ['NODE_OPTIONS with --import', { env: { NODE_OPTIONS: `--import=${evilUrl}` } }],
    ['NODE_OPTIONS with --require', { env: { NODE_OPTIONS: `--require=${evilFile}` } }],
    ['LD_PRELOAD', { env: { LD_PRELOAD: '/nowhere/evil.so' } }],
    ['LD_AUDIT', { env: { LD_AUDIT: '/nowhere/evil.so' } }],
    ['NODE_V8_COVERAGE', { env: { NODE_V8_COVERAGE: marker } }],
    ['NODE_EXTRA_CA_CERTS', { env: { NODE_EXTRA_CA_CERTS: '/nowhere/ca.pem', NODE_OPTIONS: '--use-system-ca' } }],
    ['a planted program in the working directory', { cwd: planted }],
  ]

  describe.each(programs)('%s: %s', (image, name, answer) => {
    const path = write(`launch-${image}`, createImageLauncher(image, { node: process.execPath, folder: root }))

    test('starts and reports the missing configuration', () => {
      const { status, stdout, stderr, hasObeyed } = run(path, { args: [name] })
      expect([status, stderr, hasObeyed]).toEqual([1, '', false])
      expect(stdout).toContain(answer)
    })

    test('all attacks at once have no effect', () => {
      const env = Object.assign({}, ...attacks.map(([, given]) => given.env))
      const { status, stdout, stderr, hasObeyed } = run(path, { env, cwd: planted, args: [name] })
      expect([status, stderr, hasObeyed]).toEqual([1, '', false])
      expect(stdout).toContain(answer)
    })
  })

  describe("an argument other than a program's name", () => {
    const [image, name] = ['coordinator', 'worker'] as const
    const path = write('launch-coordinator', createImageLauncher(image, { node: process.execPath, folder: root }))
    const script = launchedBy(image, name)?.args[0] ?? ''

    test.each([
      ['an option of Node', [`--import=${evilUrl}`, script]],
      ['an environment file', ['--env-file=/dev/null', script]],
      ['a script', ['-e', `require('${evilFile}')`]],
      ['a path', [script]],
      ['nothing', []],
      ['an additional argument', [name, `--import=${evilUrl}`]],
      ['a settings file', [name, '--config', '/etc/settings']],
      ['half a name', [name.slice(0, -1)]],
      ['more than a name', [`${name}s`]],
    ])('rejects %s', (_, args) => {
      const { status, stdout, stderr, hasObeyed } = run(path, { args })
      expect([status, stdout, hasObeyed]).toEqual([64, '', false])
      expect(stderr).toBe('launch: refused: expected the name of a program of this image\n')
    })
  })

  test.each(attacks)('%s has no effect through the launcher, but does without it', (_, given) => {
    const [image, name] = ['web', 'health'] as const
    const script = launchedBy(image, name)?.args[0] ?? ''
    const path = write('launch-web', createImageLauncher(image, { node: process.execPath, folder: root }))
    expect(run(path, { ...given, args: [name] })).toMatchObject({ status: 1, stderr: '', hasObeyed: false })
    // Without the launcher: Node with a path relative to the working directory.
    expect(run(process.execPath, { cwd: root, ...given, args: [...NODE_FLAGS, script] }).hasObeyed).toBe(true)
  })
})

describe('a started program', () => {
  write(
    'app/probe.mjs',
    `import { createRequire } from 'node:module'
     import { getCACertificates } from 'node:tls'
     let planted = 'loaded'
     try { createRequire(import.meta.url)('planted') } catch (error) { planted = error.code }
     const { env, execArgv } = process
     const certificates = getCACertificates('default').length
     console.log(JSON.stringify({ env, cwd: process.cwd(), argv: process.argv.slice(2), execArgv, certificates, planted }))`,
  )
  const ca = write('ca.pem', `${rootCertificates[0]}\n`)
  const app = join(folder, 'app')
  const path = write(
    'launch-probe',
    createLauncher({
      node: process.execPath,
      flags: NODE_FLAGS,
      folder: app,
      variable: NODE_ENV,
      programs: {
        first: { args: ['first.mjs'], env: ['HIDDEN'] },
        probe: { args: ['probe.mjs', 'own'], env: ['PORT', 'OIDC_*', 'EMPTY'], takesArguments: true },
      },
    }),
  )
  const probe = (given: Given) => {
    const { status, stdout, stderr } = run(path, { ...given, args: ['probe', ...(given.args ?? [])] })
    expect([status, stderr]).toEqual([0, ''])
    return JSON.parse(stdout)
  }

  test('gets only the listed variables, unchanged', () => {
    const env = {
      PORT: '8080',
      OIDC_GOOGLE_CLIENT_ID: 'a=b',
      OIDC_: 'x',
      EMPTY: '',
      PORTS: '1',
      XPORT: '1',
      port: '1',
      POR: '1',
      OIDC: '1',
      HIDDEN: '1',
      NODE_ENV: 'development',
      PATH: '/evil',
      HOME: planted,
      ...Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`MANY_${index}`, 'x'])),
    }
    expect(probe({ env }).env).toEqual({
      PORT: '8080',
      OIDC_GOOGLE_CLIENT_ID: 'a=b',
      OIDC_: 'x',
      EMPTY: '',
      NODE_ENV: 'production',
    })
  })

  test("runs in its own folder, with its own arguments first and the image's Node options", () => {
    const { cwd, argv, execArgv } = probe({ cwd: planted, args: ['--import=x', 'b c', ''] })
    expect({ cwd, argv, execArgv }).toEqual({
      cwd: realpathSync(app),
      argv: ['own', '--import=x', 'b c', ''],
      execArgv: NODE_FLAGS,
    })
  })

  test.each<[string, Record<string, string>]>([
    ['NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: ca }],
    ['SSL_CERT_FILE', { SSL_CERT_FILE: ca, NODE_OPTIONS: '--use-openssl-ca' }],
    ['SSL_CERT_DIR', { SSL_CERT_DIR: folder, NODE_USE_SYSTEM_CA: '1' }],
    ['NODE_PATH', { NODE_PATH: join(planted, 'node_modules') }],
    ['HOME', { HOME: planted }],
    ['OPENSSL_CONF', { OPENSSL_CONF: '/nowhere', NODE_OPTIONS: '--openssl-shared-config' }],
    [
      'npm_config_node_options',
      { npm_config_node_options: `--require=${evilFile}`, npm_config_userconfig: `${planted}/.npmrc` },
    ],
  ])('is not affected by %s', (_, env) => {
    expect(probe({ env, cwd: planted })).toEqual(probe({}))
    expect(existsSync(marker)).toBe(false)
  })

  test('without the launcher, planted modules and certificates are loaded', () => {
    const script = join(app, 'probe.mjs')
    const bare = (env: Record<string, string>) => JSON.parse(run(process.execPath, { args: [script], env }).stdout)
    const { certificates } = bare({})
    expect(bare({ NODE_EXTRA_CA_CERTS: ca }).certificates).toBe(certificates + 1)
    expect(bare({ NODE_OPTIONS: '--use-openssl-ca', SSL_CERT_FILE: ca }).certificates).not.toBe(certificates)
    expect(bare({ NODE_PATH: join(planted, 'node_modules') }).planted).toBe('loaded')
    expect(bare({ HOME: planted }).planted).toBe('loaded')
  })

  test('does not start if Node or the folder is missing', () => {
    for (const change of [{ node: '/nowhere/node' }, { folder: '/nowhere' }]) {
      const broken = write(
        'launch-broken',
        createImageLauncher('web', { node: process.execPath, folder: app, ...change }),
      )
      expect(run(broken, { args: ['web'] })).toMatchObject({ status: 64, stdout: '' })
    }
  })
})
