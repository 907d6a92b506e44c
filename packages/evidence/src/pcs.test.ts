import { createSimulator } from '@countersign/attestation/simulator'
import { describe, expect, test } from 'vitest'
import { createPcsClient, createPlatformReader, cutMembers, readPlatform } from './pcs.ts'

const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })
const collateral = simulator.collateral()
const platform = { fmspc: 'f0c06f000000', ca: 'processor' } as const

/** Responds by the end of the path. */
function fakeFetch(changes: Record<string, Response> = {}) {
  const asked: string[] = []
  const chain = (name: string, pem: string) => ({ headers: { [name]: encodeURIComponent(pem) } })
  const answers: Record<string, Response> = {
    '/tcb': new Response(
      `{"tcbInfo":${collateral.tcb_info},"signature":"${collateral.tcb_info_signature}"}`,
      chain('TCB-Info-Issuer-Chain', collateral.tcb_info_issuer_chain),
    ),
    '/qe/identity': new Response(
      `{"enclaveIdentity":${collateral.qe_identity},"signature":"${collateral.qe_identity_signature}"}`,
      chain('SGX-Enclave-Identity-Issuer-Chain', collateral.qe_identity_issuer_chain),
    ),
    '/pckcrl': new Response(
      Buffer.from(collateral.pck_crl, 'hex'),
      chain('SGX-PCK-CRL-Issuer-Chain', collateral.pck_crl_issuer_chain),
    ),
    '/rootcacrl': new Response(collateral.root_ca_crl),
    '/IntelSGXRootCA.der': new Response(Buffer.from(collateral.root_ca_crl, 'hex')),
    ...changes,
  }
  const fetch = async (url: string) => {
    asked.push(url)
    const { pathname } = new URL(url)
    const [, answer] = Object.entries(answers).find(([end]) => pathname.endsWith(end)) ?? []
    return answer ?? new Response(null, { status: 404 })
  }
  return { fetch, asked }
}

describe('requests', () => {
  test('Intel’s service, and the root list at Intel’s separate address', async () => {
    const { fetch, asked } = fakeFetch()
    const client = createPcsClient({ url: 'https://api.trustedservices.intel.com/', fetch })
    expect(await client.fetchCollateral(platform)).toEqual(collateral)
    expect(asked).toContain('https://certificates.trustedservices.intel.com/IntelSGXRootCA.der')
    expect(asked).toContain(
      'https://api.trustedservices.intel.com/sgx/certification/v4/pckcrl?ca=processor&encoding=der',
    )
  })

  test('a PCCS below a path, with its own root list', async () => {
    const { fetch, asked } = fakeFetch()
    await createPcsClient({ url: 'https://pccs.example/intel', fetch }).fetchCollateral(platform)
    expect(asked.every((url) => url.startsWith('https://pccs.example/intel/'))).toBe(true)
  })

  test.each(['http://pccs.example', 'ftp://127.0.0.1', 'https://pccs.example/?a=b', 'pccs'])('never %s', (url) => {
    expect(() => createPcsClient({ url })).toThrow(TypeError)
  })
})

describe('other spellings of the same response', () => {
  test('accepts the root list as DER, hex in upper case or PEM; the header of an older PCCS; CRLF in chains', async () => {
    const pem = `-----BEGIN X509 CRL-----\n${Buffer.from(collateral.root_ca_crl, 'hex').toString('base64')}\n-----END X509 CRL-----\n`
    const body = `{"tcbInfo":${collateral.tcb_info},"signature":"${collateral.tcb_info_signature.toUpperCase()}"}`
    const crlf = encodeURIComponent(collateral.tcb_info_issuer_chain.replaceAll('\n', '\r\n'))
    for (const root of [Buffer.from(collateral.root_ca_crl, 'hex'), collateral.root_ca_crl.toUpperCase(), pem]) {
      const { fetch } = fakeFetch({
        '/rootcacrl': new Response(root),
        '/tcb': new Response(body, { headers: { 'SGX-TCB-Info-Issuer-Chain': crlf } }),
      })
      const client = createPcsClient({ url: 'https://pccs.example', fetch })
      expect(await client.fetchCollateral(platform)).toEqual(collateral)
    }
  })
})

describe('rejected responses', () => {
  const header = { headers: { 'TCB-Info-Issuer-Chain': encodeURIComponent(collateral.tcb_info_issuer_chain) } }
  const signature = collateral.tcb_info_signature
  test.each<[string, Record<string, Response>]>([
    ['no JSON', { '/tcb': new Response('no', header) }],
    ['no object', { '/tcb': new Response('[]', header) }],
    ['no signature', { '/tcb': new Response(`{"tcbInfo":${collateral.tcb_info}}`, header) }],
    [
      'a signature that is not hex',
      { '/tcb': new Response(`{"tcbInfo":{},"signature":"${'z'.repeat(128)}"}`, header) },
    ],
    ['a signature that is a number', { '/tcb': new Response('{"tcbInfo":{},"signature":7}', header) }],
    ['TCB info as text', { '/tcb': new Response(`{"tcbInfo":"{}","signature":"${signature}"}`, header) }],
    ['TCB info twice', { '/tcb': new Response(`{"tcbInfo":{},"tcbInfo":{},"signature":"${signature}"}`, header) }],
    ['bytes that are not UTF-8', { '/tcb': new Response(Buffer.from([0x7b, 0xff, 0x7d]), header) }],
    [
      'a chain that is not URL-encoded',
      { '/pckcrl': new Response('00', { headers: { 'SGX-PCK-CRL-Issuer-Chain': '%' } }) },
    ],
    ['an empty list', { '/rootcacrl': new Response('') }],
    ['three megabytes', { '/rootcacrl': new Response(Buffer.alloc(3_000_000, '0')) }],
  ])('%s', async (_, changes) => {
    const { fetch } = fakeFetch(changes)
    await expect(
      createPcsClient({ url: 'https://pccs.example', fetch }).fetchCollateral(platform),
    ).rejects.toMatchObject({
      name: 'VendorError',
      code: 'vendor_answer_malformed',
    })
  })
})

test('keeps the original text of members, with any content', () => {
  const text = ' { "a" : {"x":"}\\"{", "y":[1, {"z":null}]} ,"b":"\\u0022\\\\", "c" : -1.5e3,"d":[ ],"\\u0065":true }\n'
  expect([...cutMembers(Buffer.from(text), 'test')]).toEqual([
    ['a', '{"x":"}\\"{", "y":[1, {"z":null}]}'],
    ['b', '"\\u0022\\\\"'],
    ['c', '-1.5e3'],
    ['d', '[ ]'],
    ['e', 'true'],
  ])
  expect([...cutMembers(Buffer.from('{}'), 'test')]).toEqual([])
})

const reportData = new Uint8Array(64)

const certified = { fmspc: 'f0c06f000000', ca: 'platform' }

test('reads the platform from the quote’s PCK certificate', () => {
  expect(readPlatform(simulator.quote({ reportData }))).toEqual(certified)
})

test('rejects other bytes, and quotes without a PCK certificate', () => {
  for (const quote of [new Uint8Array(100), simulator.quote({ reportData, faults: { chainSwapped: true } })]) {
    expect(() => readPlatform(quote)).toThrow(expect.objectContaining({ name: 'QuoteError' }))
  }
})

test('caches the platform of a chain, and still rejects a malformed one', () => {
  const read = createPlatformReader()
  const first = read(simulator.quote({ reportData }))
  expect(first).toEqual(certified)
  expect(read(simulator.quote({ reportData: new Uint8Array(64).fill(1) }))).toBe(first)
  for (const quote of [new Uint8Array(100), simulator.quote({ reportData, faults: { chainSwapped: true } })]) {
    expect(() => read(quote)).toThrow(expect.objectContaining({ name: 'QuoteError' }))
  }
  expect(read(simulator.quote({ reportData }))).toBe(first)
})
