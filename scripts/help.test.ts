import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

/** Programs of others, with their own help. */
const TOOLS = new Set(['format', 'build', 'build:web', 'npm'])
/** They pass unknown options to vitest. */
const RUNNERS = new Set(['test', 'test:all', 'check', 'e2e'])
/** `verify` has another exit code for wrong arguments, because its codes describe receipts. Its help lists them. */
const UNKNOWN_CODES: Readonly<Record<string, number>> = { verify: 4 }

const programs = Object.entries(scripts)
  .filter(([name]) => !TOOLS.has(name))
  .map(([name, command]) => {
    const [, main = '', args = ''] =
      /^exec node scripts\/bootstrap\.mjs node(?: -C source)? (\S+\.ts)(.*)$/.exec(command) ?? []
    return { name, main, args: args.split(' ').filter((word) => word !== '') }
  })

/** Like `npm run`, but in a thread of this process, which takes half the time. */
async function run(main: string, argv: readonly string[]) {
  const worker = new Worker(join(ROOT, main), {
    argv: [...argv],
    execArgv: ['-C', 'source'],
    // The cache halves the loading time.
    env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/countersign') },
    stdout: true,
    stderr: true,
  })
  const ended = new Promise<number>((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  const [stdout, stderr, code] = await Promise.all([text(worker.stdout), text(worker.stderr), ended])
  return { stdout, stderr, code }
}

function importsPackage(path: string): boolean {
  const names = [...readFileSync(path, 'utf8').matchAll(/^(?:import|\} from) .*?'([^']+)'/gm)].map(
    ([, name = '']) => name,
  )
  return names.some((name) =>
    name.startsWith('.') ? importsPackage(join(dirname(path), name)) : name.startsWith('@countersign/'),
  )
}

describe('npm run', () => {
  test('programs that import our packages run from source: a fresh checkout has no build', () => {
    const wrong = programs.filter(
      ({ name, main }) => !scripts[name]?.includes(' -C source ') && importsPackage(join(ROOT, main)),
    )
    expect(wrong.map(({ name }) => name)).toEqual([])
  })

  test.each(programs)('$name -- --help prints the usage, options and an example, and does nothing', async (program) => {
    const { stdout, stderr, code } = await run(program.main, [...program.args, '--help'])
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    expect(stdout).toMatch(/^usage: npm|^Usage$/m)
    expect(stdout).toMatch(/^ {2}(?:-h, )?--help\b/m)
    expect(stdout).toMatch(/^Examples?\b/m)
  })

  test.each(programs.filter(({ name }) => !RUNNERS.has(name)))(
    '$name -- --no-such-option is rejected with a hint and exits with 2',
    async ({ name, main, args }) => {
      const { stdout, stderr, code } = await run(main, [...args, '--no-such-option'])
      expect({ stdout, code }).toEqual({ stdout: '', code: UNKNOWN_CODES[name] ?? 2 })
      expect(stderr).toMatch(/unknown option/i)
      expect(stderr).toContain('--help')
    },
  )
})
