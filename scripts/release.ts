// Checks and packs the published packages, and publishes them on request: npm run release -- --help

import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { toVkey } from '@countersign/log'
import { INPUTS } from '../deploy/image/listInputs.ts'
import { createWitnessClient, readWitnesses } from '../services/coordinator/src/log/witnessClient.ts'
import { applyChangesets } from './packages/applyChangesets.ts'
import { findFaults } from './packages/findFaults.ts'
import { packAll } from './packages/packAll.ts'
import { createPublishDeps, publishAll } from './packages/publishAll.ts'
import { type Packed, readPublished } from './packages/readPublished.ts'
import { tryInstalled } from './packages/tryInstalled.ts'
import { readArguments, refuseArguments } from './readArguments.ts'
import { createParts } from './release/createParts.ts'
import { findTaggedCommit, recordRelease } from './release/recordRelease.ts'
import { addCosignatures } from './release/releaseFolder.ts'
import { createReleaseKey, readReleaseKey } from './release/releaseKey.ts'

const USAGE = `usage: npm run release -- [options]

Checks and packs every package for publication, then installs and runs all of them in an empty project. Without options, it sends nothing
to other machines.

After the checks:
  --out DIR   writes the checked tarballs to an empty or new folder, for scripts/publish.ts
  --key FILE  appends a record to releases/, signed with this key. Fails unless HEAD has the tag of the version and the working
              tree is clean
  --inputs FOLDER
              Node and the Debian packages for the images in the record, from npm run image:fetch (default: ${INPUTS})
  --publish   publishes the checked tarballs to the registry of npm's configuration, with the token in NPM_TOKEN or as a trusted
              publisher

Instead of the checks:
  --bump      turns the files of .changeset/ into the next version and its changelogs, to be committed
  --cosign VKEY@URL
              asks a witness to cosign releases/checkpoint, and stores its line; repeat for more
  --new-key FILE
              creates the key of a log of releases
  --help      prints this text

Example: npm run release
Exit codes: 0 success, 1 a check or step failed, 2 wrong arguments.`

const root = resolve(import.meta.dirname, '..')
const releases = join(root, 'releases')

function checkManifests(): boolean {
  const published = readPublished(root)
  const license = readFileSync(join(root, 'LICENSE'), 'utf8')
  const faults = published.flatMap((one) => {
    const read = (name: string) => {
      const path = join(root, one.folder, name)
      return existsSync(path) ? readFileSync(path, 'utf8') : undefined
    }
    return findFaults(one, { read, license }, published)
  })
  for (const fault of faults) console.error(fault)
  return faults.length === 0
}

/** Checks that the paths in package.json lead to files, and that types and code resolve to each other. Only modules are published. */
async function lint({ tarball }: Packed): Promise<boolean> {
  const commands = [
    ['publint', 'run', tarball, '--strict'],
    ['attw', tarball, '--profile', 'esm-only', '--quiet'],
  ]
  try {
    for (const [command = '', ...args] of commands) await promisify(execFile)(command, args)
    return true
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string }
    console.error(`${stdout}${stderr}${message}`)
    return false
  }
}

async function release({ out, isPublishing }: { out: string | undefined; isPublishing: boolean }): Promise<boolean> {
  const commit = values.key === undefined ? undefined : findTaggedCommit(root)
  if (commit === undefined && values.key !== undefined)
    throw new Error('--key: HEAD has no tag of the packages’ version, such as v1.2.3')
  if (!checkManifests()) return false
  if (out !== undefined && existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty`)
  const folder = mkdtempSync(join(tmpdir(), 'countersign-release-'))
  try {
    const packed = await packAll(root, { packages: readPublished(root), folder })
    if ((await Promise.all(packed.map(lint))).includes(false)) return false
    await tryInstalled(root, packed)
    for (const { manifest } of packed) console.log(`${manifest.name}@${manifest.version} is ready`)
    if (out !== undefined) cpSync(folder, out, { recursive: true })
    await record(commit)
    if (!isPublishing) return true
    publishAll(createPublishDeps(root), packed)
    return true
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Appends a record of the tagged commit to the log of releases. */
async function record(commit: ReturnType<typeof findTaggedCommit>) {
  if (commit === undefined || values.key === undefined) {
    console.log('No release record written. To write one, pass --key.')
    return
  }
  const { inputs = join(root, INPUTS) } = values
  const deps = { now: () => new Date(), createParts: (path: string) => createParts(path, { inputs }) }
  await recordRelease(deps, { root, commit, folder: releases, key: readReleaseKey(values.key) })
  console.log(
    `Wrote the record of ${commit.release} to releases/. Next: get cosignatures with --cosign, then commit releases/.`,
  )
}

async function cosign(texts: readonly string[]) {
  const faults: string[] = []
  const sites = readWitnesses({ LOG_WITNESSES: texts.join() }, (_, fault) => faults.push(fault))
  if (faults.length > 0) refuseArguments(`--cosign: ${faults.join('; ')}`, USAGE)
  const clients = sites.map((site) => createWitnessClient(site))
  try {
    const refusals = await addCosignatures(releases, clients)
    for (const refusal of refusals) console.error(refusal)
    if (refusals.length > 0) process.exitCode = 1
  } finally {
    for (const client of clients) await client.stop()
  }
}

const { values } = readArguments(
  {
    bump: { type: 'boolean' },
    out: { type: 'string' },
    publish: { type: 'boolean' },
    key: { type: 'string' },
    inputs: { type: 'string' },
    cosign: { type: 'string', multiple: true },
    'new-key': { type: 'string' },
  },
  USAGE,
)
const { 'new-key': newKey } = values
const given = [values.bump, values.out, values.publish, values.cosign, newKey].filter((value) => value !== undefined)
if (given.length > 1) refuseArguments('one of --bump, --out, --publish, --cosign and --new-key', USAGE)
try {
  if (newKey !== undefined) console.log(toVkey(createReleaseKey(newKey).key))
  else if (values.cosign !== undefined) await cosign(values.cosign)
  else if (values.bump === true)
    console.log(`The next version is ${applyChangesets(root)}. Review the changes and commit them.`)
  else if (!(await release({ out: values.out, isPublishing: values.publish === true }))) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
