/** The theme, the search, and small improvements of the pages. Nothing here writes HTML. */

import { indexOptions, searchOptions } from './searchOptions.js'

const root = document.documentElement
const base = root.dataset.base ?? ''

function find(selector) {
  const element = document.querySelector(selector)
  if (element === null) throw new Error(`no ${selector} on this page`)
  return element
}

function create(name, className, text = '') {
  const element = document.createElement(name)
  element.className = className
  element.textContent = text
  return element
}

// The theme: `theme.js` applies the stored choice before the first paint.
const themeButton = find('.theme-button')
themeButton.hidden = false
themeButton.addEventListener('click', () => {
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
  root.dataset.theme = isDark ? 'light' : 'dark'
  try {
    localStorage.setItem('countersign:theme', root.dataset.theme)
  } catch {
    // Storage is blocked. The choice holds for this page.
  }
})

// The search. Its code and index load when it is first opened.
const dialog = find('dialog.search')
const input = find('dialog.search input')
const results = find('.search-results')
const status = find('.search-status')
const searchButton = find('.search-button')
let loading

async function loadIndex() {
  const [module, response] = await Promise.all([
    import(`${base}/assets/minisearch.js`),
    fetch(`${base}/assets/search.json`),
  ])
  return module.default.loadJSON(await response.text(), indexOptions)
}

function openSearch() {
  if (dialog.open) return
  dialog.showModal()
  input.select()
  loading ??= loadIndex()
}

async function search() {
  const query = input.value.trim()
  loading ??= loadIndex()
  let index
  try {
    index = await loading
  } catch {
    loading = undefined
    status.textContent = 'The search index could not be loaded. Check your connection and try again.'
    return
  }
  if (query !== input.value.trim()) return
  const found = query === '' ? [] : index.search(query, searchOptions)
  const hits = found.slice(0, 12)
  results.replaceChildren(...hits.map(createResult))
  status.textContent = query === '' ? '' : hits.length === 0 ? 'No results.' : `${found.length} results`
}

function createResult({ id, title, heading, text, terms }) {
  const link = create('a', '')
  link.href = `${base}/${id}`
  link.append(create('strong', '', heading))
  if (heading !== title) link.append(create('span', 'search-page', title))
  const snippet = create('span', 'search-text')
  snippet.append(...markTerms(cutSnippet(text, terms), terms))
  link.append(snippet)
  link.addEventListener('click', () => dialog.close())
  const item = create('li', '')
  item.append(link)
  return item
}

/** About 150 characters of the text, around the first term. */
function cutSnippet(text, terms) {
  const places = terms.map((term) => text.toLowerCase().indexOf(term)).filter((place) => place >= 0)
  const start = Math.max(0, Math.min(...(places.length > 0 ? places : [0])) - 50)
  const cut = text.slice(start, start + 150)
  return `${start > 0 ? '…' : ''}${cut}${start + 150 < text.length ? '…' : ''}`
}

function markTerms(text, terms) {
  const escaped = terms.map((term) => term.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  const parts = escaped.length === 0 ? [text] : text.split(new RegExp(`(${escaped.join('|')})`, 'giu'))
  return parts.map((part, place) => (place % 2 === 1 ? create('mark', '', part) : new Text(part)))
}

function moveInResults(step) {
  const links = [input, ...results.querySelectorAll('a')]
  const place = links.indexOf(document.activeElement)
  links[Math.min(links.length - 1, Math.max(0, place + step))]?.focus()
}

searchButton.hidden = false
searchButton.addEventListener('click', openSearch)
input.addEventListener('input', () => void search())
dialog.addEventListener('click', (event) => {
  if (event.target === dialog) dialog.close()
})
dialog.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault()
    moveInResults(event.key === 'ArrowDown' ? 1 : -1)
  }
  // In a search field Escape would only clear the text.
  if (event.key === 'Escape') dialog.close()
  if (event.key === 'Enter' && event.target === input) results.querySelector('a')?.click()
})
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof Element && event.target.closest('input, textarea') !== null
  const isShortcut = (event.key === '/' && !isTyping) || (event.key === 'k' && (event.ctrlKey || event.metaKey))
  if (!isShortcut) return
  event.preventDefault()
  openSearch()
})

/** Scrolls a list that is longer than the window to the link for the current page or section. */
function scrollToCurrent(list) {
  const link = list?.querySelector('[aria-current]')
  if (!link) return
  const { top, bottom } = link.getBoundingClientRect()
  const frame = list.getBoundingClientRect()
  if (top < frame.top || bottom > frame.bottom) list.scrollTop += top - frame.top - frame.height / 2
}
scrollToCurrent(find('#navigation'))

// Blocks that scroll sideways can be reached by keyboard.
for (const block of document.querySelectorAll('pre, .scroll')) {
  if (block.scrollWidth > block.clientWidth) block.tabIndex = 0
}

for (const block of document.querySelectorAll('article pre')) {
  const button = create('button', 'copy', 'Copy')
  button.type = 'button'
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? block.textContent ?? '')
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 1500)
  })
  const frame = create('div', 'code')
  block.replaceWith(frame)
  frame.append(block, button)
}

// On this page: marks the section at the top of the window.
const marks = [...document.querySelectorAll('.contents a')].flatMap((link) => {
  const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)))
  return heading ? [{ link, heading }] : []
})
function markSection() {
  const current = marks.findLast(({ heading }) => heading.getBoundingClientRect().top < 120) ?? marks[0]
  for (const mark of marks) {
    if (mark === current) mark.link.setAttribute('aria-current', 'location')
    else mark.link.removeAttribute('aria-current')
  }
  scrollToCurrent(document.querySelector('.contents'))
}
document.addEventListener('scroll', markSection, { passive: true })
markSection()
