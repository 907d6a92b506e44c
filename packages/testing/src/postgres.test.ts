import { existsSync } from 'node:fs'
import { mkdtemp, realpath, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { removePostgres, startPostgres } from './postgres.ts'
import { queryPostgres } from './postgresClient.ts'
import { isRunning } from './processes.ts'

test('kill also ends busy sessions, and a restart keeps committed data', async () => {
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const url = await postgres.createDatabase()
  await queryPostgres(url, 'create table t as select 1 as x')
  // A query without waits, during which a session would notice that its server is gone.
  const busy = queryPostgres(postgres.url, 'select count(*) from pg_proc a, pg_proc b, pg_proc c, pg_proc d').then(
    () => 'answered',
    () => 'cut off',
  )
  const text = `select pid from pg_stat_activity where query like 'select count%' and state = 'active'`
  const find = () => queryPostgres<{ pid: number }>(postgres.url, text)
  await expect.poll(find).toHaveLength(1)
  const [{ pid } = { pid: 0 }] = await find()
  expect(await postgres.findPids()).toContain(pid)
  await postgres.kill()
  expect(await isRunning(pid)).toBe(false)
  expect(await busy).toBe('cut off')
  await expect(queryPostgres(url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await postgres.restart()
  expect(await queryPostgres(url, 'select x from t')).toEqual([{ x: 1 }])
})

test('a folder keeps its files until removed, and an incomplete one is replaced', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'countersign-kept-'))
  const folder = join(parent, 'postgres')
  onTestFinished(async () => {
    await removePostgres(folder)
    await rm(parent, { recursive: true })
  })
  const first = await startPostgres({ folder })
  await queryPostgres(first.url, 'create table t as select 1 as x')
  await first.stop()
  const second = await startPostgres({ folder })
  expect(await queryPostgres(second.url, 'select x from t')).toEqual([{ x: 1 }])
  await second.stop()
  const files = await realpath(folder)
  // The state before the last step of creation.
  await rename(join(files, 'password'), join(files, 'password.new'))
  const third = await startPostgres({ folder })
  await expect(queryPostgres(third.url, 'select x from t')).rejects.toMatchObject({ code: '42P01' })
  await third.stop()
  await removePostgres(folder)
  expect([existsSync(folder), existsSync(files)]).toEqual([false, false])
})
