import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { endThread } from './thread.ts'

/** Returns each number. */
const code = `
const { serveThread } = await import(${JSON.stringify(new URL('./thread.ts', import.meta.url).href)})
const { parentPort } = await import('node:worker_threads')
serveThread((number) => parentPort.postMessage(number))`
const start = () => new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`))

test('a thread reports that it is ready, processes its queued messages before the end, and ends', async () => {
  const worker = start()
  expect(await once(worker, 'message')).toEqual(['ready'])
  const answers: unknown[] = []
  worker.on('message', (answer) => answers.push(answer))
  for (const number of [1, 2, 3]) worker.postMessage(number)
  const ended = endThread(worker)
  worker.postMessage(4)
  await ended
  expect(answers).toEqual([1, 2, 3])
})

test('ends threads that have not started, get two requests, or have already ended', async () => {
  const worker = start()
  await Promise.all([endThread(worker), endThread(worker)])
  await endThread(worker)
  expect(worker.threadId).toBe(-1)
})
