import { hash } from 'node:crypto'
import { errorCodes } from '@countersign/protocol/errorCodes'

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h2{margin-top:2.5rem;font-size:1.1rem}code,pre{font:14px/1.45 ui-monospace,monospace}pre{white-space:pre-wrap;padding:.75rem;border:1px solid #8886;border-radius:6px}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #8884}
.method{font-weight:700;text-transform:uppercase}a{color:inherit}`

/** The page runs no script and loads nothing. A hash allows its only style. */
export const DOCS_CSP = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

type Content = Record<string, { schema: Readonly<Record<string, unknown>> }>
type Parameter = { name: string; in: string; required: boolean; description?: string; schema: object }
export type Operation = {
  summary: string
  description?: string
  security?: object[]
  parameters?: Parameter[]
  requestBody?: { content: Content; required: boolean }
  responses: Record<string, { description: string; content?: Content }>
}

/** An OpenAPI document. */
export type ApiDocument = {
  openapi: string
  info: { title: string; version: string; description: string; license: object }
  servers: object[]
  components: { securitySchemes: object; schemas: Record<string, object> }
  paths: Record<string, Record<string, Operation>>
}

/** The HTTP API as HTML, and its headings in order. */
export function renderApiReference(document: ApiDocument) {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  )
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      `<h3 id="schema-${escapeHtml(name)}">${escapeHtml(name)}</h3><pre>${escapeHtml(JSON.stringify(schema, null, 2))}</pre>`,
  )
  const headings = [
    ...operations.map(({ method, path, operation: { summary, description = '' } }) => {
      return {
        level: 2,
        id: `${method}-${path}`,
        text: `${method.toUpperCase()} ${path}`,
        words: `${summary}. ${description}`,
      }
    }),
    { level: 2, id: 'schemas', text: 'Schemas', words: '' },
    ...Object.keys(document.components.schemas).map((name) => ({
      level: 3,
      id: `schema-${name}`,
      text: name,
      words: '',
    })),
  ]
  const parts = [
    `<p>${escapeHtml(document.info.description)}</p>`,
    '<p><a href="/openapi.json">openapi.json</a> · <a href="/docs/errors">error codes</a></p>',
    ...operations.map(({ method, path, operation }) => renderOperation(method, path, operation)),
    '<h2 id="schemas">Schemas</h2>',
    ...schemas,
  ]
  return { html: parts.join('\n'), headings }
}

/** `GET /docs/api`, where the documentation site is not built. */
export function renderApiPage(document: ApiDocument): string {
  const { title, version } = document.info
  const head = `<h1>${escapeHtml(title)} <small>${escapeHtml(version)}</small></h1>`
  return renderPage(title, `${head}\n${renderApiReference(document).html}`)
}

/** `GET /docs`, where the documentation site is not built. */
export function renderMissingSite(): string {
  const body = `<h1>Countersign</h1>
<p>The documentation site is not built. Run <code>npm run docs</code> in the repository, then restart this service.</p>
<p>Available without it: <a href="/docs/api">API</a> · <a href="/docs/errors">error codes</a> · <a href="/openapi.json">openapi.json</a></p>`
  return renderPage('Countersign', body)
}

/** `GET /docs/errors` if the documentation site is not built. The `type` of every problem links to it. */
export function renderErrorsPage(title: string): string {
  const entries = Object.entries(errorCodes).map(([code, { status, retryable, title, advice }]) => {
    const can = retryable ? 'You can retry the same call.' : 'The same call will fail again.'
    return `<h2 id="${code}"><code>${code}</code> · ${status}</h2><p>${escapeHtml(title)}. ${escapeHtml(advice)} ${can}</p>`
  })
  const intro =
    '<p>Failures are <code>application/problem+json</code> with one of these codes. <a href="/docs/api">API</a></p>'
  return renderPage(`${title}: errors`, ['<h1>Error codes</h1>', intro, ...entries].join('\n'))
}

function renderOperation(method: string, path: string, operation: Operation): string {
  const { summary, description = '', security, parameters = [], requestBody, responses } = operation
  const parts = [
    `<h2 id="${escapeHtml(`${method}-${path}`)}"><span class="method">${escapeHtml(method)}</span> <code>${escapeHtml(path)}</code></h2>`,
    `<p>${renderWords(`${summary}. ${description}`)}${security === undefined ? '' : ' Requires a session.'}</p>`,
  ]
  if (parameters.length > 0) {
    const rows = parameters.map((parameter) => [
      `<code>${escapeHtml(parameter.name)}</code>`,
      escapeHtml(parameter.in + (parameter.required ? '' : ', optional')),
      renderWords(parameter.description ?? ''),
    ])
    parts.push(renderTable(['Parameter', 'In', 'Meaning'], rows))
  }
  if (requestBody !== undefined) {
    parts.push(`<p>Body: ${renderContent(requestBody.content)}${requestBody.required ? '' : ', or none'}</p>`)
  }
  const rows = Object.entries(responses).map(([status, response]) => [
    escapeHtml(status),
    linkErrors(renderWords(response.description)),
    renderContent(response.content ?? {}),
  ])
  parts.push(renderTable(['Status', 'Meaning', 'Body'], rows))
  return parts.join('\n')
}

/** Descriptions are Markdown; ours have code spans only. */
const renderWords = (text: string) => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')

const linkErrors = (html: string) =>
  html.replace(/\b[a-z]+(?:_[a-z]+)+\b/g, (code) =>
    code in errorCodes ? `<a href="/docs/errors#${code}">${code}</a>` : code,
  )

function renderContent(content: Content): string {
  return Object.entries(content)
    .map(([type, value]) => {
      const reference = value.schema.$ref
      const name = typeof reference === 'string' ? reference.split('/').pop() : undefined
      return name === undefined
        ? `<code>${escapeHtml(type)}</code>`
        : `<a href="#schema-${escapeHtml(name)}">${escapeHtml(name)}</a> <code>${escapeHtml(type)}</code>`
    })
    .join(', ')
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, row: readonly string[]) => row.map((cell) => `<${tag}>${cell}</${tag}>`).join('')
  const body = rows.map((row) => `<tr>${cells('td', row)}</tr>`).join('')
  return `<div class="scroll"><table><thead><tr>${cells('th', head)}</tr></thead><tbody>${body}</tbody></table></div>`
}

/** A complete page. Send it with `DOCS_CSP`. */
export function renderPage(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title>
<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body><main>
${body}
</main></body></html>`
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
