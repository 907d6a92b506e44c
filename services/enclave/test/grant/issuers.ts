import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type FakeIssuer = {
  /** Its origin, which is also its `iss`. */
  issuer: string
  /** The content of the key set. Tests change it like an issuer that rotates its keys. */
  keys: object[]
  /** Replaces the honest response of a path. */
  answers: Map<string, (request: IncomingMessage, response: ServerResponse) => void>
  /** The requested paths in order. */
  requests: string[]
  goDown(): Promise<void>
  comeBack(): Promise<void>
  /** Restores the initial state with these keys. */
  reset(keys: readonly object[]): Promise<void>
}

export const DISCOVERY_PATH = '/.well-known/openid-configuration'
export const JWKS_PATH = '/keys'

/** The part of an OpenID Connect issuer that the enclave uses, on loopback over HTTP: discovery and keys. */
export async function startFakeIssuer(keys: object[] = []): Promise<FakeIssuer> {
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    fake.requests.push(path)
    const answer = fake.answers.get(path)
    if (answer) answer(request, response)
    else if (path === DISCOVERY_PATH) {
      sendJson(response, { issuer: fake.issuer, jwks_uri: fake.issuer + JWKS_PATH })
    } else if (path === JWKS_PATH) sendJson(response, { keys: fake.keys })
    else response.writeHead(404).end()
  })

  async function listen(port: number): Promise<number> {
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }
  const port = await listen(0)

  const fake: FakeIssuer = {
    issuer: `http://127.0.0.1:${port}`,
    keys,
    answers: new Map(),
    requests: [],
    async goDown() {
      if (!server.listening) return
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
    async comeBack() {
      await listen(port)
    },
    async reset(keys) {
      fake.keys = [...keys]
      fake.answers.clear()
      fake.requests.length = 0
      if (!server.listening) await fake.comeBack()
    },
  }
  return fake
}

export function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(value))
}

/** A clock that tests control. */
export function createFakeClock(startMs: number): { now(): number; advance(ms: number): void } {
  let now = startMs
  return {
    now: () => now,
    advance(ms) {
      now += ms
    },
  }
}
