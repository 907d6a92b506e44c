import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export type Loopback = { url: string; host: string; requests: string[] }

/** A server on 127.0.0.1 that may misbehave; it ends with the test. `requests` has the method and path of each call. */
export async function startLoopback(listener: RequestListener): Promise<Loopback> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => stop(server))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, requests }
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

/** A port without a listener: one that was just released. */
export async function findClosedUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await stop(server)
  return `http://127.0.0.1:${port}`
}

/** Answers `/ipfs/<cid>` with these blocks. */
export function serveBlocks(blocks: Readonly<Record<string, Uint8Array>>): RequestListener {
  return (request, response) => {
    const cid = /^\/ipfs\/([a-z2-7]+)\?format=raw$/.exec(request.url ?? '')?.[1]
    const block = cid === undefined ? undefined : blocks[cid]
    if (block === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': 'application/vnd.ipld.raw' }).end(block)
  }
}

/** Answers JSON-RPC calls by method: a value is the result, a function gets the parameters. */
export function serveRpc(results: Readonly<Record<string, unknown>>): RequestListener {
  return (request, response) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const { id, method, params } = JSON.parse(text)
      const result = results[method]
      const value = typeof result === 'function' ? result(...params) : result
      const answer =
        method in results
          ? { jsonrpc: '2.0', id, result: value }
          : { jsonrpc: '2.0', id, error: { code: -32601, message: 'the method does not exist' } }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    })
  }
}
