import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { toCid } from '@countersign/receipt'
import {
  type FakePinata,
  type FakePinService,
  type PinServiceFault,
  startFakeKubo,
  startFakePinata,
} from '@countersign/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Fetch } from './exchange.ts'
import { createKuboPinner } from './kubo.ts'
import { createPinataPinner } from './pinata.ts'
import { PinError, type PinErrorCode } from './pinError.ts'
import type { Block, RemotePinner } from './pinner.ts'

const token = 'pin-token-4f1c'
const bytes = new TextEncoder().encode('{"a":"block"}')
const block = { cid: toCid(bytes), bytes }
const { signal } = new AbortController()

type Options = { token?: string | undefined; fetch?: Fetch; pinsUrl?: string }
const connectKubo = ({ url }: FakePinService, options: Options = {}) =>
  createKuboPinner({ apiUrl: url, token, fetch, ...options })
const connectPinata = ({ url }: FakePinService, { token: own = token, ...options }: Options = {}) =>
  createPinataPinner({ apiUrl: url, gatewayUrl: url, token: own, fetch, ...options })

const outcome = (promise: Promise<unknown>): Promise<PinErrorCode | 'ok'> =>
  promise.then(
    () => 'ok',
    (error: unknown) => {
      if (!(error instanceof PinError)) throw error
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(token)
      return error.code
    },
  )

/** The outcome of pinning and reading for each fault. */
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

describe.each([
  { name: 'kubo', start: startFakeKubo, connect: connectKubo },
  { name: 'pinata', start: startFakePinata, connect: connectPinata },
])('$name', ({ name, start, connect }) => {
  let service: FakePinService
  let pinner: RemotePinner
  beforeEach(async () => {
    service = await start({ token })
    pinner = connect(service)
  })
  afterEach(() => service.stop())

  const pin = () => outcome(pinner.pin(block, { signal }))
  const read = () => outcome(pinner.read(block.cid, { signal }))

  test('stores a block under its CID and returns it unchanged', async () => {
    await pinner.pin(block, { signal })
    await pinner.pin(block, { signal })
    expect([...service.blocks.keys()]).toEqual([block.cid])
    expect(Buffer.from(await pinner.read(block.cid, { signal })).equals(bytes)).toBe(true)
    expect(pinner.name).toBe(name)
    await pinner.stop()
  })

  test('accepts a receipt of the maximum size', async () => {
    const large = new Uint8Array(262_144).fill(7)
    await pinner.pin({ cid: toCid(large), bytes: large }, { signal })
    expect((await pinner.read(toCid(large), { signal })).length).toBe(large.length)
  })

  test('probe checks the token without pinning', async () => {
    expect(await outcome(pinner.probe({ signal }))).toBe('ok')
    expect(await outcome(connect(service, { token: 'another' }).probe({ signal }))).toBe('pin_refused')
    for (const fault of ['down', 'error', 'busy', 'garbage'] as const) {
      service.setFault(fault)
      expect(await outcome(pinner.probe({ signal }))).toBe('pin_unavailable')
    }
    expect(service.blocks.size).toBe(0)
  })

  test.each(faults)('%s: pinning gives %s, reading gives %s', async (fault, pinned, given) => {
    await pinner.pin(block, { signal })
    service.setFault(fault)
    expect([await pin(), await read()]).toEqual([pinned, given])
    service.setFault()
    expect([await pin(), await read()]).toEqual(['ok', 'ok'])
  })

  test('reset-after-accept: the next attempt finds the block', async () => {
    service.setFault('reset-after-accept')
    expect(await pin()).toBe('pin_unavailable')
    expect(service.blocks.has(block.cid)).toBe(true)
    service.setFault()
    expect(await pin()).toBe('ok')
  })

  test('rejects a wrong token', async () => {
    expect(await outcome(connect(service, { token: 'wrong' }).pin(block, { signal }))).toBe('pin_refused')
  })

  test('sends no mismatched or oversized block, and requests no foreign CID', async () => {
    const large = new Uint8Array(1_048_577)
    const other = toCid(Uint8Array.of(1))
    expect(await outcome(pinner.pin({ cid: other, bytes }, { signal }))).toBe('pin_mismatch')
    expect(await outcome(pinner.pin({ cid: toCid(large), bytes: large }, { signal }))).toBe('pin_refused')
    for (const cid of ['../../repo/gc', `${block.cid}&arg=x`]) {
      expect(await outcome(pinner.read(cid, { signal }))).toBe('pin_mismatch')
      expect(await outcome(pinner.readPinned(cid, { signal }))).toBe('pin_mismatch')
    }
    expect(service.requests).toBe(0)
  })

  test('a hanging call ends when its signal aborts', async () => {
    service.setFault('slow', { delayMs: 3_600_000 })
    const controller = new AbortController()
    const hanging = { signal: controller.signal }
    const calls = [outcome(pinner.pin(block, hanging)), outcome(pinner.read(block.cid, hanging))]
    while (service.requests < 2) await setImmediate()
    controller.abort(new Error(`because of ${token}`))
    expect(await Promise.all(calls)).toEqual(['pin_unavailable', 'pin_unavailable'])
    expect(await outcome(pinner.pin(block, hanging))).toBe('pin_unavailable')
    expect(service.requests).toBe(2)
  })
})

describe('kubo', () => {
  let kubo: FakePinService
  let pinner: RemotePinner
  beforeEach(async () => {
    kubo = await startFakeKubo({ token })
    pinner = connectKubo(kubo)
  })
  afterEach(() => kubo.stop())

  test('forgets: fails if an accepted block is not pinned', async () => {
    kubo.setFault('forgets')
    expect(await outcome(pinner.pin(block, { signal }))).toBe('pin_not_found')
    expect(await outcome(pinner.read(block.cid, { signal }))).toBe('pin_not_found')
  })

  test.each([
    ['unpinned', { Message: `path '${block.cid}' is not pinned`, Code: 0, Type: 'error' }, 500],
    ['pinned through another block', { Keys: { [block.cid]: { Type: 'indirect through bafy', Name: '' } } }, 200],
    ['in no list', { Keys: {} }, 200],
  ])('rejects a readable block that is %s', async (_name, list, status) => {
    await pinner.pin(block, { signal })
    expect(Buffer.from(await pinner.readPinned(block.cid, { signal })).equals(bytes)).toBe(true)
    const unpinned = connectKubo(kubo, {
      fetch: async (url, init) => (url.includes('/pin/ls') ? Response.json(list, { status }) : fetch(url, init)),
    })
    expect(await outcome(unpinned.read(block.cid, { signal }))).toBe('ok')
    expect(await outcome(unpinned.readPinned(block.cid, { signal }))).toBe('pin_not_found')
    expect(await outcome(unpinned.pin(block, { signal }))).toBe('pin_not_found')
  })

  test('a pinned block with other bytes is a mismatch', async () => {
    await pinner.pin(block, { signal })
    kubo.setFault('flipped')
    expect(await outcome(pinner.readPinned(block.cid, { signal }))).toBe('pin_mismatch')
  })

  describe('concurrent pins', () => {
    const toBlocks = (count: number, length = 12) =>
      Array.from({ length: count }, (_, index) => {
        const content = new Uint8Array(length).fill(index)
        return { cid: toCid(content), bytes: content }
      })
    /** Answers some calls instead of Kubo. */
    const connectWith = (answer: (url: string, body: FormData | undefined) => Promise<Response> | undefined) =>
      connectKubo(kubo, {
        fetch: async (url, init) => {
          const body = init.body instanceof FormData ? init.body : undefined
          return answer(url, body) ?? fetch(url, init)
        },
      })
    const pinAll = (to: RemotePinner, blocks: readonly Block[]) =>
      Promise.all(blocks.map((one) => outcome(to.pin(one, { signal }))))

    test('share two calls, and each block gets its own pin', async () => {
      const blocks = toBlocks(40)
      expect(new Set(await pinAll(pinner, blocks))).toEqual(new Set(['ok']))
      expect(kubo.requests).toBe(4)
      for (const one of blocks) {
        expect(Buffer.from(await pinner.readPinned(one.cid, { signal })).equals(one.bytes)).toBe(true)
      }
    })

    test('of the same block both succeed', async () => {
      expect(await pinAll(pinner, [block, ...toBlocks(1), block])).toEqual(['ok', 'ok', 'ok'])
      expect([...kubo.blocks.keys()]).toHaveLength(2)
    })

    test('are sent in several calls if they are large', async () => {
      expect(await pinAll(pinner, toBlocks(5, 900_000))).toEqual(['ok', 'ok', 'ok', 'ok', 'ok'])
      expect(kubo.requests).toBe(6)
    })

    test('fail only for the block that Kubo rejects', async () => {
      const [bad, ...others] = toBlocks(5) as [Block, ...Block[]]
      const failing = connectWith((_url, body) =>
        body?.getAll('file').some((file) => file instanceof Blob && 'name' in file && file.name === bad.cid)
          ? Promise.resolve(Response.json({ Message: 'no space', Code: 0, Type: 'error' }, { status: 500 }))
          : undefined,
      )
      expect(await pinAll(failing, [bad, ...others])).toEqual(['pin_unavailable', 'ok', 'ok', 'ok', 'ok'])
      expect([...kubo.blocks.keys()].toSorted()).toEqual(others.map(({ cid }) => cid).toSorted())
    })

    test('fail only for a block with an indirect pin, whichever block Kubo names', async () => {
      const [indirect, ...others] = toBlocks(3) as [Block, ...Block[]]
      const mixed = connectWith((url) => {
        const cids = new URL(url).searchParams.getAll('arg')
        if (!url.includes('/pin/ls') || !cids.includes(indirect.cid)) return undefined
        // Kubo lists direct pins first, in the order of the request.
        const types = cids.map((_, place) => (place === cids.length - 1 ? 'indirect through bafy' : 'recursive'))
        return Promise.resolve(
          Response.json({ Keys: Object.fromEntries(cids.map((cid, at) => [cid, { Type: types[at] }])) }),
        )
      })
      expect(await pinAll(mixed, [indirect, ...others])).toEqual(['pin_not_found', 'ok', 'ok'])
    })

    test('are retried one by one if Kubo confirms only the first', async () => {
      const blocks = toBlocks(3)
      const single = connectWith((url, body) => {
        const [first, ...rest] = body?.getAll('file') ?? []
        if (!(first instanceof Blob) || rest.length === 0) return undefined
        const one = new FormData()
        one.append('file', first, 'block')
        return fetch(url, { method: 'POST', body: one, headers: { authorization: `Bearer ${token}` } })
      })
      expect(await pinAll(single, blocks)).toEqual(['ok', 'ok', 'ok'])
      for (const { cid } of blocks) expect(kubo.blocks.has(cid)).toBe(true)
    })

    test('are mismatches if Kubo names other CIDs', async () => {
      kubo.setFault('wrong-cid')
      expect(await pinAll(pinner, toBlocks(3))).toEqual(['pin_mismatch', 'pin_mismatch', 'pin_mismatch'])
    })

    test('end only for the caller that aborts', async () => {
      const [first, ...others] = toBlocks(3) as [Block, ...Block[]]
      const { promise: isSent, resolve: send } = Promise.withResolvers<void>()
      const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>()
      const held = connectKubo(kubo, {
        fetch: async (url, init) => {
          send()
          await mayGoOn
          return fetch(url, init)
        },
      })
      const controller = new AbortController()
      const given = outcome(held.pin(first, { signal: controller.signal }))
      const rest = pinAll(held, others)
      await isSent
      controller.abort()
      expect(await given).toBe('pin_unavailable')
      goOn()
      expect(await rest).toEqual(['ok', 'ok'])
    })
  })

  test('reports a missing token as rejected', async () => {
    const stranger = connectKubo(kubo, { token: undefined })
    expect(await outcome(stranger.pin(block, { signal }))).toBe('pin_refused')
    expect(await outcome(stranger.read(block.cid, { signal }))).toBe('pin_refused')
  })

  test('reports a server that is not Kubo as rejected, not as a missing block', async () => {
    const lost = createKuboPinner({ apiUrl: `${kubo.url}/elsewhere`, token, fetch })
    expect(await outcome(lost.read(block.cid, { signal }))).toBe('pin_refused')
  })
})

describe('pinata', () => {
  let pinata: FakePinata
  let pinner: RemotePinner
  let confirming: RemotePinner
  beforeEach(async () => {
    pinata = await startFakePinata({ token })
    pinner = connectPinata(pinata)
    confirming = connectPinata(pinata, { pinsUrl: pinata.pinsUrl })
  })
  afterEach(() => pinata.stop())

  test('counts a block as pinned only if the Pinning Service API lists it', async () => {
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
    const unlisted = connectPinata(pinata, {
      pinsUrl: pinata.pinsUrl,
      fetch: async (url, init) =>
        url.startsWith(pinata.pinsUrl) ? Response.json({ count: 0, results: [] }) : fetch(url, init),
    })
    expect(await outcome(unlisted.readPinned(block.cid, { signal }))).toBe('pin_not_found')
    pinata.setPinStatus('pinned')
    expect(await outcome(pinner.readPinned(block.cid, { signal }))).toBe('pin_refused')
  })

  test('forgets: detected by reading back, or by the Pinning Service API', async () => {
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

  test('rejects the CID of a file that Pinata chunks', async () => {
    const large = new Uint8Array(262_145)
    expect(await outcome(pinner.pin({ cid: toCid(large), bytes: large }, { signal }))).toBe('pin_mismatch')
  })

  test('rejects a private upload', async () => {
    const answer = Response.json({ data: { cid: block.cid, network: 'private' } })
    const privately = connectPinata(pinata, { fetch: async () => answer })
    expect(await outcome(privately.pin(block, { signal }))).toBe('pin_refused')
  })

  test('sends the token to the API but not to the gateway', async () => {
    const seen: [string, string | null][] = []
    const watched = connectPinata(pinata, {
      pinsUrl: pinata.pinsUrl,
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
})
