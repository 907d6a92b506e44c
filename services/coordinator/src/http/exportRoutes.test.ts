import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'
import type { ExportProofs } from '../proofs/export/exportCar.ts'

async function* toParts(...texts: string[]): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const text of texts) yield new Uint8Array(Buffer.from(text))
}

async function start(exportProofs: ExportProofs, config = {}) {
  const app = createTestApp({ deps: { exportProofs }, config })
  const user = app.browser()
  await user.signIn()
  return { ...app, user }
}

const PATH = '/proofs/export'

describe('GET /proofs/export', () => {
  test('returns the user’s own file and forbids caching', async () => {
    const asked: unknown[] = []
    const { user, store } = await start(async (parameters) => {
      asked.push(parameters)
      return toParts('one', 'two')
    })
    const answer = await user.get(PATH)
    expect([answer.status, await answer.text()]).toEqual([200, 'onetwo'])
    expect(answer.headers.get('content-type')).toMatch(/^application\/vnd\.ipld\.car; version=1/)
    expect(answer.headers.get('content-disposition')).toContain('attachment')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(asked).toEqual([{ userId: [...store.rows.users.values()][0]?.id, before: undefined }])
  })

  test('HEAD exports nothing', async () => {
    const { user } = await start(() => Promise.reject(new Error('asked')))
    expect((await user.send(PATH, { method: 'HEAD' })).status).toBe(200)
  })

  test.each(['?cursor=', '?cursor=nonsense', '?cursor=AAAAAAAAAAE&cursor=AAAAAAAAAAI', '?cursor=__________8'])(
    'rejects the cursor %s',
    async (query) => {
      const { user } = await start(async () => toParts())
      expect(await (await user.get(`${PATH}${query}`)).json()).toMatchObject({ code: 'invalid_request' })
    },
  )

  test('treats a cursor as a position', async () => {
    let before: string | undefined
    const { user } = await start(async (parameters) => {
      before = parameters.before
      return toParts('')
    })
    await (await user.get(`${PATH}?cursor=AAAAAAAAAAc`)).text()
    expect(before).toBe('7')
  })

  test('reads rows only after the caller has accepted the previous ones', async () => {
    let made = 0
    async function* count() {
      for (;;) {
        made += 1
        yield new Uint8Array(1_000)
      }
    }
    const { user } = await start(async () => count())
    const reader = (await user.get(PATH)).body?.getReader()
    for (let taken = 0; taken < 3; taken++) await reader?.read()
    await new Promise((resolve) => setImmediate(resolve))
    // The response check also reads the response, but copies nothing of a file.
    expect(made).toBeLessThanOrEqual(4)
    await reader?.cancel()
  })

  test('allows two exports per user, returns Retry-After for a third, and frees the place of a cancelled one', async () => {
    const { user } = await start(async () => toParts('one', 'two'))
    const first = await user.get(PATH)
    const second = await user.get(PATH)
    const third = await user.get(PATH)
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '30'])
    await first.body?.cancel()
    expect((await user.get(PATH)).status).toBe(200)
    expect(await second.text()).toBe('onetwo')
    expect((await user.get(PATH)).status).toBe(200)
  })

  test('cuts off a caller that stops reading or reads too slowly, but not one that keeps reading', async () => {
    async function* createLarge() {
      for (let part = 0; part < 100; part++) yield new Uint8Array(64_000)
    }
    let returned = 0
    const { user, time, clock, log } = await start(async () => {
      const chunks = createLarge()
      const end = chunks.return.bind(chunks)
      chunks.return = (value) => {
        returned += 1
        return end(value)
      }
      return chunks
    })
    const pass = (durationMs: number) => {
      clock.advance(durationMs)
      time.pass(durationMs)
    }
    const silent = (await user.get(PATH)).body?.getReader()
    const trickling = (await user.get(PATH)).body?.getReader()
    await silent?.read()
    expect((await user.get(PATH)).status).toBe(429)
    // Each part buys a second.
    for (let minute = 0; minute < 3; minute++) {
      await trickling?.read()
      pass(30_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await expect(silent?.read()).rejects.toThrow('too slowly')
    await expect(trickling?.read()).rejects.toThrow('too slowly')
    expect(returned).toBe(2)
    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn', msg: 'Could not finish an export' }))

    const reading = (await user.get(PATH)).body?.getReader()
    let parts = 0
    for (let part = await reading?.read(); part?.done === false; part = await reading?.read()) {
      parts += 1
      pass(1_000)
    }
    expect(parts).toBe(100)
    for (let count = 0; count < 2; count++) expect((await user.get(PATH)).status).toBe(200)
  })

  test('when all places are taken, the slowest caller loses its place to a user without an export', async () => {
    async function* createLarge() {
      for (let part = 0; part < 100; part++) yield new Uint8Array(64_000)
    }
    const { browser, google, time, clock } = createTestApp({ deps: { exportProofs: async () => createLarge() } })
    const signIn = async (subject: string) => {
      google.identity = { subject, email: `${subject}@mail.example`, name: null }
      const user = browser()
      await user.signIn()
      return user
    }
    const open = async (user: Awaited<ReturnType<typeof signIn>>) => (await user.get(PATH)).body?.getReader()
    const readers = []
    for (const subject of ['one', 'two', 'three', 'four']) {
      const user = await signIn(subject)
      readers.push(await open(user), await open(user))
    }
    const [reading, silent, other] = readers
    const newcomer = await signIn('five')
    expect((await newcomer.get(PATH)).status).toBe(429)
    for (let second = 0; second < 10; second++) {
      clock.advance(1_000)
      time.pass(1_000)
      await reading?.read()
    }
    expect((await newcomer.get(PATH)).status).toBe(200)
    // This user has an export now.
    expect((await newcomer.get(PATH)).status).toBe(429)
    await expect(silent?.read()).rejects.toThrow('too slowly')
    for (const reader of [reading, other]) expect(await reader?.read()).toMatchObject({ done: false })
  })

  test('a caller that reads fast earns no longer pause', async () => {
    const { user, time, clock } = await start(async () => toParts('x'.repeat(6_400_000), 'y', 'z'))
    const reader = (await user.get(PATH)).body?.getReader()
    for (let part = 0; part < 2; part++) await reader?.read()
    clock.advance(60_000)
    time.pass(60_000)
    await expect(reader?.read()).rejects.toThrow('too slowly')
  })

  test('a failure before the first byte is a problem response, a later one cuts the file; both free their place', async () => {
    const down = new CoordinatorError('database_unavailable', 'gone')
    async function* fail() {
      yield new Uint8Array(3)
      throw down
    }
    let isEarly = true
    const { user, log } = await start(async () => {
      if (isEarly) throw down
      return fail()
    })
    for (let count = 0; count < 3; count++) {
      expect(await (await user.get(PATH)).json()).toMatchObject({ code: 'database_unavailable' })
    }
    isEarly = false
    for (let count = 0; count < 3; count++) await expect((await user.get(PATH)).arrayBuffer()).rejects.toThrow()
    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn', code: 'database_unavailable' }))
  })

  test('exports have a separate rate limit', async () => {
    const rateLimits = { sign: 'off', provision: { count: 2, seconds: 60 }, auth: 'off', proof: 'off' } as const
    const { user } = await start(async () => toParts('x'), { rateLimits })
    for (const status of [200, 200, 429]) {
      const answer = await user.get(PATH)
      expect(answer.status).toBe(status)
      await answer.text()
    }
    expect((await user.post('/wallet/provision', {})).status).toBe(200)
  })
})
