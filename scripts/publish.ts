// Publishes tarballs that `npm run release -- --out FOLDER` has checked: node scripts/publish.ts FOLDER It may publish, so it runs no
// packages or tools except Node and this repository.

import { resolve } from 'node:path'
import { findTarballs } from './packages/findTarballs.ts'
import { createPublishDeps, publishAll } from './packages/publishAll.ts'
import { readPublished } from './packages/readPublished.ts'

const root = resolve(import.meta.dirname, '..')
const USAGE = `usage: node scripts/publish.ts FOLDER

Publishes the tarballs that npm run release -- --out FOLDER left there, to the registry of npm's configuration, with the token in NPM_TOKEN
or as a trusted publisher.
Exit codes: 0 all is published, 1 something is not, 2 wrong arguments.`

const [folder, ...others] = process.argv.slice(2)
if (folder === '--help') {
  console.log(USAGE)
} else if (folder === undefined || folder.startsWith('-') || others.length > 0) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  try {
    publishAll(createPublishDeps(root), findTarballs({ packages: readPublished(root), folder: resolve(folder) }))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
