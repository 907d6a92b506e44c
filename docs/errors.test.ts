import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const page = await readFile(join(root, 'docs/errors.md'), 'utf8')

/** Codes outside the HTTP API are in the unions and tables of `errors.ts` files, and in calls that create errors. */
const LISTED = [/^\s*\| '([a-z0-9_]+)'$/gm, /^ {2}([a-z0-9_]+): (?:true|\d{3}),/gm]
const CREATED = [/(?:new Service|create\w*)Error\(\s*'([a-z0-9_]+)'/g]

test('docs/errors.md has one heading per error code, and no others', async () => {
  const codes = new Set<string>(Object.keys(errorCodes))
  for await (const path of glob('{packages,services,apps}/*/src/**/*.ts', { cwd: root })) {
    if (/\.(test|fake)\.ts$/.test(path)) continue
    const source = await readFile(join(root, path), 'utf8')
    const patterns = path.endsWith('rrors.ts') ? [...LISTED, ...CREATED] : CREATED
    for (const pattern of patterns) for (const [, code] of source.matchAll(pattern)) codes.add(code ?? '')
  }
  const headings = [...page.matchAll(/^### (\S+)$/gm)].map(([, heading]) => heading)
  expect(headings.toSorted()).toEqual([...codes].toSorted())
})

// After a change to the table, run `node scripts/bootstrap.mjs vitest run --project unit docs -u`.
test('the HTTP API section of docs/errors.md matches the table of codes', async () => {
  const entries = Object.entries(errorCodes).map(
    ([code, { status, retryable, title, advice }]) =>
      `### ${code}\n\nStatus ${status}${retryable ? ', retryable' : ''}. ${title}. ${advice}\n`,
  )
  const [before = '', section = '', after = ''] = page.split(/(?=^## (?:HTTP API|SDK)$)/m)
  const [intro = ''] = section.split(/^(?=### )/m)
  await expect([before, intro, entries.join('\n'), '\n', after].join('')).toMatchFileSnapshot('errors.md')
})
