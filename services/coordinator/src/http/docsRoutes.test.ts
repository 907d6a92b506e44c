import { gunzipSync } from 'node:zlib'
import { toStaticFile } from '@countersign/service/staticFiles'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/http/testApp.ts'

const toSite = (files: Record<string, string>) =>
  new Map(Object.entries(files).map(([path, text]) => [path, toStaticFile(path, Buffer.from(text))]))

const site = toSite({
  'index.html': '<body>home</body>',
  'api.html': '<body>site api</body>',
  'errors.html': '<body>site errors</body>',
  'build/sdk.html': '<body>sdk</body>',
  'assets/site.js': 'code',
})
const createAppWithSite = (config = {}) => createTestApp({ deps: { docsSite: site }, config })

describe('the documentation site', () => {
  test.each([
    ['/docs', 'text/html; charset=utf-8', '<body>home</body>'],
    ['/docs/api', 'text/html; charset=utf-8', '<body>site api</body>'],
    ['/docs/errors', 'text/html; charset=utf-8', '<body>site errors</body>'],
    ['/docs/build/sdk', 'text/html; charset=utf-8', '<body>sdk</body>'],
    ['/docs/assets/site.js', 'text/javascript; charset=utf-8', 'code'],
  ])('serves %s', async (path, type, body) => {
    const response = await createAppWithSite().request(path)
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([200, type, body])
  })

  test('allows its own files, no inline script and no HTML from strings', async () => {
    const policy = (await createAppWithSite().request('/docs')).headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toContain('unsafe')
  })

  test.each([
    '/docs/nothing',
    '/docs/build',
    '/docs/%2e%2e/secret',
    '/docs/..%2fsecret',
    '/docs/build/../../app.ts',
    '/docs/__proto__',
  ])('returns a 404 problem for %s', async (path) => {
    const response = await createAppWithSite().request(path)
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ code: 'not_found' })
  })

  test('returns 304 for an ETag that matches, and compresses for callers that accept it', async () => {
    const app = createAppWithSite()
    const first = await app.request('/docs/build/sdk', { headers: { 'accept-encoding': 'br, gzip' } })
    expect(gunzipSync(await first.arrayBuffer()).toString()).toBe('<body>sdk</body>')
    expect(first.headers.get('content-encoding')).toBe('gzip')
    expect(first.headers.get('cache-control')).toBe('no-cache')
    expect(first.headers.get('vary')).toContain('Accept-Encoding')
    const etag = first.headers.get('etag') ?? ''
    const second = await app.request('/docs/build/sdk', { headers: { 'if-none-match': etag } })
    expect([second.status, await second.text()]).toEqual([304, ''])
  })

  test('marks pages and changes their ETags if the hardware is simulated', async () => {
    const marked = await createAppWithSite({ isMock: true }).request('/docs', {
      headers: { 'accept-encoding': 'gzip' },
    })
    expect(await marked.text()).toMatch(/^<body><p role="note">.+<\/p>home<\/body>$/s)
    expect(marked.headers.get('etag')).not.toBe((await createAppWithSite().request('/docs')).headers.get('etag'))
  })
})

test('without the site, /docs explains how to build it, and the API reference and error codes are available', async () => {
  const app = createTestApp()
  expect(await (await app.request('/docs')).text()).toContain('npm run docs')
  expect(await (await app.request('/docs/api')).text()).toContain('<code>/sign/digest</code>')
  expect(await (await app.request('/docs/errors')).text()).toContain('id="not_found"')
  expect((await app.request('/docs/build/sdk')).status).toBe(404)
})
