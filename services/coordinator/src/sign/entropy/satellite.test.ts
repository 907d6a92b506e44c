import { randomBytes } from 'node:crypto'
import { startSatellite } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { checkSample, createEntropyKeys, isSampleSigned } from './checkSample.ts'
import type { Fetch } from './fetchJson.ts'
import { createSatelliteSource } from './satellite.ts'

const good = {
  source: 'sat-1',
  value: 'ab'.repeat(32),
  timestamp: '2026-06-15T12:00:00.000Z',
  sequence: 7,
  publicKey: 'cd'.repeat(32),
  signature: 'ef'.repeat(64),
}

function createSource(answer: unknown) {
  const urls: string[] = []
  const fetch: Fetch = async (url) => {
    urls.push(String(url))
    return Response.json(answer)
  }
  return { urls, source: createSatelliteSource({ url: 'https://satellite.example/base/', fetch }) }
}

test('converts a sample to a witness, field by field', async () => {
  const { urls, source } = createSource({ samples: [good] })
  expect(await source.getSamples(1)).toEqual([
    {
      source: 'sat-1',
      valueHex: good.value,
      signatureHex: good.signature,
      publicKey: good.publicKey,
      timestamp: good.timestamp,
      sequence: 7,
    },
  ])
  expect(urls).toEqual(['https://satellite.example/base/v1/samples?count=1'])
  expect([source.name, source.isSigned]).toEqual(['satellite', true])
})

test('accepts fewer than requested, but not more', async () => {
  const { source } = createSource({ samples: [good, good] })
  expect(await source.getSamples(3)).toHaveLength(2)
  expect(await source.getSamples(2)).toHaveLength(2)
  await expect(source.getSamples(1)).rejects.toMatchObject({ code: 'too_many_samples' })
  expect(await createSource({ samples: [] }).source.getSamples(1)).toEqual([])
})

test.each([0, 257, -1, 1.5, Number.NaN])('does not send a count of %d', async (count) => {
  const { urls, source } = createSource({ samples: [] })
  await expect(source.getSamples(count)).rejects.toThrow(RangeError)
  expect(urls).toEqual([])
})

test.each<[string, unknown]>([
  ['null', null],
  ['a list', [good]],
  ['no samples', {}],
  ['samples that are no list', { samples: { 0: good } }],
])('%s is malformed', async (_name, answer) => {
  await expect(createSource(answer).source.getSamples(9)).rejects.toMatchObject({ code: 'malformed' })
})

describe('one invalid field makes the whole response malformed', () => {
  test.each<[string, object]>([
    ['value', { value: 'AB'.repeat(32) }],
    ['value', { value: `0x${'ab'.repeat(32)}` }],
    ['value', { value: 'ab'.repeat(31) }],
    ['value', { value: `${'ab'.repeat(32)}\n` }],
    ['value', { value: 1 }],
    ['timestamp', { timestamp: '2026-06-15T12:00:00Z' }],
    ['timestamp', { timestamp: '2026-06-15T12:00:00.000+02:00' }],
    ['timestamp', { timestamp: '2026-02-30T12:00:00.000Z' }],
    ['timestamp', { timestamp: 1_781_524_800_000 }],
    ['sequence', { sequence: '7' }],
    ['sequence', { sequence: 7.5 }],
    ['sequence', { sequence: -1 }],
    ['sequence', { sequence: 2 ** 53 }],
    ['publicKey', { publicKey: 'cd'.repeat(33) }],
    ['publicKey', { publicKey: null }],
    ['signature', { signature: 'ef'.repeat(63) }],
    ['signature', { signature: undefined }],
    ['source', { source: '' }],
    ['source', { source: 'x'.repeat(257) }],
    ['source', { source: 'sat\u202e' }],
  ])('%s: %j', async (details, change) => {
    const { source } = createSource({ samples: [good, { ...good, ...change }] })
    await expect(source.getSamples(2)).rejects.toMatchObject({ code: 'malformed', details })
  })

  test('rejects a malformed sample', async () => {
    const { source } = createSource({ samples: [null] })
    await expect(source.getSamples(1)).rejects.toMatchObject({ code: 'malformed' })
  })
})

test('samples signed by a satellite verify over HTTP', async () => {
  const satellite = await startSatellite({ seed: randomBytes(8).toString('hex') })
  try {
    const samples = await createSatelliteSource({ url: satellite.url, fetch }).getSamples(256)
    expect(samples).toHaveLength(256)
    const publicKeys = createEntropyKeys([satellite.publicKey])
    const options = { publicKeys, now: Date.now(), maxAgeMs: 60_000, isSigned: true, allowUnsigned: false }
    const faults = samples.map((witness) => checkSample(witness, options))
    expect(new Set(faults)).toEqual(new Set([undefined]))
    expect(new Set(samples.map(isSampleSigned))).toEqual(new Set([true]))
  } finally {
    await satellite.stop()
  }
})
