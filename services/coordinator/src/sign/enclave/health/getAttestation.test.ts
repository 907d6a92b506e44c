import { type CoordinatorAttestation, fromHex, parseWebhookKey, tags, toTagBytes } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/http/testApp.ts'

describe('GET /health/attestation (design §6)', () => {
  test('returns exactly the members of the design', async () => {
    const response = await createTestApp().request('/health/attestation')
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        vendor: 'amd-sev-snp',
        mode: 'mock',
        report: '0a'.repeat(1184),
        certificates: { ek: '01', ask: '02', ark: '03' },
        measurement: '0b'.repeat(48),
        publicKey: expect.stringMatching(/^[0-9a-f]{64}$/),
        configHash: '0c'.repeat(32),
        fetchedAt: '2026-06-15T11:59:00.000Z',
        expiresAt: '2026-06-15T12:59:00.000Z',
      },
    ])
  })

  test.each(['00', 'ab'.repeat(32), 'ff'.repeat(64)])(
    'signs nonce %s with a domain tag and the attested key',
    async (nonce) => {
      const response = await createTestApp().request(`/health/attestation?nonce=${nonce}`)
      const body = (await response.json()) as { nonce: string; signature: string; publicKey: string }
      expect(body.nonce).toBe(nonce)
      const [signature, publicKey, bytes] = [fromHex(body.signature), fromHex(body.publicKey), fromHex(nonce)]
      const message = Buffer.concat([toTagBytes(tags.healthNonce), bytes])
      expect(ed25519.verify(signature, message, publicKey)).toBe(true)
      expect(ed25519.verify(signature, bytes, publicKey)).toBe(false)
    },
  )

  test('returns the keys that sign webhooks, each signed by the attested key', async () => {
    const keys = [1, 2].map((byte) => ed25519.getPublicKey(new Uint8Array(32).fill(byte)))
    const response = await createTestApp({ deps: { getWebhookKeys: () => keys } }).request('/health/attestation')
    const { webhookKeys, publicKey } = (await response.json()) as CoordinatorAttestation
    expect(webhookKeys?.map(({ key }) => parseWebhookKey(key))).toEqual(keys)
    for (const [index, { signature }] of webhookKeys?.entries() ?? []) {
      const message = Buffer.concat([toTagBytes(tags.webhookKey), keys[index] ?? new Uint8Array()])
      expect(ed25519.verify(fromHex(signature), message, fromHex(publicKey))).toBe(true)
    }
  })

  test('does not return unknown keys as an empty list', async () => {
    const response = await createTestApp({ deps: { getWebhookKeys: () => undefined } }).request('/health/attestation')
    expect([response.status, await response.json()]).toMatchObject([200, { mode: 'mock', webhookKeys: null }])
  })

  test.each(['', '0', 'ff'.repeat(65), 'FF', '0xff', 'zz', 'ff%20', '%00'])('rejects nonce %j', async (nonce) => {
    const response = await createTestApp().request(`/health/attestation?nonce=${nonce}`)
    expect(await response.json()).toMatchObject({ status: 400, code: 'invalid_request' })
  })
})
