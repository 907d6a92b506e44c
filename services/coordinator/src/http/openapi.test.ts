import { hash } from 'node:crypto'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createTestApp } from '../../test/http/testApp.ts'

type Document = {
  openapi: string
  paths: Record<
    string,
    Record<
      string,
      { security?: unknown; requestBody?: { required: boolean }; responses: Record<string, { description: string }> }
    >
  >
  components: {
    schemas: Record<string, { type?: unknown; properties?: Record<string, object> }>
    securitySchemes: Record<string, unknown>
  }
}

const getDocument = async (app = createTestApp()) => (await (await app.request('/openapi.json')).json()) as Document

describe('GET /openapi.json', () => {
  test('describes every endpoint of the specification, and which ones need a session', async () => {
    const { openapi, paths, components } = await getDocument()
    expect(openapi).toBe('3.1.0')
    const calls = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { security }]) => `${method} ${path}${security === undefined ? '' : ' *'}`),
    )
    expect(calls.sort()).toEqual([
      'get /',
      'get /auth',
      'get /auth/me *',
      'get /auth/session *',
      'get /auth/sessions *',
      'get /auth/{provider}',
      'get /auth/{provider}/callback',
      'get /docs',
      'get /docs/api',
      'get /docs/errors',
      'get /docs/{path}',
      'get /health',
      'get /health/attestation',
      'get /health/ready',
      'get /ipfs/{cid}',
      'get /log',
      'get /log/{hash}/checkpoint',
      'get /log/{hash}/tile/{path}',
      'get /openapi.json',
      'get /proof/{slug}',
      'get /proof/{slug}/events',
      'get /proofs/export *',
      'get /vaults *',
      'get /vaults/{address}/budget *',
      'get /wallet/me *',
      'get /wallet/transactions *',
      'post /auth/logout *',
      'post /auth/{provider}/form',
      'post /auth/{provider}/token',
      'post /sign/authorization *',
      'post /sign/digest *',
      'post /sign/message *',
      'post /sign/typed-data *',
      'post /vaults *',
      'post /vaults/{address}/attest *',
      'post /vaults/{address}/revoke',
      'post /vaults/{address}/sign',
      'post /wallet/attest *',
      'post /wallet/provision *',
    ])
    expect(components.securitySchemes).toEqual({
      session: { type: 'apiKey', in: 'cookie', name: '__Host-countersign-session' },
      directSession: { type: 'apiKey', in: 'header', name: 'Authorization', description: expect.any(String) },
    })
    expect(paths['/auth/me']?.get?.security).toEqual([{ session: [] }, { directSession: [] }])
  })

  test('describes the resources of the specification; a proof’s receipt may be null', async () => {
    const { schemas } = (await getDocument()).components
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining([
        'SessionUser',
        'WalletInfo',
        'TxMetadata',
        'ProofPayload',
        'AttestationReceiptV1',
        'TransactionList',
        'Problem',
      ]),
    )
    expect(schemas.AttestationReceiptV1?.type).toBe('object')
  })

  test('a body without required members may be left out, and a rule is a number', async () => {
    const { paths, components } = await getDocument()
    const optional = Object.entries(paths).filter(([, { post }]) => post?.requestBody?.required === false)
    expect(optional.map(([path]) => path).toSorted()).toEqual([
      '/auth/logout',
      '/vaults/{address}/attest',
      '/wallet/attest',
      '/wallet/provision',
    ])
    expect(components.schemas.SignDigestRequest?.properties?.rule).toMatchObject({ type: 'integer', maximum: 254 })
  })

  test('is JSON Schema that other tools accept', async () => {
    const { components } = await getDocument()
    const text = JSON.stringify(components.schemas).replaceAll('#/components/schemas/', '#/$defs/')
    const schemas = JSON.parse(text) as Record<string, object>
    for (const schema of Object.values(schemas)) {
      expect(() =>
        z.fromJSONSchema({ ...schema, $defs: schemas } as Parameters<typeof z.fromJSONSchema>[0]),
      ).not.toThrow()
    }
  })

  test('lists every error code at an endpoint, except those that any path can return', async () => {
    const { paths } = await getDocument()
    const text = JSON.stringify(paths)
    const missing = Object.keys(errorCodes).filter((code) => !text.includes(code))
    expect(missing).toEqual(['method_not_allowed'])
  })
})

describe('the response check', () => {
  test('detects a wrong body', async () => {
    const { request, openEvents, store } = createTestApp()
    store.rows.proofs.set('AAAAAAAAAAAAAAAAAAAAAA', {
      slug: 'AAAAAAAAAAAAAAAAAAAAAA',
      kind: 'transaction',
      txHash: '0x00',
      chainId: 1,
      walletAddress: '0x00',
      status: 'pending_pin',
      ipfsCid: null,
      onchainTxHash: null,
      onchainBlockNumber: null,
      kmsQuoteVerified: true,
      receipt: null,
      createdAt: 0,
      isFinal: false,
    })
    await expect(request('/proof/AAAAAAAAAAAAAAAAAAAAAA')).rejects.toThrow('txHash')
    const events = await openEvents('/proof/AAAAAAAAAAAAAAAAAAAAAA/events')
    await expect(events.next()).rejects.toThrow('txHash')
    await events.cancel()
  })
})

describe('GET /docs/api', () => {
  test('shows every endpoint and schema, runs no script and loads nothing', async () => {
    const app = createTestApp()
    const { paths, components } = await getDocument(app)
    const response = await app.request('/docs/api')
    const page = await response.text()
    expect(response.headers.get('content-type')).toBe('text/html; charset=UTF-8')
    for (const path of Object.keys(paths)) expect(page).toContain(`<code>${path}</code>`)
    for (const name of Object.keys(components.schemas)) expect(page).toContain(`id="schema-${name}"`)
    expect(page).not.toMatch(/<script|src=|@import|url\(|onload=/)
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? ''
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain(`style-src 'sha256-${hash('sha256', style, 'base64')}'`)
    expect(policy).toContain("default-src 'none'")
  })

  test('has no broken links', async () => {
    const app = createTestApp()
    const page = await (await app.request('/docs/api')).text()
    const targets = [...page.matchAll(/href="([^"]+)"/g)].map(([, target = '']) => target)
    expect(targets.length).toBeGreaterThan(10)
    for (const target of new Set(targets)) {
      if (target.startsWith('#')) expect(page).toContain(`id="${target.slice(1)}"`)
      else expect((await app.request(target)).status).toBe(200)
    }
  })

  test('the type of every problem links to its heading', async () => {
    const page = await (await createTestApp().request('/docs/errors')).text()
    for (const code of Object.keys(errorCodes)) expect(page).toContain(`id="${code}"`)
  })
})
