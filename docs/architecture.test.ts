import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
function readReferences(folder: string): string[] {
  const { references = [] } = JSON.parse(readFileSync(join(root, folder, 'tsconfig.json'), 'utf8')) as {
    references?: { path: string }[]
  }
  return references.map(({ path }) => basename(path)).toSorted()
}

test('the page lists the imports of every package', () => {
  const page = readFileSync(join(root, 'docs/contribute/architecture.md'), 'utf8')
  const [, list = ''] = /^### Imports$(.*?)^#/ms.exec(page) ?? []
  const items = [...list.matchAll(/^- `(\w+)`: (.+)$/gm)].map(([, name = '', imports = '']) => [
    name,
    imports.split(', ').toSorted(),
  ])
  const folders = ['packages', 'services', 'apps'].flatMap((kind) =>
    readdirSync(join(root, kind)).map((name) => `${kind}/${name}`),
  )
  const expected = folders
    .filter((folder) => folder !== 'packages/testing' && folder !== 'packages/protocol')
    .map((folder) => [basename(folder), readReferences(folder)])
  expect(Object.fromEntries(items)).toEqual(Object.fromEntries(expected))
})
