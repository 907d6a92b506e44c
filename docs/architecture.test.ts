import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
/** As the page writes them; the others have the names of their folders. */
const NAMES: Readonly<Record<string, string>> = { rootSecret: 'root secret', web: 'web app' }
const toName = (folder: string) => NAMES[basename(folder)] ?? basename(folder)

function readReferences(folder: string): string[] {
  const { references = [] } = JSON.parse(readFileSync(join(root, folder, 'tsconfig.json'), 'utf8')) as {
    references?: { path: string }[]
  }
  return references.map(({ path }) => toName(path)).toSorted()
}

test('the page has every arrow between packages, and no other', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const arrows = [...page.matchAll(/^(\S.*?) ─+▶ (.+)$/gm)].map(([, from = '', to = '']) => [
    from,
    to.split(', ').toSorted(),
  ])
  const folders = ['packages', 'services', 'apps'].flatMap((kind) =>
    readdirSync(join(root, kind)).map((name) => `${kind}/${name}`),
  )
  const expected = folders
    .filter((folder) => folder !== 'packages/testing' && folder !== 'packages/protocol')
    .map((folder) => [toName(folder), readReferences(folder)])
  expect(Object.fromEntries(arrows)).toEqual(Object.fromEntries(expected))
})
