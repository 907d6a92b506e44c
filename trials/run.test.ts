import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const RUN = new URL('./run.ts', import.meta.url).pathname
const run = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['-C', 'source', RUN, ...args]).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  )

// The others: npm run test:all.
test('a trial runs by its name, and ends with what it found', async () => {
  const { code, stdout } = await run('witness:kills', '--kills', '3', '--seed', '3')
  expect(stdout).toMatch(/"kills": 3,/)
  expect(stdout).toMatch(/^witness:kills: 0 faults/m)
  expect(code).toBe(0)
})

test.each([
  ['no such trial', ['nothing']],
  ['a number that is none', ['witness:kills', '--kills', 'many']],
  ['a number out of range', ['witness:kills', '--kills', '0']],
  ['a name that is none', ['security', '--only', 'everything']],
])('%s is refused', async (_, args) => {
  expect(await run(...args)).toEqual({ code: 2, stdout: '' })
})
