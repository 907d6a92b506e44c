// Writes the verifier as one program and as one page: npm run bundle -- FOLDER

import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createBundle } from './bundle/createBundle.ts'
import { readArguments, refuseArguments } from './readArguments.ts'

const USAGE = `usage: npm run bundle -- [FOLDER]

Writes two files into FOLDER (default: the current folder), and prints their SHA-256:
  countersign-verify.mjs   the command-line verifier, for Node 20 or later
  verify.html              the same checks as a page, which a browser can open from disk
Every checkout of one commit writes the same bytes, on any machine.
  --help   prints this text

Example: npm run bundle -- /tmp/verifier
Exit codes: 0 written, 1 failed, 2 wrong arguments.`

const [folder = '.', ...rest] = readArguments({}, USAGE, { takesPositionals: true }).positionals
if (rest.length > 0) refuseArguments('Name one folder.', USAGE)
// npm starts scripts in the checkout, but FOLDER is relative to the user's folder.
const target = resolve(process.env.INIT_CWD ?? '.', folder)
mkdirSync(target, { recursive: true })
for (const { name, bytes } of await createBundle()) {
  writeFileSync(join(target, name), bytes)
  console.log(`${createHash('sha256').update(bytes).digest('hex')}  ${name}`)
}
