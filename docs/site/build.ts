import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import MiniSearch from 'minisearch'
import { createDocument } from '../../services/coordinator/src/http/apiDocument.ts'
import { escapeHtml, renderApiReference } from '../../services/coordinator/src/http/docsPage.ts'
import { indexOptions } from './assets/searchOptions.js'
import { type NavigationGroup, type NavigationLink, renderHome, renderLayout } from './layout.ts'
import { API_PAGE, DECISIONS_PAGE, readNavigation, type Source } from './navigation.ts'
import { type Page, type Places, renderMarkdown, toSourceUrl } from './renderMarkdown.ts'

const ROOT = join(import.meta.dirname, '../..')
const ASSETS = join(import.meta.dirname, 'assets')

type SitePage = Page & { path: string; file: string | undefined }

/** Builds the site into a folder, which it replaces. Returns the paths of the pages. */
export function buildSite({ outFolder, base }: { outFolder: string; base: string }): string[] {
  const { groups, decisions } = readNavigation(ROOT)
  const sources = [...groups.flatMap(({ sources }) => sources), ...decisions]
  const files = new Map<string, string | Uint8Array>()
  const places: Places = {
    root: ROOT,
    base,
    paths: new Map(sources.map(({ file, path }) => [file, path])),
    addPicture(file) {
      const path = `assets/${basename(file)}`
      files.set(path, readFileSync(join(ROOT, file)))
      return `${base}/${path}`
    },
  }
  const pages = new Map(sources.map((source) => [source.path, renderSource(source, { places, decisions })]))
  const toLink = ({ path }: Source): NavigationLink => ({ path, title: pages.get(path)?.title ?? path })
  const shown: NavigationGroup[] = groups.map(({ title, lead, sources }) => ({
    title,
    lead,
    links: sources.map(toLink),
  }))
  const order = [...shown.flatMap(({ links }) => links), ...decisions.map(toLink)]

  for (const page of pages.values()) {
    const place = order.findIndex(({ path }) => path === page.path)
    const sourceUrl = page.file && toSourceUrl(page.file)
    const [previous, next] = [order[place - 1], order[place + 1]]
    const html = renderLayout({ ...page, body: page.html, base, groups: shown, sourceUrl, previous, next })
    files.set(`${page.path}.html`, html)
  }
  const title = 'Countersign documentation'
  const home = { base, groups: shown, path: '', title, description: 'How to use, run and verify Countersign.' }
  files.set('index.html', renderLayout({ ...home, body: renderHome(home), headings: [] }))
  files.set('assets/search.json', createSearchIndex([...pages.values()]))
  for (const name of readdirSync(ASSETS).filter((name) => !name.endsWith('.d.ts')))
    files.set(`assets/${name}`, readFileSync(join(ASSETS, name)))
  files.set('assets/icon.svg', readFileSync(join(ROOT, 'apps/web/public/icon.svg')))
  files.set('assets/theme.js', readFileSync(join(ROOT, 'apps/web/public/theme.js')))
  files.set('assets/minisearch.js', readMiniSearch())
  replaceFolder(outFolder, files)
  return order.map(({ path }) => path)
}

type Context = { places: Places; decisions: readonly Source[] }

function renderSource({ file, path }: Source, { places, decisions }: Context): SitePage {
  if (file === API_PAGE) return { path, file: undefined, ...renderApiPage() }
  if (file === DECISIONS_PAGE) return { path, file: undefined, ...renderDecisions(places, decisions) }
  return { path, file, ...renderMarkdown(places, file, readFileSync(join(ROOT, file), 'utf8')) }
}

function renderApiPage(): Page {
  // The reference does not show where a service is reached.
  const document = createDocument({ publicUrl: '', version: '', sessionCookie: '' })
  const { html, headings } = renderApiReference(document)
  const sections = headings.map(({ id, text, words }) => ({ id, heading: text, text: words }))
  const { description } = document.info
  return { title: 'HTTP API', description, html, headings, sections }
}

function renderDecisions({ base }: Places, decisions: readonly Source[]): Page {
  const items = decisions.map(({ file, path }) => {
    const [, heading = path] = /^# (.+)$/m.exec(readFileSync(join(ROOT, file), 'utf8')) ?? []
    return `<li><a href="${base}/${path}">${escapeHtml(heading)}</a></li>`
  })
  const description = 'Why Countersign is built as it is: each decision with its reason and its consequences.'
  const html = `<p>${description}</p><ul class="plain">${items.join('')}</ul>`
  return { title: 'Decisions', description, html, headings: [], sections: [{ id: '', heading: '', text: description }] }
}

function createSearchIndex(pages: readonly SitePage[]): string {
  const index = new MiniSearch(indexOptions)
  for (const { path, title, sections } of pages) {
    for (const { id, heading, text } of sections) {
      index.add({
        id: id === '' ? path : `${path}#${id}`,
        title,
        heading: heading || title,
        text: text.replace(/\s+/g, ' ').trim(),
      })
    }
  }
  return JSON.stringify(index)
}

/** Without its source map, which is not served. */
function readMiniSearch(): string {
  const main = createRequire(import.meta.url).resolve('minisearch')
  const text = readFileSync(join(dirname(main), '../es/index.js'), 'utf8')
  return text.replace(/^\/\/# sourceMappingURL=.*$/m, '')
}

/** Writes next to the folder and then renames, so that a reader never sees half a site. */
function replaceFolder(folder: string, files: ReadonlyMap<string, string | Uint8Array>): void {
  const fresh = `${folder}.${process.pid}`
  for (const [path, content] of files) {
    mkdirSync(dirname(join(fresh, path)), { recursive: true })
    writeFileSync(join(fresh, path), content)
  }
  try {
    rmSync(folder, { recursive: true, force: true })
    renameSync(fresh, folder)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
