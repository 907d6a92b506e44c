import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lockState } from './lockState.ts'

describe('lockState', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lock-'))
  })
  afterEach(() => rm(folder, { recursive: true }))
  const path = () => join(folder, 'dev-1.lock')

  test('gives the directory to one of many concurrent callers', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 20 }, () => lockState(folder)))
    const winners = tries.filter(({ status }) => status === 'fulfilled')
    expect(winners).toHaveLength(1)
    expect(await readdir(folder)).toEqual(['dev-1.lock'])
    expect(JSON.parse(await readFile(path(), 'utf8'))).toMatchObject({ pid: process.pid })
  })

  test('gives a released directory to the next caller', async () => {
    const unlock = await lockState(folder)
    await unlock()
    await (await lockState(folder))()
    expect(await readdir(folder)).toEqual([])
  })

  test('ignores the lock of a dead process', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    const { pid } = child
    await once(child, 'exit')
    await writeFile(path(), JSON.stringify({ pid, birth: 'once' }))
    await (await lockState(folder))()
  })

  test('ignores the lock of a process that was killed and not reaped', async () => {
    // The shell becomes a program that never reaps its child.
    const script = '(read go <&3) & echo $!; exec cat'
    const parent = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore', 'pipe'] })
    const [input, output, , gate] = parent.stdio as unknown as [Writable, Readable, null, Writable]
    try {
      const next = async () => String((await once(output, 'data'))[0])
      const pid = Number(await next())
      input.write('it is cat by now\n')
      await next()
      const readStat = async () => {
        const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
        return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      }
      const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
      await writeFile(path(), JSON.stringify({ pid, birth: `${boot}/${(await readStat())[19]}` }))
      await expect(lockState(folder)).rejects.toThrow('in use')
      gate.end('go\n')
      await expect.poll(async () => (await readStat())[0]).toBe('Z')
      await (await lockState(folder))()
    } finally {
      input.end()
      await once(parent, 'close')
    }
  })

  test("ignores the lock if another process got the dead one's number", async () => {
    await writeFile(path(), JSON.stringify({ pid: process.pid, birth: 'another boot/1' }))
    await (await lockState(folder))()
  })

  test.each(['', 'garbage', '{"pid":"1"}', 'null', '{"pid":-1,"birth":"x"}'])(
    'ignores a lock with the content %s',
    async (text) => {
      await writeFile(path(), text)
      await (await lockState(folder))()
    },
  )

  test('gives the directory to one of many that find a dead lock at once', async () => {
    await writeFile(path(), 'garbage')
    const tries = await Promise.allSettled(Array.from({ length: 20 }, () => lockState(folder)))
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await readdir(folder)).toEqual(['dev-2.lock'])
  })
})
