import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import type { LogLine } from './log.ts'
import { ConfigError } from './readEnv.ts'
import { type RunningService, runService } from './runService.ts'

function createFakes() {
  const lines: string[] = []
  const write = (level: string) => (line: LogLine) => void lines.push(`${level} ${Object.values(line).join(': ')}`)
  const emitter = new EventEmitter()
  const process = Object.assign(emitter, {
    exitCode: undefined as number | undefined,
    exit(code: number) {
      process.exitCode = code
    },
  })
  const log = { info: write('info'), warn: write('warn'), error: write('error') }
  return { deps: { log, process: process as never }, lines, process }
}

const settle = () => new Promise(setImmediate)

test.each(['SIGTERM', 'SIGINT'])('%s stops the service', async (signal) => {
  const { deps, lines, process } = createFakes()
  const stopped: string[] = []
  await runService(deps, async () => ({ stop: async (by) => void stopped.push(by) }))
  process.emit(signal)
  await settle()
  expect(stopped).toEqual([signal])
  expect(lines).toEqual([])
  expect(process.exitCode).toBeUndefined()
})

test('two signals stop it once', async () => {
  const { deps, process } = createFakes()
  const stopped: string[] = []
  await runService(deps, async () => ({ stop: async (by) => void stopped.push(by) }))
  process.emit('SIGTERM')
  process.emit('SIGINT')
  await settle()
  expect(stopped).toEqual(['SIGTERM'])
})

test('ignores further signals while it stops, so pending calls finish', async () => {
  const { deps, process } = createFakes()
  const { promise, resolve } = Promise.withResolvers<void>()
  const stopped: string[] = []
  await runService(deps, async () => ({
    stop: (by) => {
      stopped.push(by)
      return promise
    },
  }))
  // Without a listener, the signal would end a real process.
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGINT', 'SIGTERM', 'SIGINT']) expect(process.emit(signal)).toBe(true)
  await settle()
  expect(stopped).toEqual(['SIGTERM'])
  resolve()
  await settle()
  expect(process.emit('SIGTERM')).toBe(true)
  expect(process.exitCode).toBeUndefined()
})

test('a signal during the start stops it when it has started', async () => {
  const { deps, process } = createFakes()
  const { promise, resolve } = Promise.withResolvers<RunningService>()
  const stopped: string[] = []
  const run = runService(deps, () => promise)
  process.emit('SIGTERM')
  await settle()
  expect(stopped).toEqual([])
  resolve({ stop: async (by) => void stopped.push(by) })
  await run
  await settle()
  expect(stopped).toEqual(['SIGTERM'])
})

test('a service that cannot start reports why and ends with 1, with or without a signal before', async () => {
  for (const signals of [[], ['SIGTERM']]) {
    const { deps, lines, process } = createFakes()
    const { promise, reject } = Promise.withResolvers<RunningService>()
    const run = runService(deps, () => promise)
    for (const signal of signals) process.emit(signal)
    reject(new Error('no database'))
    await run
    await settle()
    expect(lines).toEqual(['error Could not start: no database'])
    expect(process.exitCode).toBe(1)
  }
})

test('a service that throws synchronously is reported too', async () => {
  const { deps, lines, process } = createFakes()
  await runService(deps, () => {
    throw new Error('no database')
  })
  expect(lines).toEqual(['error Could not start: no database'])
  expect(process.exitCode).toBe(1)
})

test('reports the code of a cause, but not its message', async () => {
  const { deps, lines } = createFakes()
  const cause = Object.assign(new Error('password authentication failed for user "x"'), { code: '28P01' })
  await runService(deps, () => Promise.reject(new Error('the database is unavailable', { cause })))
  expect(lines).toEqual(['error Could not start: the database is unavailable (28P01)'])
})

test('reports faults of the configuration one by one', async () => {
  const { deps, lines, process } = createFakes()
  await runService(deps, () =>
    Promise.reject(new ConfigError(['PORT', 'HOST'].map((setting) => ({ setting, problem: 'odd', fix: '' })))),
  )
  expect(lines).toEqual(['error Refused to start: PORT: odd', 'error Refused to start: HOST: odd'])
  expect(process.exitCode).toBe(1)
})

test('a service that cannot continue reports why and ends with 1', async () => {
  const { deps, lines, process } = createFakes()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  await runService(deps, async () => ({ stop: async () => {}, ended }))
  expect(lines).toEqual([])
  reject(new Error('the key worker has ended'))
  await settle()
  expect(lines).toEqual(['error Could not go on: the key worker has ended'])
  expect(process.exitCode).toBe(1)
})

test('a service that fails to stop reports it and sets the exit code 1', async () => {
  const { deps, lines, process } = createFakes()
  await runService(deps, async () => ({ stop: () => Promise.reject(new Error('stuck')) }))
  process.emit('SIGTERM')
  await settle()
  expect(lines).toEqual(['error Could not stop in order: stuck'])
  expect(process.exitCode).toBe(1)
})

test('names each reason if several parts fail to stop', async () => {
  const { deps, lines, process } = createFakes()
  const failures = [new Error('the store is stuck'), new AggregateError([new Error('one'), new Error('two')])]
  const stop = () => Promise.reject(new AggregateError(failures, '2 parts could not be stopped'))
  await runService(deps, async () => ({ stop }))
  process.emit('SIGTERM')
  await settle()
  expect(lines).toEqual(['error Could not stop in order: 2 parts could not be stopped: the store is stuck; one; two'])
  expect(process.exitCode).toBe(1)
})
