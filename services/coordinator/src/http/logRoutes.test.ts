import { assertInclusion, createInclusionProof, createTileReader, parseTilePath, toTilePath } from '@countersign/log'
import { hashTreeLeaf } from '@countersign/protocol'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/http/testApp.ts'
import { createTestLog, type TestLog } from '../../test/store/logs.ts'
import { NOW, startTestStore, type TestStore } from '../../test/store/store.ts'

const WRITTEN = 700
const COSIGNED = 600

describe('the public log', () => {
  let subject: TestStore
  let log: TestLog
  let app: ReturnType<typeof createTestApp>
  beforeAll(async () => {
    subject = await startTestStore()
    log = createTestLog()
    log.fill(WRITTEN - 1)
    await subject.logStore.appendLog(log.toAppend({ to: COSIGNED }))
    await subject.logStore.appendLog(log.toAppend({ from: COSIGNED }))
    const note = log.toNote(COSIGNED, 2)
    await subject.logStore.insertNote({ hash: log.hash, size: COSIGNED, note, now: NOW })
  })
  afterAll(() => subject.stop())
  beforeEach(() => {
    app = createTestApp({ deps: { logStore: subject.logStore } })
  })

  const get = (path: string) => app.request(`/log/${log.hash}/${path}`)
  const expectNotFound = async (path: string) => {
    const response = await app.request(path)
    const { code } = (await response.json()) as { code: string }
    expect([response.status, code, response.headers.get('cache-control')]).toEqual([404, 'not_found', 'no-store'])
  }

  test('lists the logs with their cosigned sizes', async () => {
    const fresh = createTestLog()
    await subject.logStore.appendLog(fresh.toAppend())
    const response = await app.request('/log')
    const { hash, origin, key } = log
    expect(await response.json()).toEqual({
      logs: [
        { hash, origin, key, size: COSIGNED },
        { hash: fresh.hash, origin: fresh.origin, key: fresh.key, size: 0 },
      ],
    })
    await expectNotFound(`/log/${fresh.hash}/checkpoint`)
    await expectNotFound(`/log/${fresh.hash}/tile/entries/000.p/1`)
  })

  test('lists no logs if the service has none', async () => {
    expect(await (await createTestApp().request('/log')).json()).toEqual({ logs: [] })
  })

  test('returns the newest cosigned note, for any page', async () => {
    const response = await get('checkpoint')
    expect(await response.text()).toBe(log.toNote(COSIGNED, 2))
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-cache',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
    })
  })

  test('tiles may be cached permanently and suffice to prove an entry', async () => {
    const tiles = new Map<string, Uint8Array>()
    for (const path of ['tile/0/000', 'tile/0/001', 'tile/0/002.p/88', 'tile/1/000.p/2']) {
      const response = await get(path)
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'application/octet-stream',
        'cache-control': 'public, max-age=31536000, immutable',
        'access-control-allow-origin': '*',
      })
      tiles.set(path, new Uint8Array(await response.arrayBuffer()))
    }
    const readNode = createTileReader((tile) => tiles.get(toTilePath(tile)) ?? new Uint8Array(), COSIGNED)
    const place = { index: 300, size: COSIGNED }
    const leaf = hashTreeLeaf(log.entries[place.index] ?? new Uint8Array())
    const proof = createInclusionProof(readNode, place)
    expect(() => assertInclusion({ ...place, leaf, root: log.toRoot(COSIGNED), proof })).not.toThrow()
  })

  test('a bundle has the entries, each after its length', async () => {
    const response = await get('tile/entries/002.p/88')
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    const expected = log.entries.slice(512, COSIGNED).flatMap((entry) => [Buffer.from([0, 57]), entry])
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(expected))).toBe(true)
  })

  test.each([
    ['written, but not cosigned', 'tile/0/002.p/89'],
    ['an entry that is written, but not cosigned', 'tile/entries/002.p/89'],
    ['a full tile that is not full', 'tile/0/002'],
    ['a hash above a tile that is not full', 'tile/1/000.p/3'],
    ['beyond the end', 'tile/0/003.p/1'],
    ['far beyond the end', 'tile/0/x009/x007/x199/x254/x740/991'],
    ['a level too many', 'tile/2/000.p/1'],
    ['the highest level', 'tile/63/000'],
  ])('returns 404 for what the checkpoint does not cover: %s', async (_, path) => {
    expect(() => parseTilePath(path)).not.toThrow()
    await expectNotFound(`/log/${log.hash}/${path}`)
  })

  test('serves what a later checkpoint covers', async () => {
    const late = createTestLog()
    late.fill(9)
    await subject.logStore.appendLog(late.toAppend({ to: 5 }))
    await subject.logStore.appendLog(late.toAppend({ from: 5 }))
    for (const size of [5, 10]) {
      await subject.logStore.insertNote({ hash: late.hash, size, note: late.toNote(size, 2), now: NOW })
      expect((await app.request(`/log/${late.hash}/tile/0/000.p/${size}`)).status).toBe(200)
      await expectNotFound(`/log/${late.hash}/tile/0/000.p/${size + 1}`)
    }
    expect((await app.request(`/log/${late.hash}/tile/0/000.p/3`)).status).toBe(200)
  })

  test.each([
    'tile/0/0',
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/x000/000',
    'tile/00/000',
    'tile/64/000',
    'tile/0/000/',
    'tile/0/%30%30%30',
    'tile/0%2F000',
    'tile/entries/000.p/01',
    'tile/entries',
    'tile/-1/000',
    'tile/0/000.P/1',
    'tiles/0/000',
    'checkpoint/',
    'checkpoints',
  ])('returns 404 for another spelling: %s', async (path) => {
    await expectNotFound(`/log/${log.hash}/${path}`)
  })

  test('returns 404 for an unknown log and for a malformed hash', async () => {
    for (const hash of ['ab'.repeat(32), log.hash.toUpperCase(), log.hash.slice(1), `${log.hash}0`, log.origin]) {
      await expectNotFound(`/log/${hash}/checkpoint`)
      await expectNotFound(`/log/${hash}/tile/entries/000.p/1`)
    }
  })

  test('allows only reads', async () => {
    for (const path of ['/log', `/log/${log.hash}/checkpoint`, `/log/${log.hash}/tile/0/000`]) {
      const response = await app.request(path, { method: 'POST', headers: { origin: 'https://app.example' } })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
      expect((await app.request(path, { method: 'HEAD' })).status).toBe(200)
    }
  })

  test('has the proofs’ rate limit', async () => {
    const rateLimits = { sign: 'off', provision: 'off', auth: 'off', proof: { count: 2, seconds: 60 } } as const
    app = createTestApp({ config: { rateLimits }, deps: { logStore: subject.logStore } })
    const statuses = []
    for (const path of ['checkpoint', 'tile/0/000', 'tile/entries/000']) statuses.push((await get(path)).status)
    expect(statuses).toEqual([200, 200, 429])
  })
})
