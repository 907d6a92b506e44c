import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { closeServer, trackAnswers } from './drainServer.ts'

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

const REQUEST = 'GET / HTTP/1.1\r\nHost: service.example\r\n\r\n'

async function listen(answer = (response: ServerResponse) => void response.end('answered')) {
  const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => server.closeAllConnections())
  return { server, port: (server.address() as AddressInfo).port }
}

test('responds to a request that was sent on an idle connection just before the stop', async () => {
  const { server, port } = await listen()
  const socket = connect(port, '127.0.0.1')
  stops.push(() => socket.destroy())
  let text = ''
  socket.on('data', (chunk) => (text += chunk))
  const ended = once(socket, 'close')
  socket.write(REQUEST)
  await once(socket, 'data')
  text = ''
  // When this returns, the kernel has the bytes and the server has not read them.
  socket.write(REQUEST)
  const closed = closeServer(server)
  await ended
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close.*answered$/s)
  await closed
})

/** Connects and sends a request while the main thread waits, so that its server has not accepted the connection when the stop begins. */
const CALLER = `
const { connect } = require('node:net')
const { parentPort, workerData } = require('node:worker_threads')
let text = ''
const socket = connect(workerData.port, '127.0.0.1', () => {
  socket.write(workerData.request, () => {
    Atomics.store(workerData.sent, 0, 1)
    Atomics.notify(workerData.sent, 0)
  })
})
socket.on('data', (chunk) => (text += chunk))
socket.on('error', (error) => (text += error.code))
socket.on('close', () => parentPort.postMessage(text))
`

test('responds to a request on a connection that the server has not accepted when the stop begins', async () => {
  const { server, port } = await listen()
  const sent = new Int32Array(new SharedArrayBuffer(4))
  const caller = new Worker(CALLER, { eval: true, workerData: { port, request: REQUEST, sent } })
  stops.push(() => caller.terminate())
  const answered = once(caller, 'message')
  await once(caller, 'online')
  Atomics.wait(sent, 0, 0)
  const closed = closeServer(server)
  expect((await answered)[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close.*answered$/s)
  await closed
})

test('ends the connection of a pending response when the stop begins', async () => {
  const begun = Promise.withResolvers<ServerResponse>()
  const { server, port } = await listen((response) => void begun.resolve(response))
  const answers = trackAnswers(server)
  const socket = connect(port, '127.0.0.1')
  stops.push(() => socket.destroy())
  let text = ''
  socket.on('data', (chunk) => (text += chunk))
  const ended = once(socket, 'close')
  socket.write(REQUEST)
  const response = await begun.promise
  expect(answers.size).toBe(1)
  const closed = closeServer(server, answers)
  response.end('answered')
  await ended
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close.*answered$/s)
  await closed
  expect(answers.size).toBe(0)
})

test('closes an idle connection, and accepts no new one', async () => {
  const { server, port } = await listen()
  const socket = connect(port, '127.0.0.1')
  const failures: unknown[] = []
  socket.on('error', (error) => failures.push(error))
  socket.write(REQUEST)
  await once(socket, 'data')
  const ended = once(socket, 'end')
  socket.resume()
  await closeServer(server)
  await ended
  expect(failures).toEqual([])
  await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
