import { toCid } from '@countersign/receipt'
import { createHelia } from 'helia'
import { CID } from 'multiformats/cid'
import { describe, expect, test } from 'vitest'
import { type GatewayRequest, getIpfsBlock } from './gateway.ts'

const DAG_CBOR = 0x71
const bytes = new TextEncoder().encode('{"version":"countersign-attestation/1"}')
const cid = toCid(bytes)
const ask = (request: Partial<GatewayRequest> = {}, held = new Map([[cid, bytes]])) =>
  getIpfsBlock({ getBlock: async (wanted) => held.get(wanted) }, { method: 'GET', cid, ...request })

const common = {
  vary: 'Accept',
  'cache-control': 'public, max-age=29030400, immutable',
  'x-content-type-options': 'nosniff',
  'x-ipfs-path': `/ipfs/${cid}`,
  'x-ipfs-roots': cid,
}

describe('getIpfsBlock', () => {
  test('returns JSON by default', async () => {
    expect(await ask()).toEqual({
      status: 200,
      headers: { ...common, etag: `"${cid}"`, 'content-type': 'application/json', 'content-length': '39' },
      body: bytes,
    })
  })

  test('?format=raw', async () => {
    expect(await ask({ format: 'raw' })).toEqual({
      status: 200,
      headers: {
        ...common,
        etag: `"${cid}.raw"`,
        'content-type': 'application/vnd.ipld.raw',
        'content-disposition': `attachment; filename="${cid}.bin"`,
        'content-length': '39',
      },
      body: bytes,
    })
  })

  test('?format=car is a CARv1 that another decoder reads (CARv1, DAG-CBOR)', async () => {
    const { status, headers, body } = await ask({ format: 'car' })
    expect(status).toBe(200)
    expect(headers).toEqual({
      ...common,
      etag: `"${cid}.car"`,
      'content-type': 'application/vnd.ipld.car; version=1; order=dfs; dups=n',
      'content-disposition': `attachment; filename="${cid}.car"`,
      'content-length': String(body?.length),
    })
    expect(await readCar(body as Uint8Array)).toEqual({
      header: { roots: [CID.parse(cid)], version: 1 },
      blocks: [[cid, Buffer.from(bytes)]],
    })
  })

  test.each([0, 1, 91, 92, 127, 128, 16_347, 16_348, 262_144])('a CAR of a block of %i bytes', async (length) => {
    const block = new Uint8Array(length).fill(7)
    const { body } = await ask({ cid: toCid(block), format: 'car' }, new Map([[toCid(block), block]]))
    expect(await readCar(body as Uint8Array)).toEqual({
      header: { roots: [CID.parse(toCid(block))], version: 1 },
      blocks: [[toCid(block), Buffer.from(block)]],
    })
  })

  test.each([
    ['', 'application/json'],
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    ['application/json', 'application/json'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'application/json'],
    ['application/vnd.ipld.raw', 'application/vnd.ipld.raw'],
    ['APPLICATION/VND.IPLD.RAW', 'application/vnd.ipld.raw'],
    ['*/*, application/vnd.ipld.raw', 'application/vnd.ipld.raw'],
    ['application/vnd.ipld.raw;q=0.5, */*', 'application/json'],
    ['application/vnd.ipld.raw;q=0.5, application/json;q=0.9', 'application/json'],
    ['application/json;q=0, */*', 'application/vnd.ipld.raw'],
    ['application/vnd.ipld.car', 'application/vnd.ipld.car; version=1; order=dfs; dups=n'],
    ['application/vnd.ipld.car; version="1"; order=unk', 'application/vnd.ipld.car; version=1; order=dfs; dups=n'],
    ['application/vnd.ipld.car;version=2, application/vnd.ipld.raw;q=0.1', 'application/vnd.ipld.raw'],
  ])('Accept: %s', async (accept, type) => {
    const { status, headers } = await ask({ accept })
    expect([status, headers['content-type']]).toEqual([200, type])
  })

  test('names the URL of the representation that Accept chose', async () => {
    expect((await ask({ accept: 'application/vnd.ipld.raw' })).headers['content-location']).toBe(
      `/ipfs/${cid}?format=raw`,
    )
    expect((await ask({ format: 'raw' })).headers).not.toHaveProperty('content-location')
  })

  test('format takes precedence over Accept', async () => {
    const { headers } = await ask({ format: 'raw', accept: 'application/vnd.ipld.car' })
    expect(headers['content-type']).toBe('application/vnd.ipld.raw')
    expect((await ask({ format: 'json', accept: 'text/html' })).status).toBe(200)
  })

  test.each([
    { format: 'tar' },
    { format: 'ipns-record' },
    { format: 'dag-json' },
    { format: 'RAW' },
    { format: 'constructor' },
    { accept: 'text/html' },
    { accept: 'image/*' },
    { accept: 'application/vnd.ipld.car; version=2' },
    { accept: 'application/json;q=0' },
    { accept: 'application/json;q=high' },
    { accept: ';;,,=' },
  ])('406: %j', async (request) => {
    expect(await ask(request)).toEqual({ status: 406, headers: { vary: 'Accept' }, body: null })
  })

  const dagPb = CID.createV1(0x70, CID.parse(cid).multihash).toString()
  test.each([
    '',
    'x',
    '..',
    `${cid} `,
    `${cid}/a`,
    cid.toUpperCase(),
    dagPb,
    'QmaYL7E4gDTPNfLxrCEEEcNJgcHBJ55NxxTnxpDKWqMtJ3',
    'bafkqaaa',
    cid.slice(0, -1),
  ])('400: %j', async (wrong) => {
    expect(await ask({ cid: wrong })).toMatchObject({ status: 400, body: null })
  })

  test('404: an unknown block', async () => {
    const request = { cid: toCid(Uint8Array.of(1)), ifNoneMatch: '*' }
    expect(await ask(request)).toEqual({ status: 404, headers: { vary: 'Accept' }, body: null })
  })

  test.each([`"${cid}"`, `W/"${cid}"`, `"other", "${cid}"`, '*'])('304: If-None-Match: %s', async (ifNoneMatch) => {
    const headers = { vary: 'Accept', etag: `"${cid}"`, 'cache-control': common['cache-control'] }
    expect(await ask({ ifNoneMatch })).toEqual({ status: 304, headers, body: null })
  })

  test.each([cid, `"${cid}.raw"`, '""', '"*"'])('200: If-None-Match: %s', async (ifNoneMatch) => {
    expect((await ask({ ifNoneMatch })).status).toBe(200)
  })

  test('the ETag of one format does not match another', async () => {
    expect((await ask({ format: 'raw', ifNoneMatch: `"${cid}"` })).status).toBe(200)
    expect((await ask({ format: 'raw', ifNoneMatch: `"${cid}.raw"` })).status).toBe(304)
  })

  test('HEAD is GET without the body', async () => {
    const { status, headers, body } = await ask({ method: 'HEAD', format: 'car' })
    expect({ status, headers, body }).toEqual({ ...(await ask({ format: 'car' })), body: null })
  })
})

/** Decodes lengths by hand, the header with Helia's DAG-CBOR codec, and CIDs with multiformats. */
async function readCar(car: Uint8Array) {
  let offset = 0
  const takeVarint = () => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = car[offset++] as number
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  const take = () => {
    const length = takeVarint()
    expect(offset + length).toBeLessThanOrEqual(car.length)
    offset += length
    return car.subarray(offset - length, offset)
  }
  // Never started, so it opens no file or port.
  const codec = await createHelia().getCodec(DAG_CBOR)
  const header = codec.decode(take())
  const blocks: [string, Buffer][] = []
  while (offset < car.length) {
    const [id, block] = CID.decodeFirst(take())
    blocks.push([id.toString(), Buffer.from(block)])
  }
  return { header, blocks }
}
