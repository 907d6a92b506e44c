import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPublished } from './readPublished.ts'

const published = readPublished(join(import.meta.dirname, '../..'))
const names = published.map(({ manifest }) => manifest.name)

test('publishes the SDK, the verifier and their dependencies, and nothing else', () => {
  expect(names.toSorted()).toEqual(
    ['attestation', 'log', 'policy', 'protocol', 'receipt', 'sdk', 'verifier', 'verify'].map(
      (name) => `@countersign/${name}`,
    ),
  )
})

test('lists each package after its dependencies', () => {
  for (const [index, { manifest }] of published.entries()) {
    const needed = Object.keys(manifest.dependencies ?? {}).filter((name) => names.includes(name))
    expect(needed.every((name) => names.indexOf(name) < index)).toBe(true)
  }
})
