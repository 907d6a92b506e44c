import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listChangesets, toManifest } from './applyChangesets.ts'
import { parseChangeset, toChangelog, toNextVersion } from './changesets.ts'
import { readPublished } from './readPublished.ts'

const NAMES = ['@countersign/sdk', '@countersign/protocol']
const parse = (text: string) => parseChangeset(text, NAMES)
const change = (level: string, name = NAMES[0], text = 'It worked.') =>
  parse(`---\n"${name}": ${level}\n---\n\n${text}\n`)

test('every file in .changeset can be parsed', () => {
  const root = join(import.meta.dirname, '../..')
  const published = readPublished(root).map(({ manifest }) => manifest.name)
  for (const path of listChangesets(root)) {
    const { levels } = parseChangeset(readFileSync(path, 'utf8'), published)
    expect(levels.size, path).toBeGreaterThan(0)
  }
})

describe('parseChangeset', () => {
  test('reads packages, their levels and the sentence', () => {
    const file = '---\n"@countersign/sdk": minor\n\'@countersign/protocol\': patch\n---\n\nIt worked.\nAt last.\n'
    const { levels, text } = parse(file)
    expect([...levels]).toEqual([
      ['@countersign/sdk', 'minor'],
      ['@countersign/protocol', 'patch'],
    ])
    expect(text).toBe('It worked.\nAt last.')
  })

  test.each([
    ['no packages', 'It worked.', /between two lines/],
    ['an empty list', '---\n\n---\nIt worked.', /expected "PACKAGE"/],
    ['no sentence', '---\n"@countersign/sdk": minor\n---\n \n', /a sentence/],
    ['another level', '---\n"@countersign/sdk": huge\n---\nIt worked.', /patch\|minor\|major/],
    ['a package that is not published', '---\n"@countersign/web": minor\n---\nIt worked.', /web is not published/],
    ['a package twice', '---\n"@countersign/sdk": minor\n"@countersign/sdk": patch\n---\nIt worked.', /twice/],
  ])('refuses %s', (_, text, fault) => {
    expect(() => parse(text)).toThrow(fault)
  })
})

test.each([
  ['0.1.9', ['patch'], '0.1.10'],
  ['0.1.9', ['patch', 'minor', 'patch'], '0.2.0'],
  ['0.1.9', ['major'], '0.2.0'],
  ['1.4.2', ['minor'], '1.5.0'],
  ['1.4.2', ['minor', 'major'], '2.0.0'],
])('after %s, %j makes %s', (version, levels, next) => {
  expect(
    toNextVersion(
      version,
      levels.map((level) => change(level)),
    ),
  ).toBe(next)
})

test("puts a new entry above earlier ones, with only this package's changes", () => {
  const changesets = [change('minor', NAMES[0], 'One.\nMore of it.'), change('patch', NAMES[1], 'Two.')]
  const changelog = '# @countersign/sdk\n\n## 0.1.0\n\n- First.\n'
  expect(toChangelog(changelog, { name: '@countersign/sdk', version: '0.2.0' }, changesets)).toBe(
    '# @countersign/sdk\n\n## 0.2.0\n\n- One.\n  More of it.\n\n## 0.1.0\n\n- First.\n',
  )
  const other = toChangelog('# Other\n', { name: 'other', version: '0.2.0' }, changesets)
  expect(other).toBe('# Other\n\n## 0.2.0\n\n- No changes. Released with the other packages.\n')
})

test('changes the version of published packages and of references to them, and nothing else', () => {
  const own = '{ "name": "@countersign/sdk", "version": "0.1.0", "dependencies": { "@countersign/protocol": "0.1.0" } }'
  const other = '{ "name": "app", "version": "0.1.0", "dependencies": { "@countersign/sdk": "0.1.0", "x": "0.1.0" } }'
  const move = (text: string) => JSON.parse(toManifest(text, { names: NAMES, version: '0.2.0' }))
  expect(move(own)).toMatchObject({ version: '0.2.0', dependencies: { '@countersign/protocol': '0.2.0' } })
  expect(move(other)).toMatchObject({ version: '0.1.0', dependencies: { '@countersign/sdk': '0.2.0', x: '0.1.0' } })
})
