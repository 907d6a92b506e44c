import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lockDataDir } from './lockDataDir.ts'

describe('lockDataDir', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lock-'))
  })
  afterEach(() => rm(folder, { recursive: true }))
  const path = () => join(folder, 'database-1.lock')

  test('of many that try at once, one gets the directory', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataDir(folder)))
    const winners = tries.filter(({ status }) => status === 'fulfilled')
    expect(winners).toHaveLength(1)
    for (const attempt of tries) {
      if (attempt.status === 'rejected') expect(attempt.reason).toMatchObject({ code: 'database_unavailable' })
    }
    expect(await readdir(folder)).toEqual(['database-1.lock'])
    expect(JSON.parse(await readFile(path(), 'utf8'))).toMatchObject({ pid: process.pid })
  })

  test('who gives it back leaves room for the next', async () => {
    const unlock = await lockDataDir(folder)
    await unlock()
    await (await lockDataDir(folder))()
    expect(await readdir(folder)).toEqual([])
  })

  test('the lock of a dead process is dropped', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    const { pid } = child
    await once(child, 'exit')
    await writeFile(path(), JSON.stringify({ pid, birth: 'once' }))
    await (await lockDataDir(folder))()
  })

  test('a process that has the number of a dead one does not keep its lock', async () => {
    await writeFile(path(), JSON.stringify({ pid: process.pid, birth: 'another boot/1' }))
    await (await lockDataDir(folder))()
  })

  test.each(['', 'garbage', '{"pid":"1"}', 'null', '{"pid":-1,"birth":"x"}'])(
    'a lock that says nothing is dropped: %s',
    async (text) => {
      await writeFile(path(), text)
      await (await lockDataDir(folder))()
    },
  )

  test('of many that find a dead lock at once, one gets the directory', async () => {
    await writeFile(path(), 'garbage')
    const tries = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataDir(folder)))
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await readdir(folder)).toEqual(['database-2.lock'])
  })
})
