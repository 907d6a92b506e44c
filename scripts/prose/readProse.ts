import { parseSync } from 'vite'

/** A run of prose, and the line of its file on which it starts. */
export type Prose = { text: string; line: number }

/** Replaces code by signs, so that offsets and lines stay and no two words become neighbours. */
const mask = (code: string) => code.replace(/[^\n]/g, '§')

const FRONT_MATTER = /^---\n[\s\S]*?\n---\n/
const COMMENT = /<!--[\s\S]*?-->/g
const FENCE = /^([ \t>]*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1\2[ \t]*$/gm
const CODE_SPAN = /(`+)(?!`)((?:(?!\n\s*\n)[\s\S])*?[^`])\1(?!`)/g
const DEFINITION = /^\[[^\]]+\]:.*$/gm
const LABEL = /\[[A-Z]\d+\]/g
const TARGET = /(?<=\])\([^)\s]*\)/g
const TAG = /<\/?[a-z][^>]*>/gi
const URL = /\bhttps?:\/\/[^\s)>]+/g
/**
 * Identifiers, numbers with units, names of files and acronyms: with a digit, an underscore, an inner capital or an inner full stop.
 * Also options of commands, names of packages and schemes of URLs.
 */
const NAME =
  /(?<![\p{L}\d])(?:(?=[\w.-]*(?:[\d_]|[a-z][A-Z]|[A-Z]{2}|\w\.[a-z]))\w[\w.-]*\w\b|--[a-z-]+|@[a-z]+\/[a-z-]+|https?\b)/gu

export function readMarkdown(markdown: string): Prose[] {
  const hidden = [FRONT_MATTER, COMMENT, FENCE, CODE_SPAN, DEFINITION, LABEL, TARGET, TAG, URL, NAME]
  return [{ text: hidden.reduce((text, pattern) => text.replace(pattern, mask), markdown), line: 1 }]
}

/** Any node of the syntax tree (ESTree, with TypeScript). */
type Node = { type: string; start: number; end: number; [member: string]: unknown }

/** Their strings are for the browser or the compiler. */
const isCode = ({ type, name }: Node) =>
  /^(?:Import|Export(?:All|Named))Declaration$/.test(type) ||
  (type === 'JSXAttribute' && /^(?:className|d|rel|viewBox)$/.test(String((name as Node).name)))

const toText = ({ type, value }: Node): string => {
  if (type === 'JSXText' || (type === 'Literal' && typeof value === 'string')) return String(value)
  return type === 'TemplateElement' ? ((value as { cooked: string | null }).cooked ?? '') : ''
}

/** Part of a tag at either end belongs to one that a template continues. */
const withoutCode = (text: string) =>
  text
    .replace(TAG, mask)
    .replace(/^[^<]*">|<[a-z/][^>]*$/g, mask)
    .replace(CODE_SPAN, mask)
    .replace(URL, mask)
    .replace(NAME, mask)

/** The JSX text of a module, and its strings of several words. */
export function readStrings(path: string, code: string): Prose[] {
  const { program, errors } = parseSync(path, code)
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`)
  const found: Prose[] = []
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const node = value as Node
    if (isCode(node)) return
    const text = typeof node.type === 'string' ? withoutCode(toText(node)) : ''
    const isProse = node.type === 'JSXText' ? /\p{L}{2}/u : /\p{L}{2,}.*\s.*\p{L}/su
    if (isProse.test(text)) found.push({ text, line: code.slice(0, node.start).split('\n').length })
    for (const child of Object.values(node)) visit(child)
  }
  visit(program)
  return found
}
