import { createHash, createPublicKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { vendorRoots } from './roots.ts'

describe('the pinned vendor roots', () => {
  test('are hardware roots: one of Intel, and one for each AMD product', () => {
    expect(vendorRoots.map(({ vendor, name, mode }) => [vendor, name, mode])).toEqual([
      ['intel', 'Intel SGX Root CA', 'hardware'],
      ['amd', 'ARK-Milan', 'hardware'],
      ['amd', 'ARK-Genoa', 'hardware'],
      ['amd', 'ARK-Turin', 'hardware'],
    ])
  })

  test.each(vendorRoots.map((root) => [root.name, root] as const))('%s has a complete public key', (_, root) => {
    const key = createPublicKey({ key: Buffer.from(root.publicKey, 'hex'), format: 'der', type: 'spki' })
    expect(key.asymmetricKeyType).toBe(root.vendor === 'intel' ? 'ec' : 'rsa')
    expect(root.certificateSha256).toMatch(/^[0-9a-f]{64}$/)
  })

  test('match the snapshot, so that a review shows every changed key', () => {
    const digest = (hex: string) => createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex').slice(0, 16)
    expect(vendorRoots.map(({ publicKey }) => digest(publicKey))).toMatchInlineSnapshot(`
      [
        "a0af031289f5d5d4",
        "9f056bee44377e29",
        "429a69c9422aa258",
        "4f125410563a2ab9",
      ]
    `)
  })
})
