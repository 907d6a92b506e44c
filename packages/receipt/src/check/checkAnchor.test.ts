import { readFileSync } from 'node:fs'
import { ServiceError } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import type { AnchorCase } from '../../spec/createAnchorCases.ts'
import type { ExpectedAnchored } from '../../spec/createAnchorFiles.ts'
import { asHardware, check, stepOf } from '../../test/checkReceipt.ts'
import type { CheckReceiptOptions } from '../checkReceipt.ts'
import type { Anchors } from './anchors.ts'
import type { ChainReader } from './chainReader.ts'

const spec = new URL('../../spec/', import.meta.url)
const read = (path: string) => new Uint8Array(readFileSync(new URL(path, spec)))
const readJson = <Value>(path: string) => JSON.parse(new TextDecoder().decode(read(path))) as Value

const golden = readJson<ExpectedAnchored & { anchors: Anchors }>('golden-anchor/expected.json')
const cases = readJson<AnchorCase[]>('golden-anchor/cases.json')
const { receipts } = readJson<{ receipts: Record<string, { anchors: Anchors }> }>('golden-v2/cases/cases.json')
const hardware = asHardware()

function toChain({ events, transaction }: NonNullable<NonNullable<AnchorCase['reader']>['chain']>): ChainReader {
  return {
    getLogs: async () => events.map((event) => ({ ...event, blockTime: new Date(event.blockTime) })),
    getTransactionState: async () => transaction,
  }
}

/** Checks the receipt of a case, with further options. */
function checkCase({ receipt, anchor, reader = {} }: AnchorCase, options: Partial<CheckReceiptOptions> = {}) {
  const { isHardware, chain, isEventDue } = reader
  const folder = receipt === undefined ? 'golden-anchor' : `golden-v2/${receipt}`
  const { block, ...named } = { ...golden.anchor, ...anchor }
  const anchors = {
    ...(receipt === undefined ? {} : receipts[receipt]?.anchors),
    ...(receipt === undefined ? golden.anchors : { logContracts: golden.anchors.logContracts }),
    ...reader.anchors,
  }
  return check(
    {
      bytes: read(`${folder}/attestation.json`),
      collateral: read('golden/collateral.json'),
      blocks: {
        release: read(`${folder}/release.json`),
        batch: read(`${folder}/batch.json`),
        coordinator: read('golden-v2/coordinator.json'),
        ...(receipt === 'cases/logged-vault' && { policy: read(`${folder}/policy.json`) }),
      },
      // A null leaves a member out.
      anchors: Object.fromEntries(Object.entries(anchors).filter(([, value]) => value !== null)),
    },
    {
      ...(isHardware && hardware),
      chain: chain && toChain(chain),
      isEventDue,
      anchor: {
        ...named,
        block:
          block === null
            ? undefined
            : block === undefined
              ? read('golden-anchor/anchor.json')
              : new TextEncoder().encode(block),
      },
      ...options,
    },
  )
}

const findCase = (name: string) => cases.find((one) => one.name === name) as AnchorCase
const good = findCase('a checkpoint after 9 s')

describe('anchor-v1, section 3', () => {
  test.each(cases)('$name: $verdict', async (one) => {
    const result = await checkCase(one)
    const steps = Object.keys(one.steps).map((id) => [id, stepOf(result, id as keyof typeof one.steps)?.status])
    expect({ verdict: result.verdict, steps: Object.fromEntries(steps) }).toEqual({
      verdict: one.verdict,
      steps: one.steps,
    })
  })
})

describe('the code of the step', () => {
  test.each([
    ['no event', undefined],
    ['an event with one word of data', 'event_malformed'],
    ['an event of another block', undefined],
    ['an empty block', undefined],
    ['a named block with a line feed at the end', 'receipt_not_canonical'],
    ['a named block with a member too many', 'receipt_malformed'],
    ['a named block of another version', 'receipt_version_unsupported'],
    ['a note without lines', 'note_malformed'],
    ['a note with one witness too few', 'quorum_missing'],
    ['a note with cosignatures of other witnesses', 'quorum_missing'],
    ['a note without the log’s signature', 'note_unsigned'],
    ['a note with only the signature of another log', 'note_unsigned'],
    ['a note with the log’s signature of another text', 'note_signature_invalid'],
    ['a quorum, and an invalid cosignature of the third witness', 'note_signature_invalid'],
    ['a cosigned checkpoint of another origin', 'note_unsigned'],
    ['a cosigned checkpoint with an extension line', undefined],
    ['the note of an earlier checkpoint', undefined],
    ['no path', 'inclusion_invalid'],
    ['the path of another entry', 'inclusion_invalid'],
    ['a checkpoint that ends before the entry', 'inclusion_invalid'],
  ])('%s: %s', async (name, code) => {
    const step = stepOf(await checkCase(findCase(name)), 'event')
    expect(step).toMatchObject({ status: 'fail' })
    expect(step?.code).toBe(code)
  })
})

test('the step names the block, its time, the size and the index', async () => {
  expect(stepOf(await checkCase(good), 'event')?.detail).toBe(
    'Block 12 of 2026-06-15T12:00:09.123Z has a checkpoint of 13 entries, and entry 6 is this signature.',
  )
})

test('requests exactly this contract, log and size', async () => {
  const queries: unknown[] = []
  const { chain } = good.reader ?? {}
  const reader: ChainReader = {
    getLogs: async (query) => {
      queries.push(query)
      return []
    },
    getTransactionState: async () => 'mined',
  }
  await checkCase(good, { chain: reader })
  expect(queries).toEqual([{ address: golden.anchor.contract, topics: chain?.events[0]?.topics }])
})

test('doesn’t ask the node about a log that the reader doesn’t list', async () => {
  const getLogs = () => Promise.reject(new Error('asked'))
  const result = await checkCase(findCase('no listed logs'), {
    chain: { getLogs, getTransactionState: async () => 'unknown' },
  })
  expect(stepOf(result, 'event')?.detail).toContain('your manifest doesn’t list')
})

test('an unavailable node skips the step', async () => {
  const error = new ServiceError('chain_unavailable', 'the chain is unavailable', { details: 'node.test answers 503' })
  const getLogs = () => Promise.reject(error)
  const result = await checkCase(good, { chain: { getLogs, getTransactionState: async () => 'unknown' } })
  expect(stepOf(result, 'event')).toMatchObject({
    status: 'skip',
    detail: 'The chain is unavailable: node.test answers 503.',
  })
  expect(result).toMatchObject({ verdict: 'incomplete', isEventMissing: false })
})

test.each([
  ['a hash of 31 bytes', 'ab'.repeat(31)],
  ['a hash in upper case', 'AB'.repeat(32)],
  ['a text', 'path'],
])('%s in the path fails the step', async (_, hash) => {
  const anchor = { ...good.anchor, path: golden.anchor.path.with(0, hash) }
  expect(await checkCase({ ...good, anchor })).toMatchObject({ verdict: 'failed' })
})

test('a receipt of version 1 with an anchor is incomplete', async () => {
  const { cid: _, anchors, roots } = readJson<{ cid: string; anchors: Anchors; roots: [] }>('golden/expected.json')
  expect(roots).toHaveLength(2)
  const { chain } = good.reader ?? {}
  const result = await check(
    {
      bytes: read('golden/receipt.json'),
      collateral: read('golden/collateral.json'),
      anchors: { ...anchors, logContracts: golden.anchors.logContracts },
    },
    { chain: chain && toChain(chain), anchor: { ...golden.anchor, block: read('golden-anchor/anchor.json') } },
  )
  expect(stepOf(result, 'event')).toMatchObject({
    status: 'skip',
    detail: 'Not checked: the receipt proves no log entry.',
  })
  expect(result.verdict).toBe('incomplete')
})

test('a receipt whose proof of the log is invalid doesn’t reach the anchor', async () => {
  const text = new TextDecoder().decode(read('golden-anchor/attestation.json'))
  const changed = new TextEncoder().encode(text.replace('index 6\\n', 'index 7\\n'))
  const { chain } = good.reader ?? {}
  const result = await check(
    {
      bytes: changed,
      collateral: read('golden/collateral.json'),
      anchors: golden.anchors,
      blocks: {
        release: read('golden-anchor/release.json'),
        batch: read('golden-anchor/batch.json'),
        coordinator: read('golden-v2/coordinator.json'),
      },
    },
    { chain: chain && toChain(chain), anchor: { ...golden.anchor, block: read('golden-anchor/anchor.json') } },
  )
  expect(['log', 'event'].map((id) => stepOf(result, id as 'log')?.status)).toEqual(['fail', 'skip'])
  expect(result.verdict).toBe('failed')
})
