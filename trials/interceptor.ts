import { createServer, type IncomingHttpHeaders, request as send } from 'node:http'
import { readBounded } from '@countersign/protocol'
import { listen } from '@countersign/testing/stack'

export type Asked = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer }
export type Answer = { status: number; type: string; body: Buffer }

/** Answers a call as it likes, with or without asking the one behind it. Undefined cuts the caller off. */
export type Handle = (asked: Asked, forward: () => Promise<Answer>) => Promise<Answer | undefined>

const MAX_BYTES = 64 * 1024 * 1024

/** Stands before a service, and may answer in its place. */
export async function startInterceptor(
  target: string,
  handle: Handle,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    try {
      const { method = 'GET', url: path = '/', headers } = request
      const body = Buffer.from(await readBounded(request, MAX_BYTES))
      const asked = { method, path, headers, body }
      const answer = await handle(asked, () => forward(target, asked))
      if (answer === undefined) return void request.socket.resetAndDestroy()
      const length = { 'content-type': answer.type, 'content-length': answer.body.length }
      response.writeHead(answer.status, length).end(answer.body)
    } catch {
      // The one behind it is gone.
      request.socket.resetAndDestroy()
    }
  })
  return listen(server)
}

function forward(target: string, { method, path, headers, body }: Asked): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onward = send(new URL(path, target), { method, headers }, async (answer) => {
      try {
        const read = Buffer.from(await readBounded(answer, MAX_BYTES))
        resolve({ status: answer.statusCode ?? 502, type: answer.headers['content-type'] ?? '', body: read })
      } catch (error) {
        reject(error)
      }
    })
    onward.on('error', reject)
    onward.end(body)
  })
}
