import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'
import { parseInspectorUrl } from '../openInspector.ts'
import { measureGrowth } from './memory.ts'
import { readHeapMib } from './readHeapMib.ts'

const children: ReturnType<typeof spawn>[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** A process that runs a script, once it can be asked. */
async function run(name: string, script: string) {
  const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', '-e', script], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.push(child)
  for await (const line of createInterface({ input: child.stderr })) {
    const inspectorUrl = parseInspectorUrl(line)
    if (inspectorUrl !== undefined) return { name, pid: () => child.pid, inspectorUrl }
  }
  throw new Error('it ended before it could be asked')
}

/** By the clock, so that one that had to wait for the processor has kept as much. */
const KEEPS = `const kept = []; const began = Date.now(); setInterval(() => {
  while (kept.length < (Date.now() - began) / 4) kept.push(new Array(20_000).fill(kept.length + 0.5))
}, 2)`
/** With something that it keeps all the time: beside it, compiled code is little. */
const DROPS = `const kept = new Array(4_000_000).fill(0.5); let last; setInterval(() => { last = new Array(20_000).fill(0.5) }, 2)`

test('a process that keeps what it makes has grown, in heap and resident memory, and one that drops it has not', async () => {
  const watched = await Promise.all([run('keeps', KEEPS), run('drops', DROPS)])
  const [keeps, drops] = await measureGrowth(watched, 4_000)
  if (keeps === undefined || drops === undefined) throw new Error('not measured')
  expect(keeps.late.heap).toBeGreaterThan(1.5 * keeps.early.heap)
  expect(keeps.late.resident).toBeGreaterThan(1.1 * keeps.early.resident)
  expect(drops.late.heap).toBeLessThan(1.1 * drops.early.heap)
})

test('a buffer counts, though it is outside of the heap', async () => {
  const { inspectorUrl } = await run(
    'buffers',
    'globalThis.kept = Buffer.alloc(64 * 2 ** 20, 1); setInterval(() => {}, 1000)',
  )
  expect(await readHeapMib(inspectorUrl)).toBeGreaterThan(64)
})

test('what a worker keeps counts, and what it dropped is collected', async () => {
  const worker = (script: string) =>
    run('worker', `new (require('node:worker_threads').Worker)(${JSON.stringify(script)}, { eval: true })`)
  const keeps = await worker('globalThis.kept = new Array(4_000_000).fill(0.5); setInterval(() => {}, 1000)')
  const drops = await worker('new Array(4_000_000).fill(0.5); setInterval(() => {}, 1000)')
  await expect.poll(() => readHeapMib(keeps.inspectorUrl)).toBeGreaterThan(30)
  expect(await readHeapMib(drops.inspectorUrl)).toBeLessThan(30)
})

test('a process that is gone is an error, not a figure', async () => {
  const { inspectorUrl, pid } = await run('gone', 'setInterval(() => {}, 1000)')
  process.kill(pid() ?? 0, 'SIGKILL')
  await expect(readHeapMib(inspectorUrl)).rejects.toThrow('inspector')
  await expect(readHeapMib('ws://127.0.0.1:1/')).rejects.toThrow('inspector')
})

test('another line is no address', () => {
  expect(parseInspectorUrl('{"msg":"Debugger listening on ws://127.0.0.1:1/x"}')).toBeUndefined()
  expect(parseInspectorUrl('For help, see: https://nodejs.org/en/docs/inspector')).toBeUndefined()
})
