import { Agent, request } from 'node:http'
import { readCode } from '@countersign/service'

export type Call = {
  method?: string
  path: string
  /** Sent in this order, including duplicates. */
  headers?: readonly (readonly [name: string, value: string])[]
  body?: Uint8Array | string
}

export type Answer = {
  status: number
  /** One value for each name; repeated headers are joined. */
  headers: Map<string, string>
  body: string
  ms: number
}

export type Caller = { call(call: Call): Promise<Answer>; close(): void }

/** Sends requests with headers that browsers and `fetch` would not send. Throws if the connection ends without an answer. */
export function createCaller({ port, connections = 16 }: { port: number; connections?: number }): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })

  function call({ method = 'GET', path, headers = [], body }: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const raw = [
        ...['Host', `localhost:${port}`],
        ...headers.flat(),
        ...(bytes === undefined ? [] : ['Content-Length', String(bytes.length)]),
      ]
      const startedAt = performance.now()
      const outgoing = request({ host: '127.0.0.1', port, agent, method, path, headers: raw }, (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const named = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)])
          resolve({
            status: incoming.statusCode ?? 0,
            headers: new Map(named),
            body: Buffer.concat(chunks).toString('utf8'),
            ms: performance.now() - startedAt,
          })
        })
      })
      outgoing.on('error', (error) => {
        // The server closed an idle connection at that moment, so the request never reached it.
        const isStale = outgoing.reusedSocket && readCode(error) === 'ECONNRESET'
        if (isStale) resolve(call({ method, path, headers, ...(body === undefined ? {} : { body }) }))
        else reject(error)
      })
      outgoing.end(bytes)
    })
  }

  return { call, close: () => agent.destroy() }
}
