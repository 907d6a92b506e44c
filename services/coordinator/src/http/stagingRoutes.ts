import { toReturnTo } from '../auth/returnTo.ts'
import { CoordinatorError, toPublicCode } from '../errors.ts'
import type { HttpApp } from './addRoute.ts'
import { DOCS_CSP, escapeHtml, renderPage } from './docsPage.ts'
import { writeStagingCookie } from './stagingCookie.ts'
import { STAGING_PATH, type StagingGate } from './stagingGate.ts'

export type StagingRoutesDeps = {
  gate: StagingGate
  /** Where it may lead back to. */
  allowedOrigins: readonly string[]
  ownOrigin: string
  isHttps: boolean
}

const MAX_FORM_BYTES = 8_192

/** The form may be sent here, and lead to the pages of the app. */
const toFormCsp = (origins: readonly string[]) =>
  DOCS_CSP.replace("form-action 'none'", ["form-action 'self'", ...origins].join(' '))

/** The page of a staging that asks for its password. It is in no description of the API: no other service has it. */
export function registerStagingRoutes(
  app: HttpApp,
  { gate, allowedOrigins, ownOrigin, isHttps }: StagingRoutesDeps,
): void {
  app.get(STAGING_PATH, (c) => {
    c.set('route', STAGING_PATH)
    const { html, csp } = renderPasswordPage({ allowedOrigins, returnTo: c.req.query('return_to') })
    return c.html(html, 200, { 'content-security-policy': csp })
  })

  app.post(STAGING_PATH, async (c) => {
    c.set('route', STAGING_PATH)
    const form = new URLSearchParams(await readForm(c.req.raw))
    // A path is one of this address, where a front serves the app and the API together.
    const asked = form.getAll('return_to').flatMap((text) => (text === '' ? [] : toUrl(text, ownOrigin)))
    const returnTo = toReturnTo(allowedOrigins, asked)
    try {
      gate.assertPassword(c, form.get('password') ?? '')
    } catch (error) {
      const code = toPublicCode(error)
      c.set('failure', code)
      const fault =
        code === 'rate_limited' ? 'Too many wrong passwords: wait some minutes.' : 'That is not the password.'
      const { html, csp } = renderPasswordPage({ allowedOrigins, returnTo, fault })
      return c.html(html, code === 'rate_limited' ? 429 : 401, { 'content-security-policy': csp })
    }
    c.header('set-cookie', writeStagingCookie(gate.cookie, { isHttps }))
    return c.redirect(returnTo, 303)
  })
}

type PasswordPageParameters = { allowedOrigins: readonly string[]; returnTo?: string | undefined; fault?: string }

/** Asks for the password, and comes back to where the visitor wanted to be. */
export function renderPasswordPage({ allowedOrigins, returnTo = '', fault }: PasswordPageParameters): {
  html: string
  csp: string
} {
  const body = `<h1>Staging</h1>
<p>A password guards this rehearsal. Ask whoever runs it.</p>
${fault === undefined ? '' : `<p role="alert"><strong>${escapeHtml(fault)}</strong></p>`}
<form method="post" action="${STAGING_PATH}"><input type="hidden" name="return_to" value="${escapeHtml(returnTo)}">
<p><label>Password <input type="password" name="password" autocomplete="current-password" required autofocus></label>
<button>Continue</button></p></form>`
  return { html: renderPage('Staging', body), csp: toFormCsp(allowedOrigins) }
}

/** The address of a path; anything else as it is. `//host` and `/\\host` are no paths, whatever a browser thinks of them. */
function toUrl(text: string, origin: string): string {
  return /^\/(?![/\\])/.test(text) ? `${origin}${text}` : text
}

async function readForm(request: Request): Promise<string> {
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  const isForm = request.headers.get('content-type')?.startsWith('application/x-www-form-urlencoded') ?? false
  if (!isForm || !(declared <= MAX_FORM_BYTES)) {
    throw new CoordinatorError('invalid_request', 'not the form', { details: 'the body is not the form of this page' })
  }
  return request.text()
}
