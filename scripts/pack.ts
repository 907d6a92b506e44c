// Packs every published package: npm run pack -- FOLDER

import { resolve } from 'node:path'
import { packAll } from './packages/packAll.ts'
import { readPublished } from './packages/readPublished.ts'
import { readArguments, refuseArguments } from './readArguments.ts'

const USAGE = `usage: npm run pack -- FOLDER

Builds every package that is to be published, and packs it into FOLDER. In an app, install the tarballs from there:
npm install FOLDER/*.tgz
  --help   says this

Example: npm run pack -- /tmp/countersign
Exit codes: 0 packed, 1 it failed, 2 wrong arguments.`

const root = resolve(import.meta.dirname, '..')
const [folder, ...rest] = readArguments({}, USAGE, { takesPositionals: true }).positionals
if (folder === undefined || rest.length > 0) refuseArguments('Name one folder.', USAGE)
// npm starts scripts in the checkout, but FOLDER is relative to the user's folder.
const target = resolve(process.env.INIT_CWD ?? '.', folder)
for (const { tarball } of await packAll(root, { packages: readPublished(root), folder: target })) console.log(tarball)
