import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArguments } from '@countersign/service'
import { createFiles, parseUrl } from './createFiles.ts'

const USAGE = `usage: npm run staging -- DIR [--url URL]

Prepares a rehearsal: makes a folder with every secret and setting that deploy/compose.staging.yaml needs. Everything in it is new, random, and
good for simulated silicon and test networks alone. It overwrites nothing.
  --url URL   where browsers will find it (http://localhost:8500). Any other host needs https: a proxy that ends TLS before port 8500, and an identity
              provider of yours (OIDC_ISSUER, OIDC_CLIENT_ID in DIR/.env, its secret in DIR/google-client-secret; chmod u+w both first)
  --help      says this

Example: npm run staging -- staging
Exit codes: 0 done, 1 the folder cannot be made, 2 wrong arguments.
`

/** Of those that are root while they prepare it: containers are not. */
const CONTAINER_USER = 65_532

function prepare(folder: string, url: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`)
  const isRoot = process.getuid?.() === 0
  const [uid, gid] = isRoot ? [CONTAINER_USER, CONTAINER_USER] : [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o700)
  const files = createFiles({ folder, url, user: `${uid}:${gid}` })
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name)
    writeFileSync(path, text, { flag: 'wx', mode: 0o400 })
    // PostgreSQL has a user of its own, and nobody else of the machine gets into the folder.
    if (name === 'postgres-password') chmodSync(path, 0o444)
    if (isRoot && name !== '.env') chownSync(path, uid, gid)
  }
  process.stdout.write(`Prepared ${folder}, for ${url}. The password is in ${join(folder, 'staging-password')}.
Next: sh deploy/staging/build.sh
Then: docker compose --env-file ${join(folder, '.env')} -f deploy/compose.staging.yaml up -d
`)
}

const parsed = parseArguments(process.argv.slice(2), { url: { type: 'string' } }, { takesPositionals: true })
if (parsed.kind === 'help') {
  process.stdout.write(USAGE)
} else {
  const [folder, ...others] = parsed.kind === 'run' ? parsed.positionals : []
  const url = parseUrl(parsed.kind === 'run' ? (parsed.values.url ?? 'http://localhost:8500') : '')
  const fault =
    parsed.kind === 'fault'
      ? parsed.fault
      : folder === undefined || others.length > 0
        ? 'Expected one folder. See --help.'
        : '--url: expected https://HOST, or http://localhost:PORT'
  if (folder === undefined || others.length > 0 || url === undefined) {
    process.stderr.write(`${fault}\n`)
    process.exitCode = 2
  } else {
    try {
      prepare(resolve(folder), url)
    } catch (error) {
      process.stderr.write(`${error instanceof Error ? error.message : 'the folder cannot be made'}\n`)
      process.exitCode = 1
    }
  }
}
