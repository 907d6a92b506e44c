import { fromHex, verifyEd25519 } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createAgentKey, importAgentKey } from './agentKey.ts'

test('a browser creates a key, and signs with it', async () => {
  const { key, publicKey } = await createAgentKey()
  const { privateKey } = await importAgentKey(key)
  const message = new TextEncoder().encode('a payment')
  const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', privateKey, message))
  expect(verifyEd25519(fromHex(publicKey), signature, message)).toBe(true)
})
