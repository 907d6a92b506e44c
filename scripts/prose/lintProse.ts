import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import dictionary from 'dictionary-en-gb'
import retextEnglish from 'retext-english'
import retextIndefiniteArticle from 'retext-indefinite-article'
import retextRepeatedWords from 'retext-repeated-words'
import retextSpell from 'retext-spell'
import { unified } from 'unified'
import { VFile } from 'vfile'
import { type Prose, readMarkdown, readStrings } from './readProse.ts'
import { rules } from './rules.ts'

export type Fault = { path: string; line: number; phrase: string; instead: string }

/** Each word also covers its plural and its genitive. */
const words = readFileSync(join(import.meta.dirname, 'words.txt'), 'utf8')
  .replace(/^#.*$/gm, '')
  .replace(/^.+$/gm, "$&\n$&s\n$&'s")

type Tree = { type: string; children?: Tree[]; position?: { start: { offset: number }; end: { offset: number } } }

/** The parser does not know Markdown: it takes the cells of a table and the items of a list for one sentence. */
const PART = /(?:(?!\||\n\s*(?:[-*>]|\d+\.)\s)[\s\S])+/g
const MARKS = /^[\s>#*_~-]*(?:\d+\. )?[*_"“]*/

/** A plugin of retext that finds the phrases of `rules`. */
function retextPhrases() {
  return (tree: unknown, file: VFile) => {
    const text = String(file)
    const visit = ({ type, children = [], position }: Tree): void => {
      for (const child of children) visit(child)
      if (type !== 'SentenceNode' || position === undefined) return
      const { start, end } = position
      for (const { 0: part, index } of text.slice(start.offset, end.offset).matchAll(PART)) {
        const marks = MARKS.exec(part)?.[0].length ?? 0
        for (const { pattern, instead } of rules) {
          for (const match of part.slice(marks).matchAll(new RegExp(pattern, 'gi'))) {
            const line = text.slice(0, start.offset + index + marks + match.index).split('\n').length
            file.message(instead, { place: { line, column: 1 } }).actual = match[0]
          }
        }
      }
    }
    visit(tree as Tree)
  }
}

const processor = unified()
  .use(retextEnglish)
  .use(retextPhrases)
  .use(retextRepeatedWords)
  .use(retextIndefiniteArticle)
  .use(retextSpell, { dictionary, personal: words, max: 5 })

async function lintText(path: string, { text, line }: Prose): Promise<Fault[]> {
  const file = new VFile(text)
  await processor.run(processor.parse(file), file)
  return file.messages.map((message) => {
    const options = (message.expected ?? []).slice(0, 4).join(', ')
    const isSpelling = message.source === 'retext-spell'
    return {
      path,
      line: line + (message.line ?? 1) - 1,
      phrase: (message.actual ?? '').replace(/\s+/g, ' '),
      instead: isSpelling
        ? `${options || 'another word'}, or add it to scripts/prose/words.txt`
        : options || message.reason,
    }
  })
}

/** Finds phrases that the writing guide replaces and words that the dictionary lacks, in a page or in the strings of a module. */
export async function lintFile(path: string, content: string): Promise<Fault[]> {
  const texts = path.endsWith('.md') ? readMarkdown(content) : readStrings(path, content)
  const faults: Fault[] = []
  for (const text of texts) faults.push(...(await lintText(path, text)))
  return faults.toSorted((a, b) => a.line - b.line)
}
