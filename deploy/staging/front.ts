import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  createPasswordGuard,
  createTrustedProxies,
  MOCK,
  MOCK_SENTENCE,
  type PasswordGuard,
  readList,
  SILICON_HEADER,
  type TrustedProxies,
} from '@countersign/service'
import { runWebServer, type WebServerParameters } from '../web/server.ts'
import { forward } from './forward.ts'
import { readStagingPassword } from './readStagingPassword.ts'
import { type Route, toRoute } from './toRoute.ts'

/**
 * The front of a staging: one address for app, API, chain and IPFS node, so that one cookie opens all of it. It asks for the password before
 * anything else, and marks every page. The coordinators behind it ask for the password too.
 */

/** Above the page, and there still when the visitor scrolls. The app's own script costs nothing more for it. */
const STYLE = `.mock-strip{position:sticky;top:0;z-index:1000;margin:0;padding:.4rem 1rem;text-align:center;font:600 .9rem/1.4 system-ui,sans-serif;color:#000;background:#ffd24d;border-bottom:2px solid #000}
@media print{.mock-strip{position:static;border:2px solid #000}}
`

export type FrontParameters = {
  guard: PasswordGuard
  upstreams: Readonly<Record<Exclude<Route, 'web'>, readonly string[]>>
  /** Proxies before this one: what they say about a caller's address is handed on. */
  isTrusted: TrustedProxies
}

export function createFront({ guard, upstreams, isTrusted }: FrontParameters): Partial<WebServerParameters> {
  return {
    extraHeaders: { [SILICON_HEADER]: MOCK },
    extraFiles: { '/mock.css': STYLE },
    toPage: (html) =>
      html
        .replace('</head>', '<link rel="stylesheet" href="/mock.css"></head>')
        .replace('<title>', '<title>MOCK ')
        .replace('<body>', `<body><p class="mock-strip" role="note">${MOCK_SENTENCE}</p>`),
    intercept(request, response) {
      const { url = '/', headers } = request
      const path = url.replace(/[?#].*$/s, '')
      const route = toRoute({ path, accept: headers.accept })
      // The API judges passwords, and counts wrong ones; here the cookie alone counts, which nobody guesses.
      if (route !== 'api' && guard.check({ authorization: undefined, cookie: headers.cookie }) !== 'admitted') {
        askForPassword(request, response)
        return true
      }
      if (route === 'web') return false
      const inner = route === 'chain' ? { path: url.slice('/rpc'.length).replace(/^(?!\/)/, '/') } : {}
      forward(request, response, { targets: upstreams[route], withCredentials: route === 'api', isTrusted, ...inner })
      return true
    },
  }
}

/** A person is led to the page that asks for it, and from there back. */
function askForPassword({ url = '/', headers }: IncomingMessage, response: ServerResponse): void {
  const isPage = (headers.accept ?? '').includes('text/html')
  const location = `/staging?return_to=${encodeURIComponent(url)}`
  response.writeHead(isPage ? 303 : 401, { 'cache-control': 'no-store', ...(isPage && { location }) }).end()
}

function readUpstreams(): FrontParameters['upstreams'] {
  const read = (name: string, fallback: string) => {
    const urls = (process.env[name] || fallback).split(',')
    for (const url of urls) {
      if (!URL.canParse(url) || !url.startsWith('http:')) throw new Error(`${name}: expected http URLs`)
    }
    return urls
  }
  return {
    api: read('API_UPSTREAM', 'http://127.0.0.1:8081'),
    chain: read('CHAIN_UPSTREAM', 'http://127.0.0.1:8545'),
    ipfs: read('IPFS_UPSTREAM', 'http://127.0.0.1:8080'),
  }
}

if (import.meta.main) {
  runWebServer(() => {
    const guard = createPasswordGuard(readStagingPassword())
    const isTrusted = createTrustedProxies(readList(process.env.TRUSTED_PROXIES))
    return createFront({ guard, upstreams: readUpstreams(), isTrusted })
  })
}
