import { once } from 'node:events'
import { connect } from 'node:net'

/** One connection that sends prepared requests and waits for each whole answer. */
export type Caller = { call(request: Buffer): Promise<string>; close(): void }

/** The bytes of a POST. */
export function toPost(path: string, headers: Record<string, string>, body: string): Buffer {
  const lines = Object.entries({ host: 'localhost', ...headers, 'content-length': String(Buffer.byteLength(body)) })
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.map((line) => line.join(': ')).join('\r\n')}\r\n\r\n${body}`)
}

/** The bytes of a GET. */
export function toGet(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
}

/** A client library would cost more than what is measured, on the same two cores; so this reads just enough HTTP. */
export async function connectCaller(url: string): Promise<Caller> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  await once(socket, 'connect')
  let received = ''
  /** Of the whole answer, once its head is there. */
  let length: number | undefined
  let resolve: (answer: string) => void = () => {}
  let reject: (error: Error) => void = () => {}
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    received += chunk
    length ??= readLength(received)
    if (length === undefined || received.length < length) return
    const answer = received
    received = ''
    length = undefined
    resolve(answer)
  })
  socket.on('error', (error) => reject(error))
  socket.on('close', () => reject(new Error('the connection was closed')))
  return {
    call: (request) =>
      new Promise((onAnswer, onError) => {
        resolve = onAnswer
        reject = onError
        socket.write(request)
      }),
    close() {
      reject = () => {}
      socket.destroy()
    },
  }
}

function readLength(received: string): number | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, end))?.[1]
  if (length === undefined) throw new Error('an answer without a length cannot be read here')
  return end + 4 + Number(length)
}
/** Where each connection takes its next request from. */
export type Requests = (connection: number) => Buffer

/**
 * How long answers took, and how many there were. The rate is that of callers who always wait for one answer, by their mean wait
 * (Little's law): where answers come by batches, or one in 50 ms, a count within a second depends on where it ends. The first
 * answer of each caller is in the count alone: those who ask first find no queue, and would make the rate of short slices too high.
 */
export type Answered = { rate: number; latencies: number[]; count: number }

/** More may not be let in at once: who is not tries again after a second, and so long the machine has nothing to do. */
const CONNECT_TOGETHER = 128

/** Each connection asks again as soon as it is answered, until the time is over; then all wait for their last answer. */
export async function applyLoad(parameters: {
  url: string
  connections: number
  sliceMs: number
  next: Requests
}): Promise<Answered> {
  const { url, connections, sliceMs, next } = parameters
  const callers: Caller[] = []
  while (callers.length < connections) {
    const count = Math.min(CONNECT_TOGETHER, connections - callers.length)
    callers.push(...(await Promise.all(Array.from({ length: count }, () => connectCaller(url)))))
  }
  const latencies: number[] = []
  let count = 0
  let isOver = false
  const all = callers.map(async (caller, connection) => {
    for (let answers = 0; !isOver || answers < 2; answers++) {
      const sentAt = performance.now()
      const answer = await caller.call(next(connection))
      if (!answer.startsWith('HTTP/1.1 200')) {
        const body = answer.slice(answer.indexOf('\r\n\r\n')).trim()
        throw new Error(`not answered: ${answer.slice(0, 12)} ${body.slice(0, 400)}`)
      }
      count++
      if (answers > 0) latencies.push(performance.now() - sentAt)
    }
  })
  const timer = new Promise((resolve) => setTimeout(resolve, sliceMs))
  try {
    // A caller that fails ends it at once.
    await Promise.race([timer, Promise.all(all)])
    isOver = true
    await Promise.all(all)
    const waited = latencies.reduce((sum, latency) => sum + latency, 0)
    return { rate: (1000 * connections * latencies.length) / waited, latencies, count }
  } finally {
    isOver = true
    for (const caller of callers) caller.close()
  }
}
