import { fromHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { importRsaKey, verifyRsaPss } from './crypto.ts'

test('a key that is too short for its salt verifies nothing, and throws nothing', async () => {
  // n = 15, e = 3
  const key = await importRsaKey(fromHex('301a300d06092a864886f70d0101010500030900300602010f020103'))
  expect(await verifyRsaPss(key, new Uint8Array(1), new Uint8Array(1))).toBe(false)
})
