import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { toCid } from '@countersign/receipt'
import { type FakePinata, type PinServiceFault, startFakePinata } from '@countersign/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPinataPinner } from './pinata.ts'
import { PinError, type PinErrorCode } from './pinError.ts'
import type { Pinner } from './pinner.ts'

const token = 'pinata-token-9a2e'
const bytes = new TextEncoder().encode('{"a":"block"}')
const block = { cid: toCid(bytes), bytes }
const { signal } = new AbortController()

describe('createPinataPinner', () => {
  let pinata: FakePinata
  let pinner: Pinner
  let confirming: Pinner
  const create = (options: { pinsUrl?: string; token?: string } = {}) =>
    createPinataPinner({ apiUrl: pinata.url, gatewayUrl: pinata.url, token, fetch, ...options })
  beforeEach(async () => {
    pinata = await startFakePinata({ token })
    pinner = create()
    confirming = create({ pinsUrl: pinata.pinsUrl })
  })
  afterEach(() => pinata.stop())

  const outcome = (promise: Promise<unknown>): Promise<PinErrorCode | 'ok'> =>
    promise.then(
      () => 'ok',
      (error: unknown) => {
        if (!(error instanceof PinError)) throw error
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(token)
        return error.code
      },
    )

  test('a block is held under its CID, and comes back as it was', async () => {
    await pinner.pin(block, { signal })
    await confirming.pin(block, { signal })
    expect([...pinata.blocks.keys()]).toEqual([block.cid])
    expect(Buffer.from(await pinner.read(block.cid, { signal })).equals(bytes)).toBe(true)
    expect(pinner.name).toBe('pinata')
    await pinner.stop()
  })

  test('what the gateway still gives counts as pinned only where the Pinning Service API lists it', async () => {
    await confirming.pin(block, { signal })
    expect(Buffer.from(await confirming.readPinned(block.cid, { signal })).equals(bytes)).toBe(true)
    for (const [status, code] of [
      ['queued', 'pin_unavailable'],
      ['failed', 'pin_refused'],
    ] as const) {
      pinata.setPinStatus(status)
      expect(await outcome(confirming.read(block.cid, { signal }))).toBe('ok')
      expect(await outcome(confirming.readPinned(block.cid, { signal }))).toBe(code)
    }
    const unlisted = createPinataPinner({
      ...{ apiUrl: pinata.url, gatewayUrl: pinata.url, pinsUrl: pinata.pinsUrl, token },
      fetch: async (url, init) =>
        url.startsWith(pinata.pinsUrl) ? Response.json({ count: 0, results: [] }) : fetch(url, init),
    })
    expect(await outcome(unlisted.readPinned(block.cid, { signal }))).toBe('pin_not_found')
    pinata.setPinStatus('pinned')
    expect(await outcome(pinner.readPinned(block.cid, { signal }))).toBe('pin_refused')
    expect(await outcome(confirming.readPinned('../v3/files', { signal }))).toBe('pin_mismatch')
  })

  test('probing: whether it takes the token, and nothing is held afterwards', async () => {
    expect(await outcome(create().probe({ signal }))).toBe('ok')
    expect(await outcome(create({ token: 'another' }).probe({ signal }))).toBe('pin_refused')
    for (const fault of ['down', 'error', 'busy', 'garbage'] as const) {
      pinata.setFault(fault)
      expect(await outcome(create().probe({ signal }))).toBe('pin_unavailable')
    }
    expect(pinata.blocks.size).toBe(0)
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
    pinata.setFault(fault)
    expect([await outcome(pinner.pin(block, { signal })), await outcome(pinner.read(block.cid, { signal }))]).toEqual([
      pinned,
      read,
    ])
    pinata.setFault()
    expect([await outcome(pinner.pin(block, { signal })), await outcome(pinner.read(block.cid, { signal }))]).toEqual([
      'ok',
      'ok',
    ])
  })

  test('forgets: found out by reading back, or at once by the Pinning Service API', async () => {
    pinata.setFault('forgets')
    expect(await outcome(pinner.pin(block, { signal }))).toBe('ok')
    expect(await outcome(pinner.read(block.cid, { signal }))).toBe('pin_not_found')
    expect(await outcome(confirming.pin(block, { signal }))).toBe('pin_not_found')
  })

  test.each([
    ['queued', 'pin_unavailable'],
    ['pinning', 'pin_unavailable'],
    ['failed', 'pin_refused'],
    ['pinned', 'ok'],
  ] as const)('Pinning Service API: %s is %s', async (status, code) => {
    pinata.setPinStatus(status)
    expect(await outcome(confirming.pin(block, { signal }))).toBe(code)
    expect(await outcome(pinner.pin(block, { signal }))).toBe('ok')
  })

  test('a file that Pinata would cut into pieces gets another CID, which is refused', async () => {
    const large = new Uint8Array(262_145)
    expect(await outcome(pinner.pin({ cid: toCid(large), bytes: large }, { signal }))).toBe('pin_mismatch')
    const fitting = large.subarray(1)
    expect(await outcome(pinner.pin({ cid: toCid(fitting), bytes: fitting }, { signal }))).toBe('ok')
  })

  test('an upload that stayed private is no success', async () => {
    const answer = Response.json({ data: { cid: block.cid, network: 'private' } })
    const privately = createPinataPinner({ gatewayUrl: pinata.url, token, fetch: async () => answer })
    expect(await outcome(privately.pin(block, { signal }))).toBe('pin_refused')
  })

  test('a wrong token is refused', async () => {
    expect(await outcome(create({ token: 'wrong' }).pin(block, { signal }))).toBe('pin_refused')
  })

  test('the token goes to the API and not to the gateway', async () => {
    const seen: [string, string | null][] = []
    const watched = createPinataPinner({
      apiUrl: pinata.url,
      gatewayUrl: pinata.url,
      pinsUrl: pinata.pinsUrl,
      token,
      fetch: (url, init) => {
        seen.push([new URL(url).pathname, new Headers(init.headers).get('authorization')])
        return fetch(url, init)
      },
    })
    await watched.pin(block, { signal })
    await watched.read(block.cid, { signal })
    const bearer = `Bearer ${token}`
    expect(seen).toEqual([
      ['/v3/files', bearer],
      ['/psa/pins', bearer],
      [`/ipfs/${block.cid}`, null],
    ])
  })

  test('a block that is not its CID’s, or no CID of ours, is not sent at all', async () => {
    expect(await outcome(pinner.pin({ cid: toCid(Uint8Array.of(1)), bytes }, { signal }))).toBe('pin_mismatch')
    expect(await outcome(pinner.read('../v3/files', { signal }))).toBe('pin_mismatch')
    expect(pinata.requests).toBe(0)
  })

  test('a call that hangs ends with its signal', async () => {
    pinata.setFault('slow', { delayMs: 3_600_000 })
    const controller = new AbortController()
    const calls = [
      outcome(pinner.pin(block, { signal: controller.signal })),
      outcome(pinner.read(block.cid, { signal: controller.signal })),
    ]
    while (pinata.requests < 2) await setImmediate()
    controller.abort()
    expect(await Promise.all(calls)).toEqual(['pin_unavailable', 'pin_unavailable'])
  })
})
