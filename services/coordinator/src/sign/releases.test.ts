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
    /** Called during a release. */
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

describe('statements that wait for one note', () => {
  const note = { checkpoint: 'a', cosignatures: ['b'] }

  test('share one call, and each gets its own; another note, boot or batch is a separate call', async () => {
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

  test('do not wait for other calls, and fail together', async () => {
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

  test('are split by size', async () => {
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
  test('are sent once, with the next release of the same boot', async () => {
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

  test('are sent within a second otherwise, together per boot', async () => {
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

  test('are sent again after a failure, until the enclave has forgotten the statements', async () => {
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

  test('are sent at the stop, including those that arrive during it', async () => {
    const { fake, releases } = setUp()
    releases.acknowledge(A, 'one')
    releases.acknowledge(B, 'two')
    await releases.stop()
    expect(fake.requests).toEqual([
      { bootId: A, acknowledge: ['one'] },
      { bootId: B, acknowledge: ['two'] },
    ])
  })

  test('do not delay the stop if sending fails', async () => {
    const { fake, releases, time } = setUp()
    fake.failure = unavailable()
    releases.acknowledge(A, 'one')
    await releases.stop()
    expect(fake.requests).toHaveLength(1)
    expect(time.delays()).toEqual([])
  })

  test('are split if there are thousands', async () => {
    const { fake, releases, time } = setUp()
    for (let leaf = 0; leaf < 2_500; leaf++) releases.acknowledge(A, `${leaf}`)
    time.pass(500)
    expect(fake.requests.map(({ acknowledge }) => acknowledge?.length)).toEqual([1_024, 1_024, 452])
    expect(new Set(fake.requests.flatMap(({ acknowledge }) => acknowledge)).size).toBe(2_500)
  })
})

describe('drops', () => {
  test('are sent immediately and once', async () => {
    const { fake, releases, time } = setUp()
    fake.failure = unavailable()
    releases.drop(A, ['one', 'two'])
    await settleDown()
    expect(fake.requests).toEqual([{ bootId: A, drop: ['one', 'two'] }])
    time.pass(60_000)
    await settleDown()
    expect(fake.requests).toHaveLength(1)
  })

  test('are not sent if there are none', async () => {
    const { fake, releases } = setUp()
    releases.drop(A, [])
    await releases.stop()
    expect(fake.requests).toEqual([])
  })

  test('are awaited at the stop', async () => {
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
