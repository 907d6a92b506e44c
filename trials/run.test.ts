import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const RUN = new URL('./run.ts', import.meta.url).pathname
const run = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['-C', 'source', RUN, ...args]).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  )

// The other trials run with: npm run test:all.
test('runs a trial by its name and prints its result', async () => {
  const { code, stdout } = await run('witness:kills', '--kills', '3', '--seed', '3')
  expect(stdout).toMatch(/"kills": 3,/)
  expect(stdout).toMatch(/^witness:kills: 0 faults/m)
  expect(code).toBe(0)
})

test.each([
  ['an unknown trial', ['nothing']],
  ['a value that is not a number', ['witness:kills', '--kills', 'many']],
  ['a number out of range', ['witness:kills', '--kills', '0']],
  ['an unknown name', ['security', '--only', 'everything']],
])('rejects %s', async (_, args) => {
  expect(await run(...args)).toEqual({ code: 2, stdout: '' })
})
