import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { toPath } from './paths.ts'
import { type StartServiceParameters, startService } from './startService.ts'

const STARTED = `console.log(JSON.stringify({ msg: 'Started the thing', port: 7 }))`
/** A program that serves and runs `onStop` on SIGTERM. The "started" line comes last, when it can handle the signal. */
const serve = (onStop: string) => `setInterval(() => {}, 1000); process.on('SIGTERM', () => { ${onStop} }); ${STARTED}`
const SERVES = serve('process.exit(0)')

async function writeMain(program: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-service-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'main.mjs')
  await writeFile(path, program)
  return path
}

async function run(program: string, options: Partial<StartServiceParameters> = {}) {
  const main = await writeMain(program)
  const service = startService({ name: 'thing', main, env: {}, ...options })
  onTestFinished(async () => void (await service.kill('SIGKILL')))
  return service
}

test('`started` returns the fields of its line, and other lines only go to `onLine`', async () => {
  const lines: string[] = []
  const { started } = await run(`console.log('no JSON'); console.error('[1]'); ${SERVES}`, {
    onLine: (line) => lines.push(line),
  })
  expect(await started).toEqual({ msg: 'Started the thing', port: 7 })
  await expect.poll(() => lines.toSorted()).toEqual(['[1]', 'no JSON', '{"msg":"Started the thing","port":7}'])
})

test('a process gets PATH, the compile cache and the given environment only', async () => {
  process.env.STRAY_SETTING = 'x'
  onTestFinished(() => void delete process.env.STRAY_SETTING)
  const says = `console.log(JSON.stringify({ msg: 'Started the thing', names: Object.keys(process.env).sort() }))`
  const readNames = async (env: Record<string, string>) => (await (await run(says, { env })).started).names
  expect(await readNames({ OWN: '1' })).toEqual(['NODE_COMPILE_CACHE', 'OWN', 'PATH'])
  expect(await readNames({ NODE_ENV: 'production' })).toEqual(['NODE_ENV', 'PATH'])
})

test('a process that ends before it serves rejects `started` with the reason and its last lines', async () => {
  const { started, ended } = await run(
    `for (let n = 1; n < 20; n++) console.log('line ' + n + '.'); process.exitCode = 3`,
  )
  await expect(started).rejects.toThrow(
    /^The thing exited with code 3\. Its last lines:\n {2}line 8\.\n(?:.*\n)*.*line 19\.$/,
  )
  expect(await ended).toMatchObject({ code: 3, isClean: false })
  await expect((await run('')).started).rejects.toThrow('The thing exited with code 0 without output.')
})

test('kill returns the exit code, or null after a signal, and can be repeated', async () => {
  const polite = await run(SERVES)
  await polite.started
  expect([await polite.kill('SIGTERM'), await polite.kill('SIGTERM'), polite.hasEnded()]).toEqual([0, 0, true])
  const killed = await run(SERVES)
  await killed.started
  expect(await killed.kill('SIGKILL')).toBe(null)
  expect((await killed.ended).how).toBe('was killed by SIGKILL')
})

test('stop waits until the process serves, and rejects if it ends late or with an error', async () => {
  const stopped: string[] = []
  const slow = await run(`setTimeout(() => { ${SERVES} }, 300)`, { onLine: (line) => stopped.push(line) })
  await slow.stop()
  expect(stopped).toHaveLength(1)
  const stubborn = await run(serve(''))
  await expect(stubborn.stop(500)).rejects.toThrow('The thing did not stop in 0.5 s and was killed.')
  const failing = await run(serve('process.exit(4)'))
  await expect(failing.stop()).rejects.toThrow('The thing exited with code 4 while stopping.')
})

test('works in a checkout with any name, and the launcher loads no package', async () => {
  const root = await mkdtemp(join(tmpdir(), 'countersign #1? 100%25 '))
  onTestFinished(() => rm(root, { recursive: true }))
  const source = 'packages/testing/src'
  await writeFile(join(root, 'package.json'), '{"type":"module"}')
  await writeFile(join(root, 'main.js'), SERVES)
  // This folder contains no packages.
  await cp(toPath(source), join(root, source), { recursive: true })
  const launcher = `
    const { startService } = await import(${JSON.stringify(pathToFileURL(join(root, source, 'stack/launcher.ts')).href)})
    const service = startService({ name: 'thing', main: ${JSON.stringify(join(root, 'main.js'))}, env: {} })
    console.log((await service.started).port)
    await service.stop()`
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', launcher])
  expect((await run).stdout).toBe('7\n')
})

test('the process ends when its parent is killed', async () => {
  const launcher = `
    import { startService } from ${JSON.stringify(toPath('packages/testing/src/stack/startService.ts'))}
    const service = startService({ name: 'child', main: process.env.MAIN, env: {} })
    await service.started
    console.log(service.pid)`
  const MAIN = await writeMain(SERVES.replace('the thing', 'the child'))
  const parent = spawn(process.execPath, ['-C', 'source', '--input-type=module', '-e', launcher], {
    env: { ...process.env, MAIN },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [chunk] = await once(parent.stdout, 'data')
  const pid = Number(String(chunk))
  const ended = once(parent, 'exit')
  parent.kill('SIGKILL')
  await ended
  const isThere = () => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  await expect.poll(isThere).toBe(false)
})
