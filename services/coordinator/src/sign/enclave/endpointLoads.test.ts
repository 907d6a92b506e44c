import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createEndpointLoads } from './endpointLoads.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const QUOTE_MS = 40
const leavesOf = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name} ${index}`)

function setUp(count: number) {
  const loads = createEndpointLoads(count)
  let sequence = 0

  /** A call with this many items. It ends when the test says so. */
  function begin(index: number, items = 1) {
    const over = Promise.withResolvers<void>()
    let began = 0
    const done = loads.run(index, items, (beganAt) => {
      began = beganAt
      return over.promise
    })
    return {
      /** `others` are leaves of other coordinators in the same batch. */
      async answer({ others = 0, isOpen = false, batch = sequence++ } = {}) {
        const leaves = leavesOf(`${index} ${batch}`, items + others)
        const open = { bootId: String(index), sequence: batch, previous: '', leaves }
        const results = leavesOf('', items).map((_, leafIndex) => ({ batch: 0, leafIndex }))
        loads.observe(index, began, { batches: [isOpen ? open : { ...open, quote: '' }], results })
        over.resolve()
        await done
        return leaves
      },
      async fail() {
        over.reject(new Error('gone'))
        await done.catch(() => {})
      },
    }
  }

  async function sign(index: number, { quoteMs = QUOTE_MS, items = 1, others = 0 } = {}) {
    const call = begin(index, items)
    vi.advanceTimersByTime(quoteMs)
    await call.answer({ others })
  }
  return { loads, begin, sign }
}

describe('the choice of the first endpoint', () => {
  test('sequential calls go to the first one in the operator’s order', async () => {
    const { loads, sign } = setUp(3)
    for (const index of [2, 1, 0]) await sign(index)
    for (let call = 0; call < 3; call++) {
      expect(loads.order()).toEqual([0, 1, 2])
      await sign(0)
      for (const index of [1, 2]) await sign(index)
    }
  })

  test('an idle one before a busy one', async () => {
    const { loads, begin, sign } = setUp(2)
    await sign(0)
    await sign(1)
    begin(0)
    expect(loads.order()).toEqual([1, 0])
  })

  test('of two busy ones, the one whose quote ends first, regardless of its items', async () => {
    const { loads, begin, sign } = setUp(2)
    await sign(0)
    await sign(1)
    begin(0, 100)
    vi.advanceTimersByTime(QUOTE_MS / 2)
    begin(1)
    expect(loads.order()).toEqual([0, 1])
  })

  test('of two whose quotes end together, the one with fewer items', async () => {
    const { loads, begin } = setUp(2)
    begin(0, 2)
    begin(1, 1)
    expect(loads.order()).toEqual([1, 0])
  })

  test('a slow one is skipped, and tried again once its quote time is old', async () => {
    const { loads, begin, sign } = setUp(2)
    await sign(1)
    await sign(0, { quoteMs: 1_000 })
    await sign(1)
    begin(1)
    expect(loads.order()).toEqual([1, 0])
    vi.advanceTimersByTime(10_000)
    expect(loads.order()).toEqual([0, 1])
  })

  test('one without calls is tried when the first is slow', async () => {
    const { loads, sign } = setUp(2)
    await sign(0, { quoteMs: 1_015 })
    expect(loads.order()).toEqual([1, 0])
    await sign(1)
    expect(loads.order()).toEqual([1, 0])
  })

  test('a silent one gets no more calls than the other handles', async () => {
    const { loads, begin, sign } = setUp(2)
    await sign(0)
    await sign(1)
    begin(0)
    vi.advanceTimersByTime(5 * QUOTE_MS)
    const other = begin(1)
    expect(loads.order()).toEqual([1, 0])
    await other.answer()
  })

  test('with a log, it stays busy after its answer until its quote ends', async () => {
    const { loads, begin } = setUp(2)
    for (const index of [0, 1]) {
      const leaves = await begin(index).answer({ isOpen: true })
      vi.advanceTimersByTime(QUOTE_MS)
      loads.observeRelease(index, leaves)
    }
    await begin(0).answer({ isOpen: true })
    expect(loads.order()).toEqual([1, 0])
    vi.advanceTimersByTime(QUOTE_MS)
    expect(loads.order()).toEqual([0, 1])
  })

  test('ignores releases of unknown or no leaves', () => {
    const { loads } = setUp(1)
    for (const leaves of [undefined, [], ['of another boot']]) loads.observeRelease(0, leaves)
    expect(loads.order()).toEqual([0])
  })
})

describe('a failed endpoint', () => {
  test('comes last for a while; then one call tries it, and only a success restores it', async () => {
    const { loads, begin, sign } = setUp(2)
    loads.avoid(0)
    begin(1)
    expect(loads.order()).toEqual([1, 0])
    vi.advanceTimersByTime(60_001)
    expect(loads.order()).toEqual([0, 1])
    expect(loads.order()).toEqual([1, 0])
    await begin(0).fail()
    expect(loads.order()).toEqual([1, 0])
    vi.advanceTimersByTime(60_001)
    expect(loads.order()).toEqual([0, 1])
    await sign(0)
    expect(loads.countSlots()).toBe(16)
  })

  test('can be avoided for a shorter time', () => {
    const { loads } = setUp(2)
    loads.avoid(0, 1_000)
    expect(loads.order()).toEqual([1, 0])
    vi.advanceTimersByTime(1_001)
    expect(loads.order()).toEqual([0, 1])
  })

  test('is not restored by a call that started before it failed', async () => {
    const { loads, begin } = setUp(2)
    const early = begin(0)
    vi.advanceTimersByTime(1)
    loads.avoid(0)
    await early.answer()
    expect(loads.order()).toEqual([1, 0])
  })

  test('is still called if all have failed', async () => {
    const { loads, sign } = setUp(2)
    loads.avoid(0)
    loads.avoid(1)
    expect(loads.order()).toEqual([0, 1])
    expect(loads.countSlots()).toBe(8)
    await sign(1)
    expect(loads.order()).toEqual([1, 0])
  })
})

describe('the number of concurrent calls', () => {
  test('eight for each working endpoint', () => {
    const { loads } = setUp(2)
    expect(loads.countSlots()).toBe(16)
    loads.avoid(1)
    expect(loads.countSlots()).toBe(8)
  })

  test('fewer if other coordinators have leaves in the same quotes: this coordinator’s share', async () => {
    const { loads, begin, sign } = setUp(1)
    await sign(0, { items: 10 })
    expect(loads.countSlots()).toBe(8)
    const [first, second] = [begin(0, 10), begin(0, 10)]
    await first.answer({ batch: 100, others: 20 })
    await second.answer({ batch: 100, others: 20 })
    await sign(0, { items: 1, others: 99 })
    // 20 of 30.
    expect(loads.countSlots()).toBe(5)
    await sign(0)
    expect(loads.countSlots()).toBe(2)
    await sign(0)
    expect(loads.countSlots()).toBe(8)
  })

  test('at least two and at most eight, regardless of the batches that an enclave names', async () => {
    const { loads, begin } = setUp(1)
    // The same batch repeatedly: more leaves of this coordinator than it has.
    for (let call = 0; call < 9; call++) await begin(0, 3).answer({ batch: 1 })
    await begin(0, 1).answer({ batch: 2, others: 255 })
    expect(loads.countSlots()).toBe(8)
    await begin(0, 1).answer({ batch: 3 })
    expect(loads.countSlots()).toBe(2)
  })
})
