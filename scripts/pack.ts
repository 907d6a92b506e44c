// Packs every package that is to be published:
//   npm run pack -- FOLDER

import { resolve } from 'node:path'
import { packAll } from './packages/packAll.ts'
import { readPublished } from './packages/readPublished.ts'

const USAGE = `usage: npm run pack -- FOLDER

Builds every package that is to be published, and packs it into FOLDER. In an app, install the tarballs from there:
  npm install FOLDER/*.tgz`

const root = resolve(import.meta.dirname, '..')
const [folder, ...rest] = process.argv.slice(2)
if (folder === '--help') {
  console.log(USAGE)
} else if (folder === undefined || folder.startsWith('-') || rest.length > 0) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  // npm starts scripts in the checkout; the folder is meant from where the command was typed.
  const target = resolve(process.env.INIT_CWD ?? '.', folder)
  for (const { tarball } of await packAll(root, { packages: readPublished(root), folder: target })) console.log(tarball)
}
