import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readArguments } from '../readArguments.ts'
import { lintFile } from './lintProse.ts'

const USAGE = `usage: npm run prose

Checks the spelling and the wording of all Markdown pages and of the texts that people see: lists each phrase that the writing rules
replace, with its place and what to write instead.
  --help   prints this text

Rules: scripts/prose/rules.ts. Project words: scripts/prose/words.txt.
Example: npm run prose
Exit codes: 0 no faults, 1 faults, 2 wrong arguments.`

const ROOT = join(import.meta.dirname, '../..')
/** Pages, then modules with texts that users read. */
const FILES = [
  '**/*.md',
  '.changeset/*.md',
  '.github/*.md',
  'apps/web/src/**/*.{ts,tsx}',
  'packages/protocol/src/errorCodes.ts',
  'packages/{policy,verify}/src/describe*.ts',
  'services/coordinator/src/http/{apiDocument,signInPage}.ts',
  'docs/site/{build,layout,navigation}.ts',
]
const EXCLUDED = ['node_modules', 'dist', 'CHANGELOG.md']
const SKIPPED = /\.test\.tsx?$/

readArguments({}, USAGE)
const paths = globSync(FILES, {
  cwd: ROOT,
  exclude: (path) => EXCLUDED.includes(basename(path)),
})
const faults = []
for (const path of paths.filter((path) => !SKIPPED.test(path)).toSorted())
  faults.push(...(await lintFile(path, readFileSync(join(ROOT, path), 'utf8'))))
for (const { path, line, phrase, instead } of faults) console.log(`${path}:${line}: “${phrase}”: ${instead}`)
console.log(faults.length === 0 ? `No faults in ${paths.length} files.` : `${faults.length} faults.`)
process.exitCode = faults.length === 0 ? 0 : 1
