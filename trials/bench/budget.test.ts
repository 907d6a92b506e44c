import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openInspector } from '../openInspector.ts'
import type { Budget } from './budget/measureBudgets.ts'
import { profileThreads } from './budget/profileThreads.ts'
import { readThreads, toSpent } from './budget/readThreads.ts'
import { ownCode, sharedCode, stages } from './budget/stages.ts'
import { toBudgetReport } from './budget/toBudgetReport.ts'
import { type Profile, toShares } from './budget/toShares.ts'

const ROOT = resolve(import.meta.dirname, '../..')

describe('the table of stages', () => {
  const all = [...ownCode, ...sharedCode].flatMap(([, beginnings]) => beginnings)

  test.each(all.filter((each) => !each.startsWith('node:')))('%s is there', async (beginning) => {
    const [path = '', name] = beginning.split('#')
    const folder = path.endsWith('/') ? path : dirname(path)
    const isFolder = path.endsWith('/')
    const entries = await readdir(join(ROOT, folder), {
      withFileTypes: true,
      recursive: isFolder && name !== undefined,
    })
    const files = entries
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
      .filter((file) => file.startsWith(path))
    expect(files).not.toEqual([])
    if (name === undefined) return
    const code = files.filter((file) => /\.[cm]?[jt]s$/.test(file)).map((file) => readFile(join(ROOT, file), 'utf8'))
    expect((await Promise.all(code)).join('\n')).toMatch(new RegExp(`\\b(function|const|let|async) ${name}`))
  })

  test('what is said of Node is about something that it has', () => {
    const names = all.filter((each) => each.startsWith('node:')).map((each) => each.split('#')[0] ?? '')
    expect(
      names.filter((name) => !name.endsWith('_') && !name.startsWith('node:internal/') && !isBuiltin(name)),
    ).toEqual([])
  })

  test('says each thing once', () => {
    expect(new Set(all).size).toBe(all.length)
  })
})

describe('toShares', () => {
  const file = (path: string) => `file:///checkout/${path}`

  /** Stacks from the outside in, as `function url`, and the time in each. */
  function toProfile(
    stacks: readonly (readonly [frames: readonly [name: string, url: string][], microseconds: number])[],
  ): Profile {
    const nodes = [{ id: 0, callFrame: { functionName: '(root)', url: '' }, children: [] as number[] }]
    const samples: number[] = []
    const timeDeltas: number[] = []
    for (const [frames, microseconds] of stacks) {
      let parent = 0
      for (const [functionName, url] of frames) {
        const id = nodes.length
        nodes.push({ id, callFrame: { functionName, url }, children: [] })
        nodes[parent]?.children.push(id)
        parent = id
      }
      samples.push(parent)
      timeDeltas.push(microseconds)
    }
    return { nodes, samples, timeDeltas }
  }

  const share = (...stacks: Parameters<typeof toProfile>[0]) => toShares([toProfile(stacks)], '/checkout')

  test('the innermost of our own functions decides, not the library that it calls', () => {
    const { stages, others } = share([
      [
        ['record', file('services/coordinator/src/http/middleware.ts')],
        ['find', file('services/coordinator/src/sign/findSigner.ts')],
        ['query', file('services/coordinator/src/store/openDatabase.ts')],
        ['write', 'file:///elsewhere/node_modules/pg/lib/connection.js'],
        ['writeBuffer', 'node:net'],
      ],
      7,
    ])
    expect([...stages]).toEqual([['lookup', 1]])
    expect([...others]).toEqual([])
  })

  test('the longest beginning decides, and then the function', () => {
    const server = file('services/enclave/src/server.ts')
    const { stages } = share(
      [[['parseSignDigestRequest', file('services/coordinator/src/http/parseSignDigestRequest.ts')]], 5],
      [[['send', server]], 3],
      [[['start', server]], 2],
    )
    expect(Object.fromEntries(stages)).toEqual({ parse: 0.5, answer: 0.3, HTTP: 0.2 })
  })

  test('without one of ours, libraries and Node decide; garbage is what the profiler says', () => {
    const { stages } = share(
      [
        [
          ['onStreamRead', 'node:internal/stream_base_commons'],
          ['parse', 'file:///x/node_modules/pg-protocol/dist/parser.js'],
        ],
        4,
      ],
      [[['parserOnHeadersComplete', 'node:_http_common']], 3],
      [
        [
          ['end', 'node:_http_outgoing'],
          ['write', 'node:net'],
          ['writeLatin1String', ''],
        ],
        2,
      ],
      [[['(garbage collector)', '']], 5],
      [[['(program)', '']], 1],
      [[['processTimers', 'node:internal/timers']], 5],
    )
    expect(Object.fromEntries(stages)).toEqual({
      database: 0.2,
      HTTP: 0.15,
      answer: 0.1,
      'garbage collection': 0.25,
      runtime: 0.3,
    })
  })

  test('idle time does not count, and what nobody knows is named', () => {
    const { stages, others } = share(
      [[['(idle)', '']], 90],
      [[['guess', file('services/coordinator/src/unknown.ts')]], 6],
      [[['hash', 'file:///x/node_modules/unheard/index.js']], 4],
    )
    expect([...stages]).toEqual([['other', 1]])
    expect(Object.fromEntries(others)).toEqual({
      'services/coordinator/src/unknown.ts guess': 0.6,
      'node_modules/unheard/index.js hash': 0.4,
    })
  })

  test('a thread that did nothing has no shares', () => {
    expect(toShares([{ nodes: [] }], '/checkout')).toEqual({ stages: new Map(), others: new Map() })
    expect(toShares([], '/checkout')).toEqual({ stages: new Map(), others: new Map() })
  })
})

describe('threads', () => {
  test('those of this process are read, with their time', async () => {
    const threads = await readThreads([process.pid])
    expect(new Set(threads.map(({ kind }) => kind))).toContain('V8')
    expect(threads.find(({ id }) => id === `${process.pid} ${process.pid}`)?.ms).toBeGreaterThan(0)
  })

  test('a process that is not there has none', async () => {
    expect(await readThreads([2 ** 22 + 1])).toEqual([])
  })

  test('what was spent is counted by thread, of one kind or of all', () => {
    const at = (id: string, ms: number, kind: 'main thread' | 'libuv' = 'main thread') => ({ id, kind, ms })
    const before = [at('1 1', 100), at('1 2', 50, 'libuv'), at('2 2', 900)]
    const after = [at('1 1', 130), at('1 2', 60, 'libuv'), at('3 3', 5)]
    expect(toSpent(before, after)).toBe(45)
    expect(toSpent(before, after, 'libuv')).toBe(10)
    expect(toSpent(before, after, 'V8')).toBe(0)
  })
})

describe('profileThreads', () => {
  const PROGRAM = `
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    function work() { const end = Date.now() + 20; while (Date.now() < end); }
    if (isMainThread) {
      const worker = new Worker(process.argv[1], { eval: true, argv: [process.argv[1]] })
      worker.on('message', () => { work(); console.log('worked'); worker.postMessage('') })
      worker.once('online', () => worker.postMessage(''))
    } else parentPort.on('message', () => { work(); parentPort.postMessage('') })`

  test('profiles the main thread and the workers of a process', async () => {
    const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', '-e', PROGRAM, PROGRAM])
    onTestFinished(() => void child.kill('SIGKILL'))
    const [url] = await new Promise<RegExpExecArray>((found) =>
      createInterface({ input: child.stderr }).on('line', (line) => {
        const match = /ws:\S+/.exec(line)
        if (match !== null) found(match)
      }),
    )
    await once(child.stdout, 'data')
    const inspector = await openInspector(url)
    const threads = await profileThreads(inspector, async () => {
      for (let line = 0; line < 3; line++) await once(child.stdout, 'data')
    })
    inspector.close()
    expect(threads.map(({ isMain }) => isMain)).toEqual([true, false])
    for (const { profile } of threads) expect(toShares([profile], ROOT).stages).not.toEqual(new Map())
  })

  test('a process that ends meanwhile is an error', async () => {
    const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', '-e', 'process.stdin.resume()'])
    onTestFinished(() => void child.kill('SIGKILL'))
    const [text] = (await once(child.stderr, 'data')) as [Buffer]
    const inspector = await openInspector(/ws:\S+/.exec(text.toString())?.[0] ?? '')
    await expect(profileThreads(inspector, async () => child.kill('SIGKILL'))).rejects.toThrow(
      'the inspector was closed',
    )
  })
})

describe('toBudgetReport', () => {
  const toBudget = (factor: number): Budget => ({
    threads: [
      {
        name: 'coordinator, main thread',
        ms: 0.4 * factor,
        parts: [
          { stage: 'HTTP', ms: 0.3 * factor },
          { stage: 'other', ms: 0.1 * factor },
        ],
      },
      { name: 'PostgreSQL', ms: 0.2, parts: [{ stage: 'database', ms: 0.2 }] },
      { name: 'enclave, libuv', ms: 0.0001, parts: [{ stage: 'checks', ms: 0.0001 }] },
    ],
    others: [{ name: 'services/coordinator/src/unknown.ts guess', ms: 0.1 * factor }],
  })

  test('has all, each thread, and its stages where there are several', () => {
    const { rows, notes, stacks } = toBudgetReport(toBudget(1), undefined, 'On a machine.')
    expect(rows.map(({ name }) => name)).toEqual([
      'all',
      'coordinator, main thread',
      'coordinator, main thread: HTTP',
      'coordinator, main thread: other',
      'PostgreSQL',
    ])
    expect(rows[0]?.value).toBeCloseTo(0.6001)
    expect(rows.flatMap(({ ratios = [] }) => ratios)).toEqual([])
    expect(notes?.join()).toContain('`services/coordinator/src/unknown.ts guess` 0.1')
    expect(stacks?.map(({ name }) => name)).toEqual(['coordinator, main thread', 'PostgreSQL'])
  })

  test('has the ratio to another checkout beside each figure', () => {
    const { rows, stacks } = toBudgetReport(toBudget(1), toBudget(2), 'On a machine.')
    const toRatio = (name: string) => rows.find((row) => row.name === name)?.ratios?.[0]
    expect(toRatio('coordinator, main thread: HTTP')).toEqual({ value: 0.5, to: 'the other checkout' })
    expect(toRatio('PostgreSQL')?.value).toBe(1)
    expect(stacks).toHaveLength(4)
    expect(
      stacks
        ?.flatMap(({ parts }) => parts.map(({ name }) => name))
        .every((name) => stages.some((stage) => stage === name)),
    ).toBe(true)
  })

  test('what the other checkout does not have has no ratio', () => {
    const { rows } = toBudgetReport(toBudget(1), { threads: [], others: [] }, 'On a machine.')
    expect(rows.flatMap(({ ratios = [] }) => ratios)).toEqual([])
  })
})
