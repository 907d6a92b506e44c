import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorCodes } from '@countersign/protocol/errorCodes'
import MiniSearch from 'minisearch'
import { afterAll, describe, expect, test } from 'vitest'
import { indexOptions, searchOptions } from './assets/searchOptions.js'
import { buildSite } from './build.ts'

const BASE = '/docs'
const folder = mkdtempSync(join(tmpdir(), 'docs-'))
const pages = ['', ...buildSite({ outFolder: folder, base: BASE })]
const files = new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' }))
const read = (path: string) => readFileSync(join(folder, path), 'utf8')
const html = new Map(pages.map((path) => [path, read(`${path || 'index'}.html`)]))

afterAll(() => rmSync(folder, { recursive: true }))

const decode = (text: string) =>
  text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)).replaceAll('&amp;', '&')
const findAll = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => decode(found))
const findIds = (text: string) => findAll(text, / id="([^"]*)"/g)
const ids = new Map([...html].map(([path, text]) => [path, new Set(findIds(text))]))

/** Links that lead to no page, file or heading of the site. Links to other places are not followed. */
function findBroken(path: string, text: string): string[] {
  return findAll(text, / (?:href|src)="([^"]*)"/g).filter((target) => {
    const [url = '', anchor] = target.split('#')
    if (/^[a-z]+:/.test(url) || url === '/openapi.json') return false
    if (url !== '' && url !== BASE && !url.startsWith(`${BASE}/`)) return true
    const page = url === '' ? path : url.slice(BASE.length + 1)
    if (!html.has(page)) return anchor !== undefined || !files.has(page)
    return anchor !== undefined && !ids.get(page)?.has(decodeURIComponent(anchor))
  })
}

describe.each([...html])('/%s', (path, text) => {
  test('every link leads to a page, a file or a heading', () => {
    expect(findBroken(path, text)).toEqual([])
  })

  test('has one title, no skipped heading level, and each id once', () => {
    const levels = findAll(text, /<h([1-6])[ >]/g).map(Number)
    expect(levels.filter((level) => level === 1)).toHaveLength(1)
    expect(levels[0]).toBe(1)
    expect(levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)).toEqual([])
    expect(findIds(text)).toEqual([...new Set(findIds(text))])
  })

  test('has a description, and is marked in the navigation', () => {
    expect(findAll(text, /<meta name="description" content="([^"]+)">/g)).toHaveLength(1)
    if (path !== '') expect(text).toContain('aria-current="page"')
  })
})

describe('the site', () => {
  test('has the pages that other parts of the service link to', () => {
    expect(pages).toEqual(expect.arrayContaining(['api', 'errors', 'start', 'run/configuration', 'security-model']))
    expect([...(ids.get('errors') ?? [])]).toEqual(expect.arrayContaining(Object.keys(errorCodes)))
  })

  test.each([
    ['webhook', 'build/webhooks'],
    ['passkeys for a vault', 'build/vaults'],
    ['quorum of witnesses', 'run/log-and-witness'],
    ['nonce_taken', 'errors#nonce_taken'],
    ['ROOT_SECRET', 'run/configuration#ROOT_SECRET'],
    ['metrics port', 'run/configuration#METRICS_PORT'],
    ['custodian', 'run/root-secret'],
    ['/sign/digest', 'api#post-/sign/digest'],
  ])('search for %s finds %s', (query, expected) => {
    const index = MiniSearch.loadJSON(read('assets/search.json'), indexOptions)
    const found = index.search(query, searchOptions)
    const top = found.slice(0, 5).map(({ id }) => String(id))
    expect(
      top.some((id) => id.startsWith(expected)),
      top.join(' '),
    ).toBe(true)
  })
})
