import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const other = process.arch === 'x64' ? 'arm64' : 'x64'

function run(args: readonly string[], env: Record<string, string> = {}) {
  const program = join(import.meta.dirname, 'testArchitecture.ts')
  return spawnSync(process.execPath, ['-C', 'source', program, ...args], {
    env: { PATH: '', ...env },
    encoding: 'utf8',
  })
}

test.each([
  [{}, 0],
  [{ REQUIRE_QEMU: '1' }, 1],
])('without an emulator, lists the packages to install; with %j exits with %i', (env, code) => {
  const { status, stdout, stderr } = run([other, 'deploy/measure.test.ts'], env)
  expect([status, stderr]).toEqual([code, ''])
  expect(stdout).toContain(`qemu-user libc6-${other === 'x64' ? 'amd64' : 'arm64'}-cross`)
})

test('rejects an unknown architecture', () => {
  expect(run(['mips'])).toMatchObject({ status: 2, stdout: '' })
})
