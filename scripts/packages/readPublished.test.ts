import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPublished } from './readPublished.ts'

const published = readPublished(join(import.meta.dirname, '../..'))
const names = published.map(({ manifest }) => manifest.name)

test('the SDK, the verifier and what they need are published, and nothing else', () => {
  expect(names.toSorted()).toEqual(
    ['attestation', 'log', 'policy', 'protocol', 'receipt', 'sdk', 'verifier', 'verify'].map(
      (name) => `@countersign/${name}`,
    ),
  )
})

test('each stands after those that it depends on, so that no published package names one that is not there', () => {
  for (const [index, { manifest }] of published.entries()) {
    const needed = Object.keys(manifest.dependencies ?? {}).filter((name) => names.includes(name))
    expect(needed.every((name) => names.indexOf(name) < index)).toBe(true)
  }
})
