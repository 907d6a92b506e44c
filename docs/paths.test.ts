import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, test } from 'vitest'

/** The names that pages may use: files and folders of the repository, and commands of its package.json. */
type Repository = { paths: ReadonlySet<string>; commands: ReadonlySet<string>; read: (page: string) => string }

/** Created by a build or an operator. The repository contains only the part of a path before them. */
const MADE_LATER = new Set(['dist', 'node_modules', '.env'])

const SOURCE_FILE = /\.(cfg|json|md|mjs|sh|sol|tsx?|ya?ml)$/

function createRepository(files: readonly string[], commands: readonly string[], read: Repository['read']): Repository {
  const paths = new Set<string>()
  for (const file of files) for (let path = file; path !== '.'; path = posix.dirname(path)) paths.add(path)
  return { paths, commands: new Set(commands), read }
}

/** For `packages/<name>/src` and `packages/*`, checks the part before the placeholder. */
function exists({ paths }: Repository, path: string): boolean {
  const parts = posix.normalize(path).replace(/\/$/, '').split('/')
  const end = parts.findIndex((part) => MADE_LATER.has(part) || /[*<…]/.test(part))
  const known = (end < 0 ? parts : parts.slice(0, end)).join('/')
  return known === '' || known === '.' || paths.has(known)
}

/** `a/{b,c}` names `a/b` and `a/c`. */
function expandBraces(path: string): string[] {
  const [whole, options] = /\{([^}]*)\}/.exec(path) ?? []
  if (whole === undefined || options === undefined) return [path]
  return options.split(',').flatMap((option) => expandBraces(path.replace(whole, option)))
}

/**
 * A word of code is a path of ours if it has a slash, starts with a lower-case letter, and either starts with a top-level folder,
 * or ends with a slash, or ends like a source file.
 */
function findPaths(code: string, topFolders: ReadonlySet<string>): { path: string; index: number }[] {
  return [...code.matchAll(/(?:\{[^\s{}]*\}|[^\s'"(),;=|{}])+/g)].flatMap(({ 0: word, index }) => {
    if (!/^[a-z][\w.@-]*\/[\w.@{},*<>…/-]*$/.test(word)) return []
    const isOurs = topFolders.has(word.split('/', 1)[0] ?? '') || word.endsWith('/') || SOURCE_FILE.test(word)
    return isOurs ? expandBraces(word).map((path) => ({ path, index })) : []
  })
}

/** Replaces text by spaces, so that offsets and lines stay. */
const blank = (text: string) => text.replace(/[^\n]/g, ' ')

const FENCE = /^([ \t]*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1\2[ \t]*$/gm
const CODE_SPAN = /(`+)(?!`)((?:(?!\n\s*\n)[\s\S])*?[^`])\1(?!`)/g

/** The anchors that GitHub gives to the headings of a page. */
function findAnchors(markdown: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of markdown.replace(FENCE, blank).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '').replaceAll(' ', '-')
    let unique = anchor
    for (let copy = 1; anchors.has(unique); copy++) unique = `${anchor}-${copy}`
    anchors.add(unique)
  }
  return anchors
}

/** Names on a page that the repository doesn't have, as `page:line: fault`. */
function checkPage(repository: Repository, page: string): string[] {
  const markdown = repository.read(page)
  const folder = posix.dirname(page)
  const faults: { index: number; text: string }[] = []

  const prose = markdown.replace(FENCE, blank).replace(CODE_SPAN, blank)
  for (const match of prose.matchAll(/\]\(([^()\s]+)\)|^\[[^\]]+\]:[ \t]*(\S+)/gm)) {
    const target = match[1] ?? match[2] ?? ''
    if (/^[a-z][a-z+.-]*:/i.test(target)) continue
    const [path = '', anchor] = target.split('#')
    const linked = path === '' ? page : posix.join(folder, path)
    const isPage = linked.endsWith('.md')
    if (!exists(repository, linked)) faults.push({ index: match.index, text: `no such path: ${target}` })
    else if (anchor !== undefined && !(isPage && findAnchors(repository.read(linked)).has(anchor)))
      faults.push({ index: match.index, text: `no such heading: ${target}` })
  }

  const topFolders = new Set([...repository.paths].flatMap((path) => path.split('/').slice(0, -1).slice(0, 1)))
  const sources = [...repository.paths].filter((path) => /^[^/]+\/[^/]+\/src$/.test(path))
  // Fences first: a line of three backticks would otherwise start a code span.
  const fences = [...markdown.matchAll(FENCE)]
  const spans = [...markdown.replace(FENCE, blank).matchAll(CODE_SPAN)]
  for (const { 0: code, index: start } of [...fences, ...spans]) {
    for (const { path, index } of findPaths(code.replaceAll('`', ' '), topFolders)) {
      const isFromRoot = topFolders.has(path.split('/', 1)[0] ?? '')
      const bases = isFromRoot ? ['', folder] : [folder, posix.join(folder, 'src'), ...sources]
      if (bases.some((base) => exists(repository, posix.join(base, path)))) continue
      faults.push({ index: start + index, text: `no such path: ${path}` })
    }
  }

  for (const { 1: command = '', index } of markdown.matchAll(/\bnpm run ([\w:-]+)/g)) {
    if (!repository.commands.has(command)) faults.push({ index, text: `no such command: npm run ${command}` })
  }

  return faults
    .toSorted((a, b) => a.index - b.index)
    .map(({ index, text }) => `${page}:${markdown.slice(0, index).split('\n').length}: ${text}`)
}

/** The files of the checkout without what `.gitignore` names. Needs no git, so that it works in an unpacked archive too. */
function listFiles(root: string): string[] {
  const ignored = new Set(readFileSync(join(root, '.gitignore'), 'utf8').match(/^.+(?=\/$)/gm))
  const walk = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = posix.join(folder, entry.name)
      if (entry.name === '.git' || ignored.has(entry.name) || ignored.has(path)) return []
      if (entry.isDirectory()) return walk(path)
      return entry.name.endsWith('.tsbuildinfo') ? [] : [path]
    })
  return walk('')
}

test('every path, heading and command that a page names exists', () => {
  const root = join(import.meta.dirname, '..')
  const files = listFiles(root)
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const repository = createRepository(files, Object.keys(JSON.parse(read('package.json')).scripts), read)

  const pages = files.filter((file) => file.endsWith('.md'))
  expect(pages).toContain('README.md')
  expect(pages.flatMap((page) => checkPage(repository, page))).toEqual([])
})
