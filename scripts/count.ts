import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { readArguments } from './readArguments.ts'
import { readImports } from './readImports.ts'

const USAGE = `usage: npm run count

Counts lines and files of the checkout: product, fakes and test support, tests, trials, and the trusted code (the enclave with every
file of the repository that it loads; on real hardware it does not load the simulator).
  --help   prints this text

Example: npm run count
Exit codes: 0 counted, 2 wrong arguments.`

const root = join(import.meta.dirname, '..')
const SOURCE = /\.(?:ts|tsx|css|html)$/
const TEST = /\.(?:test|bench)\.tsx?$|\.test-d\.ts$/
const SUPPORT = /\.fake\.tsx?$|\/test\/|^packages\/testing\//
const PRODUCT = /^(?:packages|services|apps)\//
const ENCLAVE = 'services/enclave/src/main.ts'
/** Loaded only by an enclave with simulated hardware: `services/enclave/src/hardware.ts`. */
const SIMULATOR = 'packages/attestation/src/simulator/index.ts'

type Kind = 'product' | 'support' | 'tests' | 'trials' | 'tools'

function toKind(path: string): Kind {
  if (TEST.test(path)) return 'tests'
  if (path.startsWith('trials/')) return 'trials'
  if (SUPPORT.test(path)) return 'support'
  return PRODUCT.test(path) ? 'product' : 'tools'
}

/** `packages/log`, or `deploy`. */
function toFolder(path: string): string {
  const [first = '', second = ''] = path.split('/')
  return PRODUCT.test(path) ? `${first}/${second}` : path.includes('/') ? first : '.'
}

const countLines = (path: string) => readFileSync(join(root, path), 'utf8').split('\n').length - 1
const sum = (paths: readonly string[]) => paths.reduce((total, path) => total + countLines(path), 0)

/** The enclave's entry, and every file that it and its threads load. */
function findTrusted(isLoaded: (path: string) => boolean = () => true): string[] {
  const imports = Map.groupBy(
    readImports(root).filter(({ isType, to }) => !isType && isLoaded(to)),
    ({ from }) => from,
  )
  const reached = new Set([ENCLAVE])
  // A set iterates in insertion order and includes files added during the loop.
  for (const file of reached) {
    for (const { to } of imports.get(file) ?? []) reached.add(to)
    for (const [, thread = ''] of readFileSync(join(root, file), 'utf8').matchAll(/new Worker\(new URL\('(\.[^']+)'/g))
      reached.add(posix.join(posix.dirname(file), thread))
  }
  return [...reached]
}

/** Folders of the coordinator that import each other. */
function findPairs(): string[] {
  const source = 'services/coordinator/src/'
  const toPart = (path: string) => path.slice(source.length).split('/').slice(0, -1)[0] ?? ''
  const edges = new Set(
    readImports(root)
      .filter(({ from, to }) => from.startsWith(source) && to.startsWith(source) && toKind(from) === 'product')
      .map(({ from, to }) => `${toPart(from)} ${toPart(to)}`),
  )
  return [...edges].filter((edge) => {
    const [from = '', to = ''] = edge.split(' ')
    return from !== '' && to !== '' && from < to && edges.has(`${to} ${from}`)
  })
}

readArguments({}, USAGE)
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => SOURCE.test(path))
const byKind = Map.groupBy(files, toKind)
const rows: [string, string, string][] = []
for (const kind of ['product', 'support', 'tests', 'trials', 'tools'] as const) {
  const ofKind = byKind.get(kind) ?? []
  rows.push([kind, `${sum(ofKind)}`, `${ofKind.length}`])
  const folders = [...Map.groupBy(ofKind, toFolder)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (kind !== 'trials')
    for (const [name, paths] of folders) rows.push([`  ${name}`, `${sum(paths)}`, `${paths.length}`])
}
const trusted = findTrusted()
rows.push(['trusted code', `${sum(trusted)}`, `${trusted.length}`])
const onHardware = findTrusted((path) => path !== SIMULATOR)
rows.push(['  on real hardware', `${sum(onHardware)}`, `${onHardware.length}`])
const coordinator = (byKind.get('product') ?? []).filter((path) => path.startsWith('services/coordinator/src/'))
const folders = new Set(coordinator.map((path) => path.split('/').slice(3, -1)[0] ?? '').filter((name) => name !== ''))
const pairs = findPairs()
for (const [name, lines, count] of [['', 'lines', 'files'] as const, ...rows]) {
  console.log(`${name.padEnd(28)}${lines.padStart(8)}${count.padStart(7)}`)
}
console.log(`coordinator: ${folders.size} folders, ${pairs.length} pairs that import each other`)
for (const pair of pairs) console.log(`  ${pair.replace(' ', ' ↔ ')}`)
