import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')

/** A service with one call, which ends when its input says so. */
const SERVICE = `
import { createServer } from 'node:http'
import { runService } from '@countersign/service'
const log = { info: console.log, warn: console.log, error: console.log }
const server = createServer((_, response) => {
  console.log('called')
  process.stdin.once('data', () => response.end('answered'))
})
await runService({ log }, async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  console.log('port ' + server.address().port)
  return {
    async stop() {
      console.log('stopping')
      await new Promise((resolve) => server.close(resolve))
      process.stdin.destroy()
    },
  }
})
`

/** The command that `npm run` uses to start a service. It reports when it has forwarded a signal. */
const NPM_RUN = `
import { runCommand } from './scripts/bootstrap/runCommand.mjs'
const ended = runCommand({ path: process.execPath }, process.execPath, process.argv.slice(1))
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => console.log('passed ' + signal))
process.exit(await ended)
`

const direct = ['-C', 'source', '--input-type=module', '-e', SERVICE]

let child: ChildProcess | undefined
afterEach(() => void child?.kill('SIGKILL'))

test.each([
  ['started by itself', direct, false],
  ['started as npm run does', ['--input-type=module', '-e', NPM_RUN, '--', ...direct], true],
])('signals to the process group of a service %s do not cut off the pending call', async (_, args, isPassedOn) => {
  // Detached, so that it has a separate process group.
  const started = spawn(process.execPath, args, { cwd: root, detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  child = started
  const lines = createInterface({ input: started.stdout })[Symbol.asyncIterator]()
  const next = async () => {
    const { done, value } = await lines.next()
    if (done) throw new Error('it ended')
    return value
  }
  const untilSaid = async (words: readonly string[]) => {
    const missing = new Set(words)
    while (missing.size > 0) missing.delete(await next())
  }
  const ended = once(started, 'exit')
  const port = /^port (\d+)$/.exec(await next())?.[1]
  const answer = fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }).then((response) =>
    response.text(),
  )
  expect(await next()).toBe('called')
  const signalGroup = (signal: 'SIGTERM' | 'SIGINT') => process.kill(-(started.pid ?? 0), signal)
  signalGroup('SIGTERM')
  await untilSaid(['stopping', ...(isPassedOn ? ['passed SIGTERM'] : [])])
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGINT', 'SIGINT'] as const) signalGroup(signal)
  // A signal that is forwarded late would reach a process that has finished and handles none.
  if (isPassedOn) await untilSaid(['passed SIGINT'])
  started.stdin.write('go')
  expect(await answer).toBe('answered')
  expect((await ended)[0]).toBe(0)
})
