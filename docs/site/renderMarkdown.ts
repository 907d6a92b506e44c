import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import json from 'highlight.js/lib/languages/json'
import python from 'highlight.js/lib/languages/python'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import MarkdownIt from 'markdown-it'
import { escapeHtml } from '../../services/coordinator/src/http/docsPage.ts'

const REPOSITORY = 'https://github.com/countersign/countersign'

export type Heading = { level: number; id: string; text: string }
/** A part of a page that search finds: a heading and the text below it, up to the next heading. */
type Section = { id: string; heading: string; text: string }
export type Page = { title: string; description: string; html: string; headings: Heading[]; sections: Section[] }

/** Each item of the configuration page has an anchor and is a search result. */
const SETTING = /^[A-Z]+_[A-Z_]+[^:]*: /

type Token = ReturnType<InstanceType<typeof MarkdownIt>['parse']>[number]

/** Languages of fences, by the names that our pages use. */
const LANGUAGES = { bash, json, python, typescript, xml, yaml }
const ALIASES: Readonly<Record<string, keyof typeof LANGUAGES>> = {
  sh: 'bash',
  ts: 'typescript',
  tsx: 'typescript',
  js: 'typescript',
  py: 'python',
  html: 'xml',
  yml: 'yaml',
}
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language)

export const toSourceUrl = (file: string, kind: 'blob' | 'tree' = 'blob') => `${REPOSITORY}/${kind}/main/${file}`

function highlight(code: string, info: string): string {
  const name = info.trim().split(/\s+/, 1)[0] ?? ''
  const language = ALIASES[name] ?? name
  return language in LANGUAGES ? hljs.highlight(code, { language }).value : escapeHtml(code)
}

/** The anchor that GitHub gives to a heading. */
function toAnchor(heading: string, taken: ReadonlySet<string>): string {
  const anchor = heading
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
  return toUnique(anchor, taken)
}

function toUnique(id: string, taken: ReadonlySet<string>): string {
  let unique = id
  for (let copy = 1; taken.has(unique); copy++) unique = `${id}-${copy}`
  return unique
}

function toText(tokens: readonly Token[]): string {
  return tokens
    .map(({ type, content, children }) => {
      if (type === 'softbreak' || type === 'hardbreak') return ' '
      return children ? toText(children) : ['text', 'code_inline', 'fence', 'code_block'].includes(type) ? content : ''
    })
    .join('')
}

export type Places = {
  root: string
  /** `/docs`, without a slash at the end. */
  base: string
  /** Paths of pages by their Markdown files. */
  paths: ReadonlyMap<string, string>
  /** Called with each picture that a page shows; returns its URL. */
  addPicture(file: string): string
}

/** A link of a page: to another page, to the repository on GitHub, or as it is. */
function toUrl({ base, paths }: Places, file: string, target: string): string {
  if (/^(?:[a-z][a-z+.-]*:|#|\/)/i.test(target)) return target
  const [path = '', anchor] = target.split('#')
  const linked = posix.join(posix.dirname(file), decodeURI(path)).replace(/\/$/, '')
  const hash = anchor === undefined ? '' : `#${anchor}`
  const page = paths.get(linked)
  if (page !== undefined) return `${base}/${page}${hash}`
  // By the name: where the image is built, most of the repository is missing.
  const isFile = posix.basename(linked).includes('.')
  return `${toSourceUrl(linked, isFile ? 'blob' : 'tree')}${hash}`
}

/** Links of labels such as `[C1]` to tests, from a page's `.tests.json`: titles by label, by file. */
function readTestLabels(root: string, file: string): Record<string, { href: string; title: string }> {
  const path = join(root, file.replace(/\.md$/, '.tests.json'))
  if (!existsSync(path)) return {}
  const tests: Record<string, Record<string, string>> = JSON.parse(readFileSync(path, 'utf8'))
  return Object.fromEntries(
    Object.entries(tests).flatMap(([test, titles]) =>
      Object.entries(titles).map(([label, title]) => [label, { href: toSourceUrl(test), title }]),
    ),
  )
}

/** Renders one Markdown file of the repository. The HTML does not include its title. */
export function renderMarkdown(places: Places, file: string, markdown: string): Page {
  const md = new MarkdownIt({ html: true, highlight })
  const rules = md.renderer.rules
  rules.table_open = () => '<div class="scroll"><table>\n'
  rules.table_close = () => '</table></div>\n'
  const tokens = md.parse(markdown, { references: readTestLabels(places.root, file) })
  const headings: Heading[] = []
  const sections: Section[] = [{ id: '', heading: '', text: '' }]
  const taken = new Set<string>()
  let title = posix.basename(file, '.md')
  let description = ''
  for (const [index, token] of tokens.entries()) {
    const text = toText([token]).trim()
    const before = tokens[index - 1]
    if (token.type === 'inline' && before?.type === 'heading_open') {
      const id = toAnchor(text, taken)
      taken.add(id)
      const level = Number(before.tag.slice(1))
      if (level === 1) title = text
      else {
        before.attrSet('id', id)
        headings.push({ level, id, text })
        sections.push({ id, heading: text, text: '' })
      }
      continue
    }
    if (description === '' && token.type === 'inline' && before?.type === 'paragraph_open') description = text
    const item = tokens[index - 2]
    if (item?.type === 'list_item_open' && SETTING.test(text)) {
      const id = toUnique(text.split(/\W/, 1)[0] ?? '', taken)
      taken.add(id)
      item.attrSet('id', id)
      sections.push({ id, heading: text.split(':', 1)[0] ?? '', text: '' })
    }
    const section = sections.at(-1)
    if (section !== undefined && text !== '') section.text += `${text} `
    for (const child of token.children ?? []) {
      if (child.type === 'link_open') child.attrSet('href', toUrl(places, file, String(child.attrGet('href'))))
      if (child.type === 'image') {
        const source = String(child.attrGet('src'))
        child.attrSet('src', places.addPicture(posix.join(posix.dirname(file), source)))
        child.attrSet('loading', 'lazy')
      }
    }
  }
  const top = tokens.findIndex(({ tag }) => tag === 'h1')
  // A heading is three tokens.
  const body = top < 0 ? tokens : tokens.toSpliced(top, 3)
  const html = md.renderer
    .render(body, md.options, {})
    .replace(/<(h[2-6]) id="([^"]+)">(.*?)<\/\1>/gs, (_, tag, id, inner) => {
      return `<${tag} id="${id}">${inner} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></${tag}>`
    })
  return { title, description: description || title, html, headings, sections }
}
