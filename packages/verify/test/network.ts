import { toCid } from '@countersign/receipt'
import { type FakeIssue, slug, toChain, toProof } from './issues.ts'

export const apiBaseUrl = 'https://api.test'
export const gatewayUrl = 'https://gateway.test'
export const rpcUrl = 'https://rpc.test'

type Body = Uint8Array<ArrayBuffer>
type Answer = Response | Promise<Response>

/** Service, gateway and node behind one `fetch`, in Node and in a browser. Tests replace parts in `blocks`, `rpc` or `routes`. */
export function createFakeNetwork(issue: FakeIssue) {
  const requests: string[] = []
  const all = [issue.bytes, issue.collateral, ...Object.values(issue.blocks ?? {})]
  const blocks = new Map<string, Body>(all.map((block) => [toCid(block), Uint8Array.from(block)]))
  /** By method: a value is the result, a function gets the parameters. */
  const rpc: Record<string, unknown> = toChain(issue)
  /** By the beginning of a URL; the first match responds. */
  const routes: [prefix: string, answer: (url: URL, init: RequestInit) => Answer][] = []

  async function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const url = new URL(String(input))
    requests.push(`${init.method ?? 'GET'} ${url.href}`)
    const route = routes.find(([prefix]) => url.href.startsWith(prefix))
    if (route !== undefined) return route[1](url, init)
    if (url.origin === rpcUrl) return answerRpc(rpc, String(init.body))
    const cid = /^\/ipfs\/([a-z0-9]+)$/.exec(url.pathname)?.[1]
    if (cid !== undefined) return answerBlock(blocks.get(cid))
    if (url.href === `${apiBaseUrl}/proof/${slug}`) return json(toGatewayProof(issue))
    throw new TypeError(`fetch failed: ${url.href}`)
  }

  return { fetch, requests, blocks, rpc, routes }
}

export type FakeNetwork = ReturnType<typeof createFakeNetwork>

/** A complete proof that names the gateway of the fake network. */
export function toGatewayProof(issue: FakeIssue) {
  return toProof(issue, { ipfsUrl: `${gatewayUrl}/ipfs/${issue.cid}` })
}

function answerRpc(results: Readonly<Record<string, unknown>>, body: string): Response {
  const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: unknown[] }
  const result = results[method]
  return json({ jsonrpc: '2.0', id, result: (typeof result === 'function' ? result(...params) : result) ?? null })
}

function answerBlock(block: Body | undefined): Response {
  if (block === undefined) return new Response(null, { status: 404 })
  return new Response(block, { headers: { 'content-type': 'application/vnd.ipld.raw' } })
}

export function json(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
}

export function html(): Response {
  return new Response('<!doctype html><h1>Hello</h1>', { headers: { 'content-type': 'text/html; charset=utf-8' } })
}
