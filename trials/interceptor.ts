import { createServer, type IncomingHttpHeaders, request as send } from 'node:http'
import { readBounded } from '@countersign/protocol'
import { listen } from '@countersign/testing/stack'

export type InterceptedRequest = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer }
export type Answer = { status: number; type: string; body: Buffer }

/** Answers a request, with or without forwarding it. Undefined resets the caller's connection. */
export type Handle = (incoming: InterceptedRequest, forward: () => Promise<Answer>) => Promise<Answer | undefined>

const MAX_BYTES = 64 * 1024 * 1024

/** A proxy in front of a service that can answer in its place. */
export async function startInterceptor(
  target: string,
  handle: Handle,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    try {
      const { method = 'GET', url: path = '/', headers } = request
      const body = Buffer.from(await readBounded(request, MAX_BYTES))
      const incoming = { method, path, headers, body }
      const answer = await handle(incoming, () => forward(target, incoming))
      if (answer === undefined) return void request.socket.resetAndDestroy()
      const length = { 'content-type': answer.type, 'content-length': answer.body.length }
      response.writeHead(answer.status, length).end(answer.body)
    } catch {
      // The service is down.
      request.socket.resetAndDestroy()
    }
  })
  return listen(server)
}

function forward(target: string, { method, path, headers, body }: InterceptedRequest): Promise<Answer> {
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
