import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SECTION = /^# --- (.+) ---\n\n/m
/** A comment, then the settings that it explains. */
const ITEM = /((?:# (?![A-Z][A-Z0-9_]*=).*\n)+)((?:(?:# )?[A-Z][A-Z0-9_]*=.*(?:\n|$))+)/g
const SETTING = /^(# )?([A-Z][A-Z0-9_]*)=(.*)$/gm

const toText = (comment: string) =>
  comment
    .replace(/^# ?/gm, '')
    .replaceAll('\n', ' ')
    .replace(
      /`docs\/([a-z]+)\/([\w-]+)\.md`/g,
      (_, folder, page) => `[${page}](${folder === 'run' ? '' : `../${folder}/`}${page}.md)`,
    )
    .trim()

function toItem(comment: string, settings: string): string {
  const [text = '', stated] = toText(comment).split(/ ?Default: (.+)\./)
  const names = [...settings.matchAll(SETTING)].map(([, isDefault, name, value]) => {
    const fallback = stated ?? (isDefault && value ? `\`${value}\`` : '')
    return `\`${name}\`${fallback && ` (default ${fallback})`}`
  })
  return `- ${names.join(', ')}: ${text}`
}

function toPage(template: string): string {
  const [header = '', ...sections] = template.split(SECTION)
  const intro = toText(header).replace('`.env.example`', '[`.env.example`](../../.env.example)')
  const parts = ['# Configuration', intro]
  for (let index = 0; index < sections.length; index += 2) {
    const [title = '', body = ''] = sections.slice(index)
    const intro = body.match(/^((?:#.*\n)+)\n/)?.[1] ?? ''
    const items = [...body.slice(intro.length).matchAll(ITEM)].map(([, comment = '', settings = '']) =>
      toItem(comment, settings),
    )
    parts.push(`## ${title}`, ...(intro === '' ? [] : [toText(intro)]), items.join('\n'))
  }
  return `${parts.join('\n\n')}\n`
}

// After a change to the template, run `node scripts/bootstrap.mjs vitest run --project unit docs -u`.
test('docs/run/configuration.md matches .env.example', async () => {
  const template = await readFile(join(import.meta.dirname, '../.env.example'), 'utf8')
  await expect(toPage(template)).toMatchFileSnapshot('run/configuration.md')
})
