import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

/** Besides the table of HTTP codes, codes are in the unions and tables of `errors.ts` files, and where an error is created. */
const LISTED = [/^\s*\| '([a-z0-9_]+)'$/gm, /^ {2}([a-z0-9_]+): (?:true|\d{3}),/gm]
const MADE = [/(?:new Service|create\w*)Error\(\s*'([a-z0-9_]+)'/g]

test('every error code has its heading in docs/errors.md, and every heading is a code', async () => {
  const codes = new Set<string>(Object.keys(errorCodes))
  for await (const path of glob('{packages,services,apps}/*/src/**/*.ts', { cwd: root })) {
    if (/\.(test|fake)\.ts$/.test(path)) continue
    const source = await readFile(join(root, path), 'utf8')
    const patterns = path.endsWith('rrors.ts') ? [...LISTED, ...MADE] : MADE
    for (const pattern of patterns) for (const [, code] of source.matchAll(pattern)) codes.add(code ?? '')
  }
  const page = await readFile(join(root, 'docs/errors.md'), 'utf8')
  const headings = [...page.matchAll(/^### (\S+)$/gm)].map(([, heading]) => heading)
  expect(headings.toSorted()).toEqual([...codes].toSorted())
})

test('the page says retry for the codes that can be retried, and for no other of the HTTP interface', async () => {
  const page = await readFile(join(root, 'docs/errors.md'), 'utf8')
  const saysRetry = Object.keys(errorCodes).filter((code) => new RegExp(`^### ${code}\n\nRetry\\b`, 'm').test(page))
  expect(saysRetry).toEqual(Object.entries(errorCodes).flatMap(([code, { retryable }]) => (retryable ? [code] : [])))
})
