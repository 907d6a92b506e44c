import { join, relative, resolve } from 'node:path'
import { readArguments } from '../../scripts/readArguments.ts'
import { buildSite } from './build.ts'

const USAGE = `usage: npm run docs -- [options]

Builds the documentation site. A coordinator that starts afterwards serves it at /docs.
  --out FOLDER   where the site goes; the folder is replaced (default docs/site/dist)
  --base PATH    path below which the site is served (default /docs)
  --help         prints this text

Example: npm run docs
Exit codes: 0 built, 1 it failed, 2 wrong arguments.`

const { values } = readArguments({ out: { type: 'string' }, base: { type: 'string' } }, USAGE)
const outFolder = resolve(values.out ?? join(import.meta.dirname, 'dist'))
const pages = buildSite({ outFolder, base: (values.base ?? '/docs').replace(/\/+$/, '') })
console.log(`Built ${pages.length} pages in ${relative('.', outFolder)}.`)
