import { toCanonicalJson } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { goldenSignings, issueGolden, parseGolden } from '../../spec/createSpecFiles.ts'
import { parseReceipt } from '../canonicalCodec.ts'
import { toBlockRelease } from './assemble.ts'
import { encodeBlock, parseBlock } from './blocks.ts'

const issue = await issueGolden({ kind: 'transaction' })
const golden = parseGolden(issue)
const bytes = { attestation: issue.bytes, ...issue.blocks }
const names = ['attestation', 'batch', 'coordinator', 'release'] as const
const withCode = (code: string) => expect.objectContaining({ code })

describe('each block has one form', () => {
  test.each(names)('%s: bytes and block survive a round trip', (name) => {
    expect(encodeBlock(name, parseBlock(name, bytes[name]))).toEqual(bytes[name])
  })

  test.each(names)('%s: rejects every other block', (name) => {
    for (const other of names.filter((one) => one !== name)) {
      expect(() => parseBlock(name, bytes[other])).toThrow(withCode('receipt_version_unsupported'))
    }
    expect(() => parseReceipt(bytes[name])).toThrow(withCode('receipt_version_unsupported'))
  })

  test.each(names)('%s: rejects another spelling', (name) => {
    const text = new TextDecoder().decode(bytes[name])
    const reversed = JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).toReversed()))
    for (const wrong of [`${text} `, text.slice(0, -1), reversed, text.replace('{', '{"version":"x",'), 'hello']) {
      expect(() => parseBlock(name, new TextEncoder().encode(wrong))).toThrow(withCode('receipt_not_canonical'))
    }
    expect(() => parseBlock(name, new Uint8Array(262_145))).toThrow(withCode('receipt_too_large'))
  })

  test.each(Object.entries(goldenSignings))('%s: rejects additions anywhere', async (_, signing) => {
    const blocks = parseGolden(await issueGolden(signing))
    for (const name of names) {
      for (const path of memberPaths(blocks[name])) {
        const copy = structuredClone(blocks[name])
        const parent = path.reduce((value: unknown, part) => (value as Record<string, unknown>)[part], copy)
        ;(parent as Record<string, unknown>).stranger = 1
        expect(() => parseBlock(name, toCanonicalJson(copy))).toThrow(withCode('receipt_malformed'))
      }
    }
  })

  test('has no personal data: no e-mail, user, slug or session secret', () => {
    for (const name of names) {
      expect(new TextDecoder().decode(bytes[name])).not.toMatch(/\w@\w+\.|email|user|slug|sid|grant/i)
    }
  })

  test('rejects a receipt of more than 256 KiB, also for writing', () => {
    const { attestation } = golden
    if (attestation.kind !== 'transaction') throw new Error('not a transaction')
    const subject = { ...attestation.subject, data: `0x${'00'.repeat(131_072)}` as const }
    expect(() => encodeBlock('attestation', { ...attestation, subject })).toThrow(withCode('receipt_too_large'))
  })
})

test('rejects a release of blocks with other kinds of CIDs', () => {
  const { batch, collateral, coordinator } = golden.release
  expect(toBlockRelease({ batch, collateral, coordinator })).toHaveLength(119)
  for (const wrong of ['', 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG', batch.toUpperCase()]) {
    expect(() => toBlockRelease({ batch: wrong, collateral, coordinator })).toThrow(withCode('receipt_malformed'))
  }
})

/** The paths of all objects in a value. */
function memberPaths(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  const below = Object.entries(value).flatMap(([name, member]) => memberPaths(member, [...path, name]))
  return Array.isArray(value) ? below : [path, ...below]
}
