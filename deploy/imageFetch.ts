import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { readArguments, refuseArguments } from '../scripts/readArguments.ts'
import { fetchInputs } from './image/fetchInputs.ts'
import { INPUTS } from './image/listInputs.ts'
import { reportFaults } from './measure/reportFaults.ts'

const USAGE = `usage: npm run image:fetch -- [FOLDER] [options]

Downloads the parts of images that aren't in this checkout: Node from npm's registry, and the C library and GCC's libraries as Debian
packages. Checks their hashes, and keeps files that are already there.

  FOLDER           where the files go (default: ${INPUTS})
  --mirror URL     a Debian mirror (default: https://deb.debian.org). If it doesn't have a package, the command tries
                   snapshot.debian.org
  --help           show this help

Example: npm run image:fetch
Exit codes: 0 all files are there, 2 wrong arguments or a failed download.`

const { values, positionals } = readArguments({ mirror: { type: 'string' } }, USAGE, { takesPositionals: true })
const [folder = INPUTS, ...more] = positionals
if (more.length > 0) refuseArguments(`expected one folder, got ${positionals.join(' ')}`, USAGE)
const { mirror = 'https://deb.debian.org' } = values
if (!URL.canParse(mirror)) refuseArguments(`--mirror: expected a URL, got ${mirror}`, USAGE)
await reportFaults(async () => {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const servers = { registry, mirror, snapshots: 'https://snapshot.debian.org/archive' }
  await fetchInputs({ root: join(import.meta.dirname, '..'), folder, servers, report: console.log })
})
