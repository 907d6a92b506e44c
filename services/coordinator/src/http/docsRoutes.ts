import { addRoute, type HttpApp } from './addRoute.ts'
import { createDocument } from './apiDocument.ts'
import { DOCS_CSP, renderDocsPage, renderErrorsPage } from './docsPage.ts'

export type DocsRoutesDeps = { publicUrl: string; version: string; sessionCookie: string }

/** Public, without a limit, and constant: each is rendered once. */
export function registerDocsRoutes(app: HttpApp, deps: DocsRoutesDeps): void {
  let openapiText: string | undefined
  let docsPage: string | undefined

  addRoute(app, 'GET /openapi.json', (c) => {
    c.header('cache-control', 'public, max-age=300')
    openapiText ??= JSON.stringify(createDocument(deps))
    return c.body(openapiText, 200, { 'content-type': 'application/json' })
  })

  addRoute(app, 'GET /docs', (c) => {
    c.header('content-security-policy', DOCS_CSP)
    docsPage ??= renderDocsPage(createDocument(deps))
    return c.html(docsPage)
  })

  addRoute(app, 'GET /docs/errors', (c) => {
    c.header('content-security-policy', DOCS_CSP)
    return c.html(renderErrorsPage('Countersign'))
  })
}
