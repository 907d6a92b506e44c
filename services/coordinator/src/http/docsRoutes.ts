import { createDocument } from './apiDocument.ts'
import { DOCS_CSP, renderApiPage, renderErrorsPage } from './docsPage.ts'
import type { Handlers } from './router.ts'

export type DocsRoutesDeps = { publicUrl: string; version: string; sessionCookie: string }

/** Public, without a limit, and constant: each is rendered once. */
export function registerDocsRoutes(handlers: Handlers, deps: DocsRoutesDeps): void {
  let openapiText: string | undefined
  let docsPage: string | undefined

  handlers.set('GET /openapi.json', (c) => {
    c.header('cache-control', 'public, max-age=300')
    openapiText ??= JSON.stringify(createDocument(deps))
    c.header('content-type', 'application/json')
    return { status: 200, body: openapiText }
  })

  handlers.set('GET /docs', (c) => {
    c.header('content-security-policy', DOCS_CSP)
    docsPage ??= renderApiPage(createDocument(deps))
    return c.html(docsPage)
  })

  handlers.set('GET /docs/errors', (c) => {
    c.header('content-security-policy', DOCS_CSP)
    return c.html(renderErrorsPage('Countersign'))
  })
}
