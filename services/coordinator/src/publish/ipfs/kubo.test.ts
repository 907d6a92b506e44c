import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { toCid } from '@countersign/receipt'
import { type FakePinService, type PinServiceFault, startFakeKubo } from '@countersign/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createKuboPinner } from './kubo.ts'
import { PinError, type PinErrorCode } from './pinError.ts'
import type { Pinner } from './pinner.ts'

const token = 'kubo-token-4f1c'
const bytes = new TextEncoder().encode('{"a":"block"}')
const block = { cid: toCid(bytes), bytes }
const { signal } = new AbortController()

describe('createKuboPinner', () => {
  let kubo: FakePinService
  let pinner: Pinner
  beforeEach(async () => {
    kubo = await startFakeKubo({ token })
    pinner = createKuboPinner({ apiUrl: kubo.url, token, fetch })
  })
  afterEach(() => kubo.stop())

  const outcome = (promise: Promise<unknown>): Promise<PinErrorCode | 'ok'> =>
    promise.then(
      () => 'ok',
      (error: unknown) => {
        if (!(error instanceof PinError)) throw error
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(token)
        return error.code
      },
    )

  test('probing: whether it takes the token, and nothing is held afterwards', async () => {
    const probe = (own = token) => outcome(createKuboPinner({ apiUrl: kubo.url, token: own, fetch }).probe({ signal }))
    expect(await probe()).toBe('ok')
    expect(await probe('another')).toBe('pin_refused')
    for (const fault of ['down', 'error', 'busy', 'garbage'] as const) {
      kubo.setFault(fault)
      expect(await probe()).toBe('pin_unavailable')
    }
    expect(kubo.blocks.size).toBe(0)
  })

  test('a block is held under its CID, and comes back as it was', async () => {
    await pinner.pin(block, { signal })
    await pinner.pin(block, { signal })
    expect([...kubo.blocks.keys()]).toEqual([block.cid])
    expect(Buffer.from(await pinner.read(block.cid, { signal })).equals(bytes)).toBe(true)
    expect(pinner.name).toBe('kubo')
    await pinner.stop()
  })

  test('a receipt of the largest size passes', async () => {
    const large = new Uint8Array(262_144).fill(7)
    await pinner.pin({ cid: toCid(large), bytes: large }, { signal })
    expect((await pinner.read(toCid(large), { signal })).length).toBe(large.length)
  })

  const faults: [PinServiceFault, PinErrorCode | 'ok', PinErrorCode | 'ok'][] = [
    ['down', 'pin_unavailable', 'pin_unavailable'],
    ['error', 'pin_unavailable', 'pin_unavailable'],
    ['busy', 'pin_unavailable', 'pin_unavailable'],
    ['refused', 'pin_refused', 'pin_refused'],
    ['reset-after-accept', 'pin_unavailable', 'ok'],
    ['wrong-cid', 'pin_mismatch', 'ok'],
    ['truncated', 'ok', 'pin_mismatch'],
    ['flipped', 'ok', 'pin_mismatch'],
    ['endless', 'ok', 'pin_mismatch'],
    ['garbage', 'pin_unavailable', 'pin_mismatch'],
  ]
  test.each(faults)('%s: pinning is %s, reading is %s', async (fault, pinned, read) => {
    await pinner.pin(block, { signal })
    kubo.setFault(fault)
    expect([await outcome(pinner.pin(block, { signal })), await outcome(pinner.read(block.cid, { signal }))]).toEqual([
      pinned,
      read,
    ])
    kubo.setFault()
    expect([await outcome(pinner.pin(block, { signal })), await outcome(pinner.read(block.cid, { signal }))]).toEqual([
      'ok',
      'ok',
    ])
  })

  test('forgets: what was accepted but is not pinned is no success', async () => {
    kubo.setFault('forgets')
    expect(await outcome(pinner.pin(block, { signal }))).toBe('pin_not_found')
    expect(await outcome(pinner.read(block.cid, { signal }))).toBe('pin_not_found')
  })

  test('reset-after-accept: the next try finds the block there already', async () => {
    kubo.setFault('reset-after-accept')
    expect(await outcome(pinner.pin(block, { signal }))).toBe('pin_unavailable')
    expect(kubo.blocks.has(block.cid)).toBe(true)
    kubo.setFault()
    expect(await outcome(pinner.pin(block, { signal }))).toBe('ok')
  })

  test('a pin that hangs on another block is none', async () => {
    const indirect = createKuboPinner({
      apiUrl: kubo.url,
      token,
      fetch: async (url, init) =>
        url.includes('/pin/ls')
          ? Response.json({ Keys: { [block.cid]: { Type: 'indirect through bafy', Name: '' } } })
          : fetch(url, init),
    })
    expect(await outcome(indirect.pin(block, { signal }))).toBe('pin_not_found')
  })

  test('a block that can be read and is not pinned: nobody keeps it', async () => {
    await pinner.pin(block, { signal })
    expect(Buffer.from(await pinner.readPinned(block.cid, { signal })).equals(bytes)).toBe(true)
    const answers = [
      Response.json({ Message: `path '${block.cid}' is not pinned`, Code: 0, Type: 'error' }, { status: 500 }),
      Response.json({ Keys: { [block.cid]: { Type: 'indirect through bafy', Name: '' } } }),
      Response.json({ Keys: {} }),
    ]
    for (const answer of answers) {
      const unpinned = createKuboPinner({
        apiUrl: kubo.url,
        token,
        fetch: async (url, init) => (url.includes('/pin/ls') ? answer : fetch(url, init)),
      })
      expect(await outcome(unpinned.read(block.cid, { signal }))).toBe('ok')
      expect(await outcome(unpinned.readPinned(block.cid, { signal }))).toBe('pin_not_found')
    }
    for (const fault of ['flipped', 'truncated'] as const) {
      kubo.setFault(fault)
      expect(await outcome(pinner.readPinned(block.cid, { signal }))).toBe('pin_mismatch')
    }
    expect(await outcome(pinner.readPinned('../../repo/gc', { signal }))).toBe('pin_mismatch')
  })

  test('a pin list of something else is none', async () => {
    const foreign = createKuboPinner({
      apiUrl: kubo.url,
      token,
      fetch: async (url, init) => (url.includes('/pin/ls') ? Response.json({ Keys: {} }) : fetch(url, init)),
    })
    expect(await outcome(foreign.pin(block, { signal }))).toBe('pin_not_found')
  })

  test.each([
    ['a wrong token', 'wrong'],
    ['no token', undefined],
  ])('%s is refused', async (_name, wrong) => {
    const stranger = createKuboPinner({ apiUrl: kubo.url, token: wrong, fetch })
    expect(await outcome(stranger.pin(block, { signal }))).toBe('pin_refused')
    expect(await outcome(stranger.read(block.cid, { signal }))).toBe('pin_refused')
  })

  test('an address where no Kubo answers is refused, not taken for a missing block', async () => {
    const lost = createKuboPinner({ apiUrl: `${kubo.url}/elsewhere`, token, fetch })
    expect(await outcome(lost.read(block.cid, { signal }))).toBe('pin_refused')
  })

  test('a block that is not its CID’s, or no CID of ours, is not sent at all', async () => {
    const other = toCid(Uint8Array.of(1))
    expect(await outcome(pinner.pin({ cid: other, bytes }, { signal }))).toBe('pin_mismatch')
    expect(await outcome(pinner.read('../../repo/gc', { signal }))).toBe('pin_mismatch')
    expect(await outcome(pinner.read(`${block.cid}&arg=x`, { signal }))).toBe('pin_mismatch')
    const large = new Uint8Array(1_048_577)
    expect(await outcome(pinner.pin({ cid: toCid(large), bytes: large }, { signal }))).toBe('pin_refused')
    expect(kubo.requests).toBe(0)
  })

  test('a call that hangs ends with its signal', async () => {
    kubo.setFault('slow', { delayMs: 3_600_000 })
    const controller = new AbortController()
    const calls = [
      outcome(pinner.pin(block, { signal: controller.signal })),
      outcome(pinner.read(block.cid, { signal: controller.signal })),
    ]
    while (kubo.requests < 2) await setImmediate()
    controller.abort(new Error(`because of ${token}`))
    expect(await Promise.all(calls)).toEqual(['pin_unavailable', 'pin_unavailable'])
    expect(await outcome(pinner.pin(block, { signal: controller.signal }))).toBe('pin_unavailable')
    expect(kubo.requests).toBe(2)
  })

  test('slow: late is not wrong', async () => {
    kubo.setFault('slow', { delayMs: 1 })
    expect(await outcome(pinner.pin(block, { signal }))).toBe('ok')
    expect(await outcome(pinner.read(block.cid, { signal }))).toBe('ok')
  })
})
