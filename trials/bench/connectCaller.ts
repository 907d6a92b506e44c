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
