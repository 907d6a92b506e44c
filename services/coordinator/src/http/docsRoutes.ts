import type { StaticFile } from '@countersign/service/staticFiles'
import { CoordinatorError } from '../errors.ts'
import { createDocument } from './apiDocument.ts'
import type { AppContext, HandlerResponse } from './context.ts'
import { DOCS_CSP, renderApiPage, renderErrorsPage, renderMissingSite } from './docsPage.ts'
import { isMatch } from './proofRoutes.ts'
import type { Handlers } from './router.ts'

export type DocsRoutesDeps = {
  publicUrl: string
  version: string
  sessionCookie: string
  isMock: boolean
  /** The built documentation site's files by path; undefined if it isn't built. */
  site: ReadonlyMap<string, StaticFile> | undefined
}

/** Allows only the site's own files and forbids HTML from strings, because the session cookie is valid on this origin. */
const SITE_CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/** Public, without a rate limit. */
export function registerDocsRoutes(handlers: Handlers, deps: DocsRoutesDeps): void {
  const { site, isMock } = deps
  let openapiText: string | undefined

  handlers.set('GET /openapi.json', (c) => {
    c.header('cache-control', 'public, max-age=300')
    openapiText ??= JSON.stringify(createDocument(deps))
    c.header('content-type', 'application/json')
    return { status: 200, body: openapiText }
  })

  function sendFile(c: AppContext, path: string): HandlerResponse | Promise<HandlerResponse> {
    const file = site?.get(path) ?? site?.get(`${path}.html`)
    if (file === undefined) throw new CoordinatorError('not_found', 'there is nothing here')
    const isPage = file.type.startsWith('text/html')
    const etag = isMock ? file.etag.replace(/"$/, '-mock"') : file.etag
    Object.assign(c.headers, { etag, 'cache-control': 'no-cache', vary: 'Accept-Encoding' })
    if (isPage) c.header('content-security-policy', SITE_CSP)
    if (isMatch(c.req.header('if-none-match'), etag)) return { status: 304, body: null }
    // As text, so that a service with simulated hardware can mark its pages.
    if (isPage && isMock) return c.html(file.body.toString())
    c.header('content-type', file.type)
    if (!/\bgzip\b/.test(c.req.header('accept-encoding') ?? '')) return { status: 200, body: file.body }
    c.header('content-encoding', 'gzip')
    return file.compress().then((body) => ({ status: 200, body }))
  }

  /** Sends a page of the site. Without the site, renders a page once. */
  function createPageHandler(path: string, render: () => string) {
    let page: string | undefined
    return (c: AppContext) => {
      if (site !== undefined) return sendFile(c, path)
      c.header('content-security-policy', DOCS_CSP)
      page ??= render()
      return c.html(page)
    }
  }

  handlers.set('GET /docs', createPageHandler('index', renderMissingSite))
  handlers.set(
    'GET /docs/api',
    createPageHandler('api', () => renderApiPage(createDocument(deps))),
  )
  handlers.set(
    'GET /docs/errors',
    createPageHandler('errors', () => renderErrorsPage('Countersign')),
  )
  handlers.set('GET /docs/:path{.+}', (c) => sendFile(c, c.params.path ?? ''))
}
