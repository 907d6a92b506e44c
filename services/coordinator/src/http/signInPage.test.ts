import { hash } from 'node:crypto'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { describe, expect, test } from 'vitest'
import { API, APP, createTestApp, OTHER_APP } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'
import { isSignInPath, renderSignInPage } from './signInPage.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const html = { accept: BROWSER }

async function readPage(response: Response) {
  const page = await response.text()
  expect(response.headers.get('content-type')).toBe('text/html; charset=UTF-8')
  return page
}

describe('the page for a failed sign-in', () => {
  test('says what happened, with code and request id, and links back to the app', async () => {
    const { browser } = createTestApp()
    const user = browser()
    const response = await user.get('/auth/google/callback?code=x&state=y', { ...html, 'x-request-id': 'abc-1' })
    const page = await readPage(response)
    expect(response.status).toBe(400)
    expect(page).toContain(`<h1>${errorCodes.oauth_state_invalid.title}</h1>`)
    expect(page).toContain(errorCodes.oauth_state_invalid.advice)
    expect(page).toContain('<code>oauth_state_invalid</code>')
    expect(page).toContain('<code>abc-1</code>')
    // With the outcome in the URL, because the app would otherwise report a blocked cookie.
    expect(page).toContain(`<a href="${APP}/?sign_in=failed">Start again</a>`)
    expect(page).toMatch(/^<!doctype html><html lang="en">/)
    expect(page).toMatch(/<title>[^<]+<\/title>/)
    expect(page.match(/<main>|<h1>/g)).toEqual(['<main>', '<h1>'])
  })

  test('runs no script, loads nothing, is not cached and cannot be framed', async () => {
    const response = await createTestApp().request('/auth/google/callback', { headers: html })
    const page = await readPage(response)
    expect(page).not.toMatch(/<script|src=|@import|url\(|onload=|<form|<link|<iframe/)
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? ''
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain(`style-src 'sha256-${hash('sha256', style, 'base64')}'`)
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      vary: 'Accept, Origin',
    })
  })

  test('each failure has its status and text, and still clears the login cookie', async () => {
    const { browser, request, google, enclave, store } = createTestApp()
    const user = browser()
    const expectPage = async (response: Response, status: number, code: keyof typeof errorCodes) => {
      expect(response.status).toBe(status)
      expect(await readPage(response)).toContain(`<code>${code}</code>`)
    }
    await expectPage(await request('/auth/nobody', { headers: html }), 404, 'not_found')
    await expectPage(await request('/auth/google?return_to=x', { headers: html }), 400, 'invalid_request')
    google.isDown = true
    await expectPage(await request('/auth/google', { headers: html }), 503, 'provider_unavailable')
    google.isDown = false

    const { callback } = await user.start()
    const refused = await user.get(callback.replace('code=good', 'error=invalid_scope'), html)
    expect(refused.headers.getSetCookie().join()).toContain('Max-Age=0')
    expect(await refused.clone().text()).toContain('Details: the provider returned invalid_scope.')
    await expectPage(refused, 400, 'oauth_refused')

    enclave.failure = new CoordinatorError('enclave_unavailable', 'x')
    await expectPage(await user.get((await user.start()).callback, html), 503, 'enclave_unavailable')
    enclave.failure = new Error('secret text')
    const internal = await user.get((await user.start()).callback, html)
    expect(await internal.clone().text()).not.toContain('secret text')
    await expectPage(internal, 500, 'internal')
    store.isDown = true
    await expectPage(await request('/auth/google', { headers: html }), 503, 'database_unavailable')
  })

  test('links back to the page that started the sign-in if it is known', async () => {
    const { browser, google, enclave } = createTestApp()
    const user = browser()
    const path = `/auth/google?return_to=${encodeURIComponent(`${OTHER_APP}/pay`)}`
    const link = `<a href="${OTHER_APP}/pay?sign_in=failed">Start again</a>`
    const { callback } = await user.start(path)
    enclave.failure = new CoordinatorError('enclave_unavailable', 'x')
    expect(await readPage(await user.get(callback, html))).toContain(link)
    google.isDown = true
    expect(await readPage(await user.get(path, html))).toContain(link)
  })

  test('is shown for rate limits and during a stop, too', async () => {
    const rateLimits = { sign: 'off', provision: 'off', proof: 'off', auth: { count: 1, seconds: 60 } } as const
    const { request, stop } = createTestApp({ config: { rateLimits } })
    expect((await request('/auth/google', { headers: html })).status).toBe(302)
    const refused = await request('/auth/google', { headers: html })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect(await readPage(refused)).toContain('rate_limited')
    await stop()
    expect(await readPage(await request('/auth/google', { headers: html }))).toContain('shutting_down')
  })

  test('escapes everything that a caller sends', async () => {
    const { request, browser } = createTestApp()
    const hostile = encodeURIComponent('"><script>alert(1)</script>')
    const { callback } = await browser().start()
    for (const path of [
      `/auth/${hostile}`,
      `/auth/google/callback?state=${hostile}&error=${hostile}`,
      `/auth/google?return_to=${hostile}`,
      `${callback}&error=${hostile}`,
    ]) {
      const headers = { ...html, 'x-request-id': '<script>' }
      expect(await readPage(await request(path, { headers }))).not.toMatch(/<script|alert/)
    }
    const problem = {
      type: '',
      title: '<b>',
      status: 400,
      code: 'not_found',
      requestId: '<i>',
      retryable: false,
    } as const
    const page = renderSignInPage({ ...problem, detail: '<u>' }, { startUrl: 'https://x.example/"><s>' })
    expect(page).not.toMatch(/<b>|<i>|<u>|<s>/)
  })

  test('has no link without an allowed origin', () => {
    const problem = { type: '', title: 't', status: 400, code: 'not_found', requestId: 'r', retryable: false } as const
    expect(renderSignInPage(problem, { startUrl: undefined })).not.toContain('<a ')
  })
})

describe('other callers get JSON', () => {
  test.each([undefined, '*/*', 'application/json', 'application/json, text/html', 'text/html;q=0', 'image/*'])(
    'Accept: %s',
    async (accept) => {
      const headers = accept === undefined ? {} : { accept }
      const response = await createTestApp().request('/auth/google/callback', { headers })
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      expect(response.headers.get('vary')).toBe('Accept, Origin')
      expect(await response.json()).toMatchObject({ status: 400, type: `${API}/docs/errors#oauth_state_invalid` })
    },
  )

  test.each([
    ['GET', '/auth/me'],
    ['POST', '/auth/google'],
    ['POST', '/auth/logout'],
    ['GET', '/auth/google/x'],
    ['POST', '/auth'],
    ['POST', '/auth/nobody/form'],
    ['GET', '/proof/x'],
    ['GET', '/wallet/me'],
    ['GET', '/nope'],
  ])('%s %s', async (method, path) => {
    const response = await createTestApp().request(path, { method, headers: html })
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  })

  test('a successful sign-in redirects for any Accept header', async () => {
    const user = createTestApp().browser()
    const { callback } = await user.start()
    expect((await user.get(callback, html)).status).toBe(302)
  })
})

test.each([
  ['/auth/google', true],
  ['/auth/google/callback', true],
  ['/auth/metoo', true],
  ['/auth/me', false],
  ['/auth/logout', false],
  ['/auth/', false],
  ['/auth/google/callback/x', false],
  ['/x/auth/google', false],
])('%s is a page of a sign-in: %s', (path, expected) => {
  expect(isSignInPath(path)).toBe(expected)
})
