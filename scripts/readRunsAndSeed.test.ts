import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '..')

describe.each([
  ['npm run fuzz', 'packages/attestation/fuzz/main.ts'],
  ['npm run fuzz:sign', 'services/enclave/fuzz/main.ts'],
])('%s', (command, main) => {
  const run = (...args: string[]) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((settle) => {
      execFile(process.execPath, ['-C', 'source', resolve(ROOT, main), ...args], (error, stdout, stderr) =>
        settle({ code: error?.code ?? 0, stdout, stderr }),
      )
    })
  const usage = `usage: ${command} --`

  test('wrong arguments: the usage, and 2', async () => {
    const wrong = [['--rns', '1'], ['--runs', '0'], ['--seed', 'x']]
    for (const { code, stdout, stderr } of await Promise.all(wrong.map((args) => run(...args)))) {
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain(usage)
      expect(stderr).not.toMatch(/^\s+at /m)
    }
  })

  test('--help, and a short run', async () => {
    const [help, short] = await Promise.all([run('--help'), run('--runs', '9', '--seed', '2')])
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining(usage) })
    expect(short).toMatchObject({ code: 0, stderr: '' })
  })
})
