import { toCid } from '@countersign/receipt'
import { type FakePinata, type FakePinService, startFakeKubo, startFakePinata } from '@countersign/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFakeLog } from '../ports.fake.ts'
import type { ReceiptSource } from './config.ts'
import { createReadBlock } from './createReadBlock.ts'
import { createKuboPinner } from './kubo.ts'
import { createPinataPinner } from './pinata.ts'

const bytes = new Uint8Array(Buffer.from('{"receipt":true}'))
const block = { cid: toCid(bytes), bytes }
const signal = new AbortController().signal
const never = () => Promise.reject(new Error('asked for a pipeline'))

describe('where a coordinator reads receipts', () => {
  let kubo: FakePinService
  let pinata: FakePinata
  beforeAll(async () => {
    kubo = await startFakeKubo()
    pinata = await startFakePinata({ token: 'token' })
    await createKuboPinner({ apiUrl: kubo.url, fetch }).pin(block, { signal })
    const service = { apiUrl: pinata.url, gatewayUrl: pinata.url, token: 'token' }
    await createPinataPinner({ ...service, fetch }).pin(block, { signal })
  })
  afterAll(async () => {
    await kubo.stop()
    await pinata.stop()
  })
  const sources = {
    kubo: (): ReceiptSource => ({ kind: 'kubo', apiUrl: kubo.url, token: undefined }),
    gateway: (): ReceiptSource => ({ kind: 'gateway', gatewayUrl: pinata.url }),
  }
  const create = (source: ReceiptSource) => createReadBlock({ source, hasPipeline: false, whenStarted: never })

  test.each(['kubo', 'gateway'] as const)('%s: by the CID, and only what it names', async (name) => {
    const service = name === 'kubo' ? kubo : pinata
    const readBlock = create(sources[name]())
    expect(Buffer.from((await readBlock?.(block.cid, { signal })) ?? []).equals(bytes)).toBe(true)
    for (const fault of ['flipped', 'truncated'] as const) {
      service.setFault(fault)
      await expect(readBlock?.(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_mismatch' })
    }
    service.setFault('down')
    await expect(readBlock?.(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_unavailable' })
    service.setFault()
    await expect(readBlock?.('../api', { signal })).rejects.toMatchObject({ code: 'pin_mismatch' })
    await expect(readBlock?.(toCid(new Uint8Array(1)), { signal })).rejects.toMatchObject({ code: 'pin_not_found' })
  })

  test('from what it pins to itself, whatever the settings name; while that starts, a read waits', async () => {
    const { promise, resolve } = Promise.withResolvers<() => Promise<typeof bytes>>()
    const readBlock = createReadBlock({ source: sources.kubo(), hasPipeline: true, whenStarted: () => promise })
    const reading = readBlock?.('a CID', { signal })
    resolve(async () => bytes)
    expect(await reading).toBe(bytes)
  })

  test('from nowhere, where it knows no node, and the log says what that means', () => {
    const log = createFakeLog()
    const createLogged = (source: ReceiptSource | undefined, hasPipeline = false) =>
      createReadBlock({ source, hasPipeline, whenStarted: never, log })
    expect([createLogged(sources.gateway()), createLogged(undefined, true)]).not.toContain(undefined)
    expect(log.lines).toEqual([])
    expect(createLogged(undefined)).toBeUndefined()
    expect(log.lines).toEqual([
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('RECEIPT_RETENTION_D') }),
    ])
  })
})
