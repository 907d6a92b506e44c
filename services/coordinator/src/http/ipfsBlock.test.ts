import { readFileSync } from 'node:fs'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { APP, createTestApp } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'

const golden = new URL('../../../../packages/receipt/spec/golden/receipt.json', import.meta.url)
const bytes = new Uint8Array(readFileSync(golden))
const cid = toCid(bytes)
const absent = toCid(Uint8Array.of(1))

function createGateway(config: NonNullable<Parameters<typeof createTestApp>[0]>['config'] = {}) {
  const asked: string[] = []
  const getBlock = async (wanted: string) => {
    asked.push(wanted)
    return wanted === cid ? bytes : undefined
  }
  return { ...createTestApp({ config, deps: { getBlock } }), asked }
}

async function expectProblem(response: Response, status: number, code: string) {
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect([response.status, await response.json()]).toEqual([status, expect.objectContaining({ status, code })])
}

describe('GET /ipfs/:cid', () => {
  test('returns a receipt as JSON that may be cached permanently', async () => {
    const response = await createGateway().request(`/ipfs/${cid}`)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=29030400, immutable',
      'content-length': String(bytes.length),
      etag: `"${cid}"`,
      vary: 'Accept, Origin',
      'x-ipfs-path': `/ipfs/${cid}`,
      'x-ipfs-roots': cid,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      'x-request-id': expect.any(String),
    })
    expect(toCid(new Uint8Array(await response.arrayBuffer()))).toBe(cid)
  })

  test.each([
    ['?format=raw', {}],
    ['', { accept: 'application/vnd.ipld.raw' }],
  ])('returns raw bytes for %j and %j', async (query, headers) => {
    const response = await createGateway().request(`/ipfs/${cid}${query}`, { headers })
    expect(response.headers.get('content-type')).toBe('application/vnd.ipld.raw')
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename="${cid}.bin"`)
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
  })

  test.each([
    ['?format=car', {}],
    ['', { accept: 'application/vnd.ipld.car' }],
  ])('returns a CAR for %j and %j', async (query, headers) => {
    const response = await createGateway().request(`/ipfs/${cid}${query}`, { headers })
    expect(response.headers.get('content-type')).toBe('application/vnd.ipld.car; version=1; order=dfs; dups=n')
    const car = Buffer.from(await response.arrayBuffer())
    expect(car.subarray(-bytes.length).equals(bytes)).toBe(true)
    expect(response.headers.get('content-length')).toBe(String(car.length))
  })

  test('returns JSON to browsers', async () => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const response = await createGateway().request(`/ipfs/${cid}`, { headers: { accept } })
    expect(response.headers.get('content-type')).toBe('application/json')
  })

  test('HEAD returns the headers of GET, also for failures', async () => {
    const { request } = createGateway()
    for (const query of ['', '?format=raw', '?format=car']) {
      const [got, asked] = [
        await request(`/ipfs/${cid}${query}`),
        await request(`/ipfs/${cid}${query}`, { method: 'HEAD' }),
      ]
      const own = ({ headers }: Response) => ({ ...Object.fromEntries(headers), 'x-request-id': '' })
      expect([asked.status, own(asked), await asked.text()]).toEqual([200, own(got), ''])
    }
    for (const [path, status] of [
      [`/ipfs/${absent}`, 404],
      ['/ipfs/x', 400],
      [`/ipfs/${cid}?format=tar`, 406],
    ] as const) {
      const response = await request(path, { method: 'HEAD' })
      expect([response.status, await response.text()]).toEqual([status, ''])
    }
  })

  test('returns 304 only for the ETag of the same format', async () => {
    const { request } = createGateway()
    const ask = (query: string, tag: string) => request(`/ipfs/${cid}${query}`, { headers: { 'if-none-match': tag } })
    const response = await ask('', `W/"${cid}"`)
    expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', `"${cid}"`])
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect((await ask('?format=raw', `"${cid}"`)).status).toBe(200)
    expect((await ask('?format=raw', `"${cid}.raw"`)).status).toBe(304)
  })

  test.each([
    'x',
    cid.toUpperCase(),
    `${cid}x`,
    cid.slice(0, -1),
    'QmaYL7E4gDTPNfLxrCEEEcNJgcHBJ55NxxTnxpDKWqMtJ3',
    'bafkqaaa',
    '..%2f..%2fetc%2fpasswd',
    '%00',
    '__proto__',
    'a'.repeat(5000),
  ])('400: %s, and no block is asked for', async (wrong) => {
    const { request, asked } = createGateway()
    const response = await request(`/ipfs/${wrong}`)
    expect(response.headers.get('vary')).toBe('Accept, Origin')
    await expectProblem(response, 400, 'invalid_request')
    expect(asked).toEqual([])
  })

  test('returns 404 for an unknown block with any If-None-Match', async () => {
    const { request, asked } = createGateway()
    await expectProblem(await request(`/ipfs/${absent}`, { headers: { 'if-none-match': '*' } }), 404, 'not_found')
    expect(asked).toEqual([absent])
  })

  test.each([
    ['?format=tar', {}],
    ['?format=RAW', {}],
    ['?format=raw%00', {}],
    ['', { accept: 'text/html' }],
    ['', { accept: 'application/json;q=0' }],
    ['', { accept: 'application/vnd.ipld.car; version=2' }],
  ])('406: %j and %j', async (query, headers) => {
    const { request, asked } = createGateway()
    await expectProblem(await request(`/ipfs/${cid}${query}`, { headers }), 406, 'not_acceptable')
    expect(asked).toEqual([])
  })

  test('returns 404 for valid and invalid CIDs if the service has no gateway', async () => {
    const { request } = createTestApp()
    for (const path of [`/ipfs/${cid}`, '/ipfs/x', `/ipfs/${cid}?format=tar`]) {
      await expectProblem(await request(path), 404, 'not_found')
    }
  })

  test('a failing block store is internal, and its text is not returned', async () => {
    const getBlock = () => Promise.reject(new Error('secret text'))
    const response = await createTestApp({ deps: { getBlock } }).request(`/ipfs/${cid}`)
    expect(await response.clone().text()).not.toContain('secret text')
    await expectProblem(response, 500, 'internal')
    const stopping = () => Promise.reject(new CoordinatorError('shutting_down', 'x'))
    const told = await createTestApp({ deps: { getBlock: stopping } }).request(`/ipfs/${cid}`)
    await expectProblem(told, 503, 'shutting_down')
  })

  test('any page may read it, and allowed origins with credentials', async () => {
    const { request } = createGateway()
    const from = async (origin: string) => (await request(`/ipfs/${cid}`, { headers: { origin } })).headers
    const foreign = await from('https://elsewhere.example')
    expect(foreign.get('access-control-allow-origin')).toBe('*')
    expect(foreign.get('access-control-allow-credentials')).toBeNull()
    expect((await from(APP)).get('access-control-allow-origin')).toBe(APP)
    expect((await request('/ipfs/x')).headers.get('access-control-allow-origin')).toBe('*')
  })

  test('has the proofs’ rate but a separate count', async () => {
    const off = { sign: 'off', provision: 'off', auth: 'off' } as const
    const { request } = createGateway({ rateLimits: { ...off, proof: { count: 1, seconds: 60 } } })
    const first = await request(`/ipfs/${cid}`)
    expect([first.status, first.headers.get('ratelimit-remaining')]).toEqual([200, '0'])
    const second = await request(`/ipfs/${cid}`)
    expect(second.headers.get('retry-after')).toBe('60')
    await expectProblem(second, 429, 'rate_limited')
    expect((await request('/proof/x')).status).toBe(404)
    expect((await request(`/ipfs/${cid}`, { address: '203.0.113.2' })).status).toBe(200)
  })
})
