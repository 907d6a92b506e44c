import type { ReleaseRequest } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createManualTime } from '../../test/manualTime.ts'
import { createFakeLog } from '../../test/ports.ts'
import { unavailable } from '../../test/signingLog.ts'
import { createReleases } from './signLog.ts'

const [A, B] = ['aa'.repeat(16), 'bb'.repeat(16)]
/** A byte of the first batch. */
const one = { bytes: 1, sequence: 0 }

function setUp() {
  const time = createManualTime(new Date())
  const log = createFakeLog()
  const fake = {
    requests: [] as ReleaseRequest[],
    failure: undefined as Error | undefined,
    /** Called while a release is under way. */
    during: async () => {},
  }
  const enclave = {
    async release(request: ReleaseRequest) {
      fake.requests.push(request)
      await fake.during()
      if (fake.failure !== undefined) throw fake.failure
      return { statements: (request.leaves ?? []).map((leaf) => ({ leaf }) as never), quotes: [] }
    },
  }
  return { time, log, fake, releases: createReleases({ enclave, schedule: time.schedule, log }) }
}

const settleDown = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

describe('what waits for one note', () => {
  const note = { checkpoint: 'a', cosignatures: ['b'] }

  test('is asked for in one call, and each gets its own; another note, boot or batch is another call', async () => {
    const { fake, releases } = setUp()
    const asked = [
      { bootId: A, ...note, leaves: ['one', 'two'] },
      { bootId: A, ...note, cosignatures: ['c'], leaves: ['other'] },
      { bootId: A, ...note, leaves: ['three'] },
      { bootId: B, ...note, leaves: ['four'] },
    ]
    const answers = await Promise.all(asked.map((request) => releases.release(request, one)))
    expect(answers.map(({ statements }) => statements)).toEqual(
      asked.map(({ leaves }) => leaves.map((leaf) => ({ leaf }))),
    )
    expect(fake.requests).toEqual([{ bootId: A, ...note, leaves: ['one', 'two', 'three'] }, asked[1], asked[3]])
    const batches = [0, 1].map((sequence) =>
      releases.release({ bootId: A, ...note, leaves: [`${sequence}`] }, { bytes: 1, sequence }),
    )
    await Promise.all(batches)
    expect(fake.requests.slice(3).map(({ leaves }) => leaves)).toEqual([['0'], ['1']])
  })

  test('does not wait for the answer to another call, and fails together', async () => {
    const { fake, releases } = setUp()
    fake.during = () => new Promise(() => {})
    void releases.release({ bootId: A, ...note, leaves: ['one'] }, one)
    await new Promise(setImmediate)
    fake.during = async () => {}
    fake.failure = unavailable()
    const failures = ['two', 'three'].map((leaf) => releases.release({ bootId: A, ...note, leaves: [leaf] }, one))
    for (const failure of failures) await expect(failure).rejects.toBe(fake.failure)
    expect(fake.requests).toHaveLength(2)
  })

  test('goes in parts where it is much, by the bytes of the statements', async () => {
    const { fake, releases } = setUp()
    const sizes = [900_000, 900_000, 900_000, 5_000_000, 1_000_000, 1_000_000, 1]
    const asked = sizes.map((bytes, leaf) =>
      releases.release({ bootId: A, ...note, leaves: [`${leaf}`] }, { ...one, bytes }),
    )
    await Promise.all(asked)
    expect(fake.requests.map(({ leaves }) => leaves)).toEqual([['0', '1'], ['2'], ['3'], ['4', '5'], ['6']])
  })
})

describe('acknowledgements', () => {
  test('go along with the next release of the same boot, once', async () => {
    const { fake, releases, time } = setUp()
    releases.acknowledge(A, 'one')
    releases.acknowledge(B, 'other')
    releases.acknowledge(A, 'two')
    await releases.release({ bootId: A, leaves: ['three'] }, one)
    await releases.release({ bootId: A, leaves: ['four'] }, one)
    expect(fake.requests).toEqual([
      { bootId: A, leaves: ['three'], acknowledge: ['one', 'two'] },
      { bootId: A, leaves: ['four'] },
    ])
    expect(time.delays()).toEqual([500])
  })

  test('go by themselves within a second, those of one boot together', async () => {
    const { fake, releases, time } = setUp()
    releases.acknowledge(A, 'one')
    time.pass(499)
    releases.acknowledge(A, 'two')
    expect(fake.requests).toEqual([])
    time.pass(1)
    await settleDown()
    expect(fake.requests).toEqual([{ bootId: A, acknowledge: ['one', 'two'] }])
    expect(time.delays()).toEqual([])
  })

  test('that did not arrive go again, until the enclave has forgotten', async () => {
    const { fake, releases, time, log } = setUp()
    fake.failure = unavailable()
    releases.acknowledge(A, 'one')
    await expect(releases.release({ bootId: A, leaves: ['two'] }, one)).rejects.toBe(fake.failure)
    time.pass(500)
    await settleDown()
    expect(fake.requests.at(-1)).toEqual({ bootId: A, acknowledge: ['one'] })
    expect(log.lines).toEqual([
      expect.objectContaining({ msg: 'Could not notify an enclave', code: 'log_unavailable' }),
    ])
    fake.failure = undefined
    time.pass(500)
    await settleDown()
    expect(fake.requests.at(-1)).toEqual({ bootId: A, acknowledge: ['one'] })
    expect(fake.requests).toHaveLength(3)
    expect(time.delays()).toEqual([])
  })

  test('are told at the end, also those that come while one is told', async () => {
    const { fake, releases } = setUp()
    releases.acknowledge(A, 'one')
    releases.acknowledge(B, 'two')
    await releases.stop()
    expect(fake.requests).toEqual([
      { bootId: A, acknowledge: ['one'] },
      { bootId: B, acknowledge: ['two'] },
    ])
  })

  test('that cannot be told at the end do not hold it up', async () => {
    const { fake, releases, time } = setUp()
    fake.failure = unavailable()
    releases.acknowledge(A, 'one')
    await releases.stop()
    expect(fake.requests).toHaveLength(1)
    expect(time.delays()).toEqual([])
  })

  test('of thousands go in parts', async () => {
    const { fake, releases, time } = setUp()
    for (let leaf = 0; leaf < 2_500; leaf++) releases.acknowledge(A, `${leaf}`)
    time.pass(500)
    expect(fake.requests.map(({ acknowledge }) => acknowledge?.length)).toEqual([1_024, 1_024, 452])
    expect(new Set(fake.requests.flatMap(({ acknowledge }) => acknowledge)).size).toBe(2_500)
  })
})

describe('what is dropped', () => {
  test('is told at once, and only once', async () => {
    const { fake, releases, time } = setUp()
    fake.failure = unavailable()
    releases.drop(A, ['one', 'two'])
    await settleDown()
    expect(fake.requests).toEqual([{ bootId: A, drop: ['one', 'two'] }])
    time.pass(60_000)
    await settleDown()
    expect(fake.requests).toHaveLength(1)
  })

  test('nothing is nothing to tell', async () => {
    const { fake, releases } = setUp()
    releases.drop(A, [])
    await releases.stop()
    expect(fake.requests).toEqual([])
  })

  test('is waited for at the end', async () => {
    const { fake, releases } = setUp()
    const arrived = Promise.withResolvers<void>()
    fake.during = () => arrived.promise
    releases.drop(A, ['one'])
    let isStopped = false
    const stopped = releases.stop().then(() => {
      isStopped = true
    })
    await settleDown()
    expect(isStopped).toBe(false)
    arrived.resolve()
    await stopped
    expect(isStopped).toBe(true)
  })
})
