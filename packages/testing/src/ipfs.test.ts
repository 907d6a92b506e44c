import { createHash, randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { CID } from 'multiformats/cid'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakePinata, type FakePinService, startFakeKubo, startFakePinata } from './ipfs.ts'

const token = 'a-token'
const headers = { authorization: `Bearer ${token}` }
const bytes = new TextEncoder().encode('{"a":"block"}')
/** CIDv1, codec raw, of the SHA-256 of these bytes. */
const cid = 'bafkreiaibqy6h4ukov4u2fgfzgp4qf4c5dvcioga6oyo6tasynq4xdlggu'

const form = (content: Uint8Array<ArrayBuffer> = bytes, network?: string) => {
  const body = new FormData()
  if (network !== undefined) body.append('network', network)
  body.append('file', new Blob([content]), 'block')
  return body
}

describe('startFakeKubo', () => {
  let kubo: FakePinService
  beforeEach(async () => {
    kubo = await startFakeKubo({ token })
  })
  afterEach(() => kubo.stop())
  const post = (path: string, body?: FormData) =>
    fetch(`${kubo.url}/api/v0/${path}`, { method: 'POST', headers, body: body ?? null })
  const put = (query = 'cid-codec=raw&mhtype=sha2-256&pin=true') => post(`block/put?${query}`, form())
  const get = (wanted = cid) => post(`block/get?arg=${wanted}&offline=true`)

  test('it holds what it was given, under the CID of the bytes', async () => {
    expect(await (await put()).json()).toEqual({ Key: cid, Size: bytes.length })
    expect(CID.parse(cid).multihash.digest).toEqual(new Uint8Array(createHash('sha256').update(bytes).digest()))
    expect(await (await post(`pin/ls?arg=${cid}`)).json()).toEqual({ Keys: { [cid]: { Type: 'recursive', Name: '' } } })
    expect(await (await get()).bytes()).toEqual(bytes)
    expect([...kubo.blocks.keys()]).toEqual([cid])
    expect(kubo.requests).toBe(3)
  })

  test('without the codec it is another CID', async () => {
    expect(await (await put('')).json()).toMatchObject({ Key: expect.stringMatching(/^bafybei/) })
  })

  test('what it does not hold it says so, in its own way', async () => {
    const [pin, block] = [await post(`pin/ls?arg=${cid}`), await get()]
    expect([pin.status, block.status]).toEqual([500, 500])
    expect(await pin.json()).toMatchObject({ Message: expect.stringContaining('is not pinned') })
    expect(await block.json()).toMatchObject({ Message: expect.stringContaining('could not find') })
  })

  test('online it looks for a missing block until it is let off', async () => {
    const controller = new AbortController()
    const asked = fetch(`${kubo.url}/api/v0/block/get?arg=${cid}`, {
      method: 'POST',
      headers,
      signal: controller.signal,
    })
    const refused = expect(asked).rejects.toThrow()
    while (kubo.requests < 1) await setImmediate()
    controller.abort()
    await refused
  })

  test('a wrong token, GET, a body without a file, other paths', async () => {
    expect((await fetch(`${kubo.url}/api/v0/block/get?arg=${cid}`, { method: 'POST' })).status).toBe(403)
    expect((await fetch(`${kubo.url}/api/v0/block/get?arg=${cid}`, { headers })).status).toBe(405)
    expect((await post('block/put', new FormData())).status).toBe(400)
    expect((await post('version')).status).toBe(404)
  })

  test('down, error, refused, busy, garbage', async () => {
    kubo.setFault('down')
    await expect(put()).rejects.toThrow()
    for (const [fault, status] of [
      ['error', 500],
      ['refused', 401],
      ['busy', 429],
    ] as const) {
      kubo.setFault(fault)
      expect((await put()).status).toBe(status)
    }
    expect(kubo.blocks.size).toBe(0)
    kubo.setFault('garbage')
    await expect(put().then((response) => response.json())).rejects.toThrow()
    kubo.setFault()
    expect((await put()).status).toBe(200)
  })

  test('reset-after-accept: held, but not said', async () => {
    kubo.setFault('reset-after-accept')
    await expect(put()).rejects.toThrow()
    expect(kubo.blocks.has(cid)).toBe(true)
    expect((await get()).status).toBe(200)
  })

  test('wrong-cid: a good CID of something else', async () => {
    kubo.setFault('wrong-cid')
    const { Key } = (await (await put()).json()) as { Key: string }
    expect(Key).not.toBe(cid)
    expect(CID.parse(Key).code).toBe(0x55)
  })

  test('truncated, flipped, endless: other bytes', async () => {
    await put()
    kubo.setFault('truncated')
    expect(await (await get()).bytes()).toEqual(bytes.subarray(0, -1))
    kubo.setFault('flipped')
    expect(await (await get()).bytes()).toEqual(Uint8Array.from([0x7b ^ 0x80, ...bytes.subarray(1)]))
    kubo.setFault('endless')
    expect((await (await get()).bytes()).length).toBeGreaterThan(1_048_576)
    kubo.setFault()
    expect(await (await get()).bytes()).toEqual(bytes)
  })

  test('forgets: accepted, not held', async () => {
    kubo.setFault('forgets')
    expect(await (await put()).json()).toMatchObject({ Key: cid })
    expect([(await post(`pin/ls?arg=${cid}`)).status, (await get()).status]).toEqual([500, 500])
  })

  test('slow: late, but it comes; and stopping does not wait for it', async () => {
    kubo.setFault('slow', { delayMs: 1 })
    expect((await put()).status).toBe(200)
    kubo.setFault('slow', { delayMs: 3_600_000 })
    const waiting = expect(put()).rejects.toThrow()
    while (kubo.requests < 2) await setImmediate()
    await kubo.stop()
    await waiting
  })
})

describe('startFakePinata', () => {
  let pinata: FakePinata
  beforeEach(async () => {
    pinata = await startFakePinata({ token })
  })
  afterEach(() => pinata.stop())
  const upload = (body = form(bytes, 'public')) => fetch(`${pinata.url}/v3/files`, { method: 'POST', headers, body })
  const get = () => fetch(`${pinata.url}/ipfs/${cid}?format=raw`)
  const pins = async (query = `cid=${cid}`) => (await fetch(`${pinata.pinsUrl}/pins?${query}`, { headers })).json()

  test('it holds what it was given, for anyone to read', async () => {
    expect(await (await upload()).json()).toMatchObject({ data: { cid, network: 'public', size: bytes.length } })
    expect(await (await get()).bytes()).toEqual(bytes)
    expect(await pins()).toMatchObject({ count: 1, results: [{ status: 'pinned', pin: { cid } }] })
    expect(pinata.requests).toBe(3)
    expect([...pinata.blocks.keys()]).toEqual([cid])
  })

  test('a private upload is not read by anyone', async () => {
    expect(await (await upload(form(bytes))).json()).toMatchObject({ data: { network: 'private' } })
    expect((await get()).status).toBe(404)
  })

  test('a file larger than a chunk is no raw block', async () => {
    const large = Uint8Array.from(randomBytes(262_145))
    expect(await (await upload(form(large, 'public'))).json()).toMatchObject({
      data: { cid: expect.stringMatching(/^bafybei/) },
    })
  })

  test('pins are listed by status', async () => {
    await upload()
    pinata.setPinStatus('queued')
    expect(await pins()).toEqual({ count: 0, results: [] })
    expect(await pins(`cid=${cid}&status=queued,pinning`)).toMatchObject({ count: 1, results: [{ status: 'queued' }] })
  })

  test('a wrong token, no file, other paths', async () => {
    const body = form(bytes, 'public')
    expect((await fetch(`${pinata.url}/v3/files`, { method: 'POST', body })).status).toBe(401)
    expect((await fetch(`${pinata.pinsUrl}/pins?cid=${cid}`)).status).toBe(401)
    expect((await upload(new FormData())).status).toBe(400)
    expect((await fetch(`${pinata.url}/v2/files`, { headers })).status).toBe(404)
  })

  test('faults', async () => {
    pinata.setFault('forgets')
    expect((await upload()).status).toBe(200)
    expect((await get()).status).toBe(404)
    pinata.setFault('wrong-cid')
    expect(await (await upload()).json()).not.toMatchObject({ data: { cid } })
    pinata.setFault('truncated')
    expect((await (await get()).bytes()).length).toBe(bytes.length - 1)
    pinata.setFault('down')
    await expect(get()).rejects.toThrow()
    pinata.setFault()
    expect(await (await get()).bytes()).toEqual(bytes)
  })
})
