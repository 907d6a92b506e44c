import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findTarballs } from './findTarballs.ts'

const packages = ['protocol', 'sdk'].map((name) => ({
  folder: `packages/${name}`,
  manifest: { name: `@countersign/${name}`, version: '1.2.3' },
}))
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-tarballs-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const find = (...names: string[]) => {
  for (const name of names) writeFileSync(join(folder, name), '')
  return findTarballs({ packages, folder })
}

test('returns each package with its tarball, in the given order', () => {
  const found = find('countersign-sdk-1.2.3.tgz', 'countersign-protocol-1.2.3.tgz')
  expect(found.map(({ tarball }) => tarball)).toEqual([
    join(folder, 'countersign-protocol-1.2.3.tgz'),
    join(folder, 'countersign-sdk-1.2.3.tgz'),
  ])
})

test.each([
  ['one is missing', ['countersign-sdk-1.2.3.tgz'], /countersign-protocol-1\.2\.3\.tgz/],
  ['one is of another version', ['countersign-sdk-1.2.3.tgz', 'countersign-protocol-1.2.2.tgz'], /1\.2\.2/],
  ['there is one more', ['countersign-sdk-1.2.3.tgz', 'countersign-protocol-1.2.3.tgz', 'x.tgz'], /x\.tgz/],
])('refused: %s', (_, names, reason) => {
  expect(() => find(...names)).toThrow(reason)
})
