import { escapeHtml } from '../../services/coordinator/src/http/docsPage.ts'
import type { Heading } from './renderMarkdown.ts'

export type NavigationLink = { title: string; path: string }
export type NavigationGroup = { title: string; lead: string; links: readonly NavigationLink[] }

export type LayoutParameters = {
  base: string
  groups: readonly NavigationGroup[]
  path: string
  title: string
  description: string
  body: string
  headings: readonly Heading[]
  /** Where the text of the page can be read and changed. */
  sourceUrl?: string | undefined
  previous?: NavigationLink | undefined
  next?: NavigationLink | undefined
}

const ICONS = {
  mark: '<svg viewBox="0 0 32 32" aria-hidden="true"><path d="M7 14.5l6 6L25.5 7"/><path d="M7 27h18"/></svg>',
  menu: '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 7h16M4 12h16M4 17h16"/></svg>',
  search:
    '<svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/></svg>',
  theme:
    '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z"/></svg>',
}

/** One page of the site. It works without its script, except for search and the theme. */
export function renderLayout(page: LayoutParameters): string {
  const { base, path, title, description, body, headings } = page
  const fullTitle = path === '' ? title : `${title} · Countersign`
  const contents = headings.filter(({ level }) => level <= 3)
  return `<!doctype html>
<html lang="en" data-base="${base}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escapeHtml(description.slice(0, 200))}">
<title>${escapeHtml(fullTitle)}</title>
<link rel="icon" href="${base}/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${base}/assets/site.css">
<script src="${base}/assets/theme.js"></script>
<script type="module" src="${base}/assets/site.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<button class="icon menu-button" type="button" popovertarget="navigation" aria-label="Pages">${ICONS.menu}</button>
<a class="brand" href="${base || '/'}">${ICONS.mark}<span>Countersign</span> <span class="brand-docs">Docs</span></a>
<button class="search-button" type="button" hidden aria-label="Search">${ICONS.search}<span>Search</span><kbd>/</kbd></button>
<button class="icon theme-button" type="button" hidden aria-label="Switch between light and dark">${ICONS.theme}</button>
</header>
<div class="columns">
<nav class="side" id="navigation" popover aria-label="Documentation">
${page.groups.map((group) => renderGroup(page, group)).join('\n')}
</nav>
<main id="content" tabindex="-1"${path === '' ? ' class="home"' : ''}>
<article>
<h1>${escapeHtml(title)}</h1>
${contents.length > 2 ? `<details class="contents-narrow"><summary>On this page</summary>${renderContents(contents)}</details>` : ''}
${body}
</article>
${renderFooter(page)}
</main>
${contents.length > 2 ? `<nav class="contents" aria-label="On this page"><p>On this page</p>${renderContents(contents)}</nav>` : ''}
</div>
<dialog class="search" aria-label="Search">
<input type="search" placeholder="Search the documentation" aria-label="Search the documentation" autocomplete="off" spellcheck="false">
<p class="search-status" role="status"></p>
<ol class="search-results"></ol>
</dialog>
</body>
</html>
`
}

function renderLink({ base, path }: LayoutParameters, link: NavigationLink, className = ''): string {
  const isCurrent = link.path === path || (link.path === 'decisions' && path.startsWith('decisions/'))
  const current = isCurrent ? ' aria-current="page"' : ''
  return `<a${className && ` class="${className}"`} href="${base}/${link.path}"${current}>${escapeHtml(link.title)}</a>`
}

/** A group of one page is one link. */
function renderGroup(page: LayoutParameters, { title, links }: NavigationGroup): string {
  const [first] = links
  if (first === undefined) return ''
  if (links.length === 1) return `<p class="group">${renderLink(page, { ...first, title }, 'group-link')}</p>`
  const items = links.map((link) => `<li>${renderLink(page, link)}</li>`).join('')
  return `<p class="group">${escapeHtml(title)}</p><ul>${items}</ul>`
}

/** Names break after an underscore or a slash. */
const toBreakable = (text: string) => escapeHtml(text).replace(/[_/]/g, '$&<wbr>')

function renderContents(headings: readonly Heading[]): string {
  const items = headings.map(
    ({ level, id, text }) => `<li><a${level > 2 ? ' class="deep"' : ''} href="#${id}">${toBreakable(text)}</a></li>`,
  )
  return `<ul>${items.join('')}</ul>`
}

function renderFooter({ base, previous, next, sourceUrl }: LayoutParameters): string {
  const toLink = (link: NavigationLink | undefined, rel: string, label: string) =>
    link && `<a rel="${rel}" href="${base}/${link.path}"><span>${label}</span>${escapeHtml(link.title)}</a>`
  const links = [toLink(previous, 'prev', 'Previous'), toLink(next, 'next', 'Next')].filter(
    (link) => link !== undefined,
  )
  const steps = links.length === 0 ? '' : `<nav class="steps" aria-label="Previous and next">${links.join('')}</nav>`
  const source = sourceUrl === undefined ? '' : `<a href="${sourceUrl}">View or edit this page on GitHub</a> · `
  return `<footer>${steps}<p>${source}Countersign is free software under the AGPL-3.0.</p></footer>`
}

/** The first page: every group with its pages. */
export function renderHome({ base, groups }: Pick<LayoutParameters, 'base' | 'groups'>): string {
  const cards = groups.map(({ title, lead, links }) => {
    const items = links.map((link) => `<li><a href="${base}/${link.path}">${escapeHtml(link.title)}</a></li>`)
    return `<section><h2>${escapeHtml(title)}</h2><p>${escapeHtml(lead)}</p><ul>${items.join('')}</ul></section>`
  })
  return `<p class="lead">Countersign is a self-hosted wallet service. Each signature comes with a public proof that anyone can check.</p>
<div class="cards">${cards.join('\n')}</div>`
}
