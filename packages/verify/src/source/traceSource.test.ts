import { describe, expect, test } from 'vitest'
import { issue, toManifest } from '../../test/issues.ts'
import {
  appCompose,
  changeCompose,
  createRecord,
  createReleaseFiles,
  createSigner,
  hashText,
  releaseSigner,
  releaseWitness,
} from '../../test/releases.ts'
import { verify } from '../verify.ts'
import { MAX_RECORD_BYTES } from './releaseRecord.ts'
import { type TraceSourceRequest, traceSource } from './traceSource.ts'

const other = createSigner('other.example/log')
const first = createRecord({ release: '0.1.9', images: [], compose: '00'.repeat(32) })
const record = createRecord()
const honest = createReleaseFiles([first, record])
const reader = { releaseKey: releaseSigner.vkey, witnesses: [releaseWitness.hex] }

type Event = { name: string; payload: string }

async function createOutcome(events: readonly Event[] | undefined) {
  const issued = await issue(events === undefined ? {} : { events })
  const fetchBytes = () => Promise.reject(new Error('offline'))
  return verify(
    { fetchBytes, now: () => new Date() },
    {
      subject: { kind: 'file', name: 'receipt.json', bytes: issued.bytes },
      manifests: [toManifest(issued)],
      collaterals: [{ name: 'collateral.json', bytes: issued.collateral }],
      allowMock: true,
    },
  )
}

type Attack = {
  /** The file that the guest measured. */
  text?: string
  /** The file that the reader gets. */
  served?: string
  events?: readonly Event[]
  files?: ReadonlyMap<string, Uint8Array> | undefined
  request?: Partial<TraceSourceRequest>
}

async function trace({ text = appCompose, served = text, files = honest, request = {}, ...attack }: Attack = {}) {
  const outcome = await createOutcome(attack.events ?? [{ name: 'compose-hash', payload: hashText(text) }])
  const result = await traceSource(
    {
      findAppCompose: async () => ({ bytes: new TextEncoder().encode(served), problems: [] }),
      readReleaseFile: async (name) => files.get(name),
    },
    outcome,
    { ...reader, ...request },
  )
  const statuses = Object.fromEntries(result.links.map(({ id, status }) => [id, status]))
  const codes = Object.fromEntries(result.links.flatMap(({ id, code }) => (code === undefined ? [] : [[id, code]])))
  return { ...result, statuses, codes }
}

const change = (files: ReadonlyMap<string, Uint8Array>, name: string, bytes: Uint8Array | undefined) => {
  const changed = new Map(files)
  if (bytes === undefined) changed.delete(name)
  else changed.set(name, bytes)
  return changed
}

test('follows a receipt to the commit, and names the unchecked links', async () => {
  const { statuses, source, settings } = await trace()
  expect(statuses).toEqual({
    'event-log': 'pass',
    'app-compose': 'pass',
    template: 'pass',
    image: 'pass',
    'release-log': 'pass',
    'release-key': 'pass',
    'release-witnesses': 'pass',
    rebuild: 'skip',
    guest: 'skip',
    coordinator: 'skip',
  })
  expect(source).toEqual({
    release: '0.2.0',
    commit: 'c0'.repeat(20),
    tree: '7e'.repeat(20),
    recordedAt: '2026-12-01T12:00:00.000Z',
    digest: `sha256:${'0'.repeat(64)}`,
  })
  expect(settings).toHaveLength(8)
})

test('skips the key and the witnesses that the reader did not name', async () => {
  const { statuses, source } = await trace({ request: { releaseKey: undefined, witnesses: [] } })
  expect(statuses).toMatchObject({ 'release-log': 'pass', 'release-key': 'skip', 'release-witnesses': 'skip' })
  expect(source).toBeDefined()
})

test('skips what needs a log without one', async () => {
  const { statuses, codes, source } = await trace({ files: new Map() })
  expect(statuses).toMatchObject({ 'app-compose': 'pass', template: 'skip', image: 'skip', 'release-log': 'skip' })
  expect({ codes, source }).toEqual({ codes: {}, source: undefined })
})

test('skips everything for a receipt without an event log', async () => {
  const outcome = await createOutcome(undefined)
  const deps = { findAppCompose: async () => ({ bytes: undefined, problems: [] }), readReleaseFile: undefined }
  const { links, source } = await traceSource(deps, outcome, { witnesses: [] })
  expect(new Set(links.map(({ status }) => status))).toEqual(new Set(['skip']))
  expect(source).toBeUndefined()
})

test('skips links whose server is down', async () => {
  const outcome = await createOutcome([{ name: 'compose-hash', payload: hashText(appCompose) }])
  const { VerifierError } = await import('../errors.ts')
  const down = async () => Promise.reject(new VerifierError('fetch_failed', 'could not fetch'))
  const { links } = await traceSource({ findAppCompose: down, readReleaseFile: down }, outcome, reader)
  expect(links.filter(({ status }) => status === 'fail')).toEqual([])
})

test('names no source if a step of the receipt failed', async () => {
  const outcome = await createOutcome([{ name: 'compose-hash', payload: hashText(appCompose) }])
  const deps = {
    findAppCompose: async () => ({ bytes: new TextEncoder().encode(appCompose), problems: [] }),
    readReleaseFile: async (name: string) => honest.get(name),
  }
  const steps = outcome.steps.map((step) => (step.id === 'quote' ? { ...step, status: 'fail' as const } : step))
  expect((await traceSource(deps, { ...outcome, conclusion: 'failed' }, reader)).source).toBeUndefined()
  expect((await traceSource(deps, { ...outcome, steps }, reader)).links[0]?.status).toBe('skip')
})

describe('attacks fail their link', () => {
  const payload = hashText(appCompose)
  const elsewhere = changeCompose((text) => text.replace('sha256:0', 'sha256:1'))
  const withService = changeCompose((text) => `${text}  other:\n    image: a.example/other\n`)

  test.each<[string, Attack, Record<string, string>]>([
    ['another text', { served: `${appCompose} ` }, { 'app-compose': 'app_compose_rejected' }],
    ['an oversized text', { served: 'x'.repeat(300_000) }, { 'app-compose': 'app_compose_rejected' }],
    ['no event', { events: [{ name: 'app-id', payload: '00' }] }, { 'event-log': 'app_compose_rejected' }],
    [
      'a second event',
      {
        events: [
          { name: 'compose-hash', payload: '11'.repeat(32) },
          { name: 'compose-hash', payload },
        ],
      },
      { 'event-log': 'app_compose_rejected' },
    ],
    ['a short event', { events: [{ name: 'compose-hash', payload: '11' }] }, { 'event-log': 'app_compose_rejected' }],
    ['a second service', { text: withService }, { template: 'app_compose_rejected' }],
    ['an unreleased digest', { text: elsewhere }, { image: 'app_compose_rejected' }],
    [
      'the digest of another image',
      {
        files: createReleaseFiles([
          createRecord({ images: [{ name: 'web', digest: `sha256:${'0'.repeat(64)}`, files: '00'.repeat(32) }] }),
        ]),
      },
      { image: 'app_compose_rejected' },
    ],
    [
      'the form of another release',
      { files: createReleaseFiles([createRecord({ compose: '00'.repeat(32) }), createRecord({ images: [] })]) },
      { image: 'app_compose_rejected' },
    ],
    [
      'a changed record',
      { files: change(honest, '0001.json', createRecord({ commit: 'ba'.repeat(20) })) },
      { 'release-log': 'release_log_invalid' },
    ],
    ['a removed record', { files: change(honest, '0001.json', undefined) }, { 'release-log': 'release_log_invalid' }],
    [
      'records in another order',
      { files: change(change(honest, '0000.json', record), '0001.json', first) },
      { 'release-log': 'release_log_invalid' },
    ],
    [
      'an oversized record',
      { files: createReleaseFiles([new Uint8Array(MAX_RECORD_BYTES + 1)]) },
      { 'release-log': 'release_log_invalid' },
    ],
    [
      'a record that is not canonical',
      { files: createReleaseFiles([new TextEncoder().encode(`${new TextDecoder().decode(record)}\n`)]) },
      { 'release-log': 'release_log_invalid' },
    ],
    [
      'a checkpoint by another key',
      { files: createReleaseFiles([record], [other]) },
      { 'release-log': 'note_unsigned' },
    ],
    [
      'a key that came with another name',
      { files: createReleaseFiles([record], [other]), request: { releaseKey: undefined } },
      { 'release-log': 'release_log_invalid' },
    ],
    [
      'a log without a record',
      { files: change(honest, 'checkpoint', new TextEncoder().encode('countersign/releases\n0\n')) },
      { 'release-log': 'note_malformed' },
    ],
    [
      'a history that the witness refused',
      { files: createReleaseFiles([record], [releaseSigner]) },
      { 'release-witnesses': 'release_log_invalid' },
    ],
    [
      'the cosignature of another checkpoint',
      {
        files: (() => {
          const lines = new TextDecoder().decode(honest.get('checkpoint')).split('\n')
          const note = new TextDecoder().decode(createReleaseFiles([record], [releaseSigner]).get('checkpoint'))
          const moved = `${note}${lines.at(-2)}\n`
          return change(createReleaseFiles([record]), 'checkpoint', new TextEncoder().encode(moved))
        })(),
      },
      { 'release-witnesses': 'note_signature_invalid' },
    ],
  ])('%s', async (_, attack, expected) => {
    const { codes, source } = await trace(attack)
    expect(codes).toEqual(expected)
    expect(source).toBeUndefined()
  })

  test('a checkpoint of too many records, before it fetches them', async () => {
    const note = new TextDecoder().decode(honest.get('checkpoint')).replace('\n2\n', '\n1001\n')
    let reads = 0
    const outcome = await createOutcome([{ name: 'compose-hash', payload }])
    const readReleaseFile = async () => {
      reads += 1
      return new TextEncoder().encode(note)
    }
    const deps = { findAppCompose: async () => ({ bytes: undefined, problems: [] }), readReleaseFile }
    const { links } = await traceSource(deps, outcome, reader)
    expect(links.find(({ id }) => id === 'release-log')?.code).toBe('release_log_invalid')
    expect(reads).toBe(1)
  })
})
