import { addRoute, type HttpApp } from './addRoute.ts'
import { createDocument } from './apiDocument.ts'
import { type ApiDocument, DOCS_CSP, renderDocsPage, renderErrorsPage } from './docsPage.ts'
import { pages } from './routes.ts'

export type DocsRoutesDeps = { publicUrl: string; version: string; sessionCookie: string }

/** Public, without a limit, and constant: each is rendered once. Comes last, because the document lists the routes before it. */
export function registerDocsRoutes(app: HttpApp, deps: DocsRoutesDeps): void {
  const getDocument = createDocument(app, deps)
  let openapiText: string | undefined
  let docsPage: string | undefined

  addRoute(app, pages.openapi, (c) => {
    c.header('cache-control', 'public, max-age=300')
    openapiText ??= JSON.stringify(getDocument())
    return c.body(openapiText, 200, { 'content-type': 'application/json' })
  })

  addRoute(app, pages.docs, (c) => {
    c.header('content-security-policy', DOCS_CSP)
    docsPage ??= renderDocsPage(getDocument() as unknown as ApiDocument)
    return c.html(docsPage)
  })

  addRoute(app, pages.docsErrors, (c) => {
    c.header('content-security-policy', DOCS_CSP)
    return c.html(renderErrorsPage('Countersign'))
  })
}
