import { execFileSync, spawn } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { toVkey } from '@countersign/log'
import { fromHex } from '@countersign/protocol'
import { fromCidHash } from '@countersign/receipt'
import { findFreePorts, findProgram, readAnchors, startBackend } from '@countersign/testing'
import {
  createWitnessFolders,
  type LogFields,
  parseLogLine,
  startWitness,
  toPath,
  writeLogList,
} from '@countersign/testing/launcher'
import { createUser, listen, waitForCompleteProofs } from '@countersign/testing/stack'
import { runCli } from '../../apps/verifier/src/runCli.ts'
import { startContract } from '../../contracts/startContract.ts'
import { toAppCompose } from '../../deploy/dstack/appCompose.ts'
import { createImage } from '../../deploy/image/createImage.ts'
import { INPUTS } from '../../deploy/image/listInputs.ts'
import { APP, NODE_FLAGS } from '../../deploy/launcher/launchers.ts'
import { createDevManifest } from '../../dev/webConfig.ts'
import { createParts } from '../../scripts/release/createParts.ts'
import { findTaggedCommit, recordRelease } from '../../scripts/release/recordRelease.ts'
import { addCosignatures } from '../../scripts/release/releaseFolder.ts'
import { createReleaseKey } from '../../scripts/release/releaseKey.ts'
import { createWitnessClient, readWitnesses } from '../../services/coordinator/src/log/witnessClient.ts'
import { type Outcome, type Trial, type TrialDeps, WrongArgumentError } from '../trial.ts'
import { type GuestEvents, startGuestAgent } from './startGuestAgent.ts'
import { unpackImage } from './unpackImage.ts'

type Environment = Readonly<Record<string, string>>

const IMAGE = 'enclave'
const NODE = '/bin/node'
/** Fixed values of a dstack application. */
const APPLICATION = { 'app-id': '11'.repeat(20), 'key-provider': '22'.repeat(32) }

export const sourceTrial: Trial = {
  summary:
    'Records a release of a temporary tagged clone, starts the enclave of its image with a simulated dstack guest, and follows a proof to the commit with verify --source. Needs root, for chroot. The coordinator runs from the checkout, because its image refuses simulated hardware.',
  options: {
    inputs: { kind: 'text', placeholder: 'DIR', text: 'the inputs of the images', default: INPUTS },
  },
  example: '--inputs /srv/inputs',
  run: ({ scope, say }, { inputs }) => runSource({ scope, say }, resolve(process.env.INIT_CWD ?? '.', inputs)),
}

async function runSource({ scope, say }: TrialDeps, inputs: string): Promise<Outcome> {
  if (process.getuid?.() !== 0) throw new WrongArgumentError('run as root: the image starts in a chroot')
  mkdirSync(toPath('.countersign'), { recursive: true })
  const folder = scope.add(mkdtempSync(toPath('.countersign/source-')), async (path) =>
    rmSync(path, { recursive: true, force: true }),
  )
  const root = cloneCheckout(join(folder, 'clone'))
  const release = await createRelease({ scope, say }, { root, folder, inputs })
  const tree = join(folder, 'tree')
  const image = await createImage({ root, name: IMAGE, inputs })
  image.writeTo(join(folder, 'layout'))
  unpackImage(join(folder, 'layout'), tree)
  say(`unpacked the image ${image.digest}`)

  const { chain, address: contract, env } = await startContract()
  scope.add(chain, ({ stop }) => stop())
  const backend = scope.add(await startBackend({ env }), ({ stop }) => stop())
  const { satellite, oidc, url } = backend
  const [port = 0] = await findFreePorts(1)
  // Not the settings of production: plain http, any caller, and the local identity provider.
  const settings = {
    LISTEN: 'http',
    HOST: '127.0.0.1',
    PORT: String(port),
    QUOTE_SOURCE: 'dstack',
    ROOT_SECRET: 'dstack',
    OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
  }
  const appCompose = createAppCompose(root, { digest: image.digest, settings })
  const composeHash = hash('sha256', appCompose)
  const events = { 'compose-hash': composeHash, ...APPLICATION }
  const enclave = await startEnclave({ scope, say }, { tree, settings, events })
  await backend.stopCoordinator('SIGTERM')
  await backend.startCoordinator({ ENCLAVE_URL: String(enclave.fields.address) })
  await backend.untilReady()

  const alice = createUser(backend)
  await alice.signIn('alice')
  await alice.post('/wallets/provision')
  const { slug } = (await (await alice.post('/sign/message', { message: '0x6869' })).json()) as { slug: string }
  await waitForCompleteProofs({ url, slugs: [slug] })

  const gateway = await startGateway({ scope, say }, { cid: fromCidHash(fromHex(composeHash)), block: appCompose })
  const anchors = await readAnchors({ url, enclave: enclave.fields, satellite })
  const manifest = createDevManifest({ ...chain, contract }, anchors, undefined)
  const known = { ...manifest.enclave, measurements: [enclave.measurement], events: toLists(events) }
  const manifestFile = join(folder, 'manifest.json')
  writeFileSync(manifestFile, JSON.stringify({ ...manifest, enclave: known }))
  const argv = [`${url}/proof/${slug}`, '--rpc', chain.url, '--manifest', manifestFile, '--allow-mock']
  const trace = ['--source', '--releases', release.folder, '--ipfs', gateway]
  const keys = ['--release-key', release.vkey, '--release-witness', release.witness]
  const deps = { fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
  const { exitCode, stdout, stderr } = await runCli(deps, [...argv, ...trace, ...keys])
  console.log(`$ verify LINK --source …\n${stdout}${stderr}exit code ${exitCode}`)
  const json = JSON.parse((await runCli(deps, [...argv, ...trace, ...keys, '--json'])).stdout)
  return { faults: findFaults(json, { exitCode, ...release, digest: image.digest }) }
}

/** Clones HEAD, tags it with its version, and links the installed dependencies. */
function cloneCheckout(clone: string): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: toPath('.'), encoding: 'utf8' })
  git('clone', '--quiet', toPath('.'), clone)
  const modules = git('ls-files', '--others', '--ignored', '--exclude-standard', '--directory', '*node_modules/')
  for (const path of modules.split('\n').filter((line) => line.endsWith('node_modules/'))) {
    if (path.startsWith('.countersign/')) continue
    execFileSync('cp', ['-al', toPath(path), join(clone, path)])
  }
  const { version } = JSON.parse(git('show', 'HEAD:packages/protocol/package.json')) as { version: string }
  execFileSync('git', ['tag', `v${version}`], { cwd: clone })
  return clone
}

/** Records the release as `npm run release` does, with a new key and one witness. */
async function createRelease(
  { scope, say }: TrialDeps,
  { root, folder, inputs }: { root: string; folder: string; inputs: string },
) {
  const commit = findTaggedCommit(root)
  if (commit === undefined) throw new Error('the clone has no tag')
  const key = createReleaseKey(join(folder, 'release.key'))
  const releases = join(folder, 'releases')
  const deps = { now: () => new Date(), createParts: (path: string) => createParts(path, { inputs }) }
  await recordRelease(deps, { root, commit, folder: releases, key })
  say(`recorded ${commit.release} of ${commit.commit}`)
  const [witness] = await createWitnessFolders(join(folder, 'witnesses'), 1)
  if (witness === undefined) throw new Error('no witness')
  const logsFile = join(folder, 'logs')
  await writeLogList(logsFile, [toVkey(key.key)])
  const service = scope.add(startWitness({ folder: witness.folder, logsFile }), ({ kill }) => kill('SIGKILL'))
  const { address } = await service.started
  const sites = readWitnesses({ LOG_WITNESSES: `${witness.vkey}@${String(address)}` }, (_, fault) => {
    throw new Error(fault)
  })
  const clients = sites.map((site) => createWitnessClient(site))
  const refusals = await addCosignatures(releases, clients)
  await Promise.all(clients.map((client) => client.stop()))
  if (refusals.length > 0) throw new Error(refusals.join('\n'))
  return { ...commit, folder: releases, vkey: toVkey(key.key), witness: witness.vkey }
}

/** The operator's copy of the template, with the image and its settings. */
function createAppCompose(root: string, { digest, settings }: { digest: string; settings: Environment }): string {
  const template = execFileSync('git', ['show', 'HEAD:deploy/dstack/docker-compose.yaml'], {
    cwd: root,
    encoding: 'utf8',
  })
  const lines = Object.entries(settings).map(([name, value]) => `      ${name}: "${value}"\n`)
  return toAppCompose(
    template
      .replace(/image: .*/, `image: registry.localhost/countersign-enclave@${digest}`)
      .replace(/( {4}environment:\n)(?: {6}.*\n)+/, (_, heading) => heading + lines.join('')),
  )
}

/** Starts the enclave's program with the Node of the unpacked image, which sees only this folder. */
async function startEnclave(
  { scope, say }: TrialDeps,
  { tree, settings, events }: { tree: string; settings: Environment; events: GuestEvents },
) {
  mkdirSync(join(tree, 'var/run'), { recursive: true })
  mkdirSync(join(tree, 'etc'), { recursive: true })
  // As container engines do. The local identity provider is at localhost.
  writeFileSync(join(tree, 'etc/hosts'), '127.0.0.1 localhost\n')
  const socket = join(tree, 'var/run/dstack.sock')
  const rootSecret = randomBytes(32).toString('hex')
  const agent = scope.add(await startGuestAgent({ socket, events, rootSecret }), ({ stop }) => stop())
  const argv = [tree, NODE, ...NODE_FLAGS, `${APP}/services/enclave/src/main.ts`]
  const child = scope.add(
    spawn(findProgram('chroot') ?? 'chroot', argv, { env: settings, stdio: ['ignore', 'pipe', 'pipe'] }),
    async (each) => {
      each.kill('SIGKILL')
    },
  )
  const { promise, resolve: start, reject } = Promise.withResolvers<LogFields>()
  child.once('exit', (code) => reject(new Error(`the enclave of the image exited with ${code}`)))
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      const fields = parseLogLine(line)
      if (fields?.msg === 'Started the enclave') start(fields)
      else say(line)
    })
  }
  return { fields: await promise, measurement: agent.measurement }
}

/** An IPFS gateway on which the operator has pinned the file. */
async function startGateway({ scope }: TrialDeps, { cid, block }: { cid: string; block: string }): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === `/ipfs/${cid}?format=raw`) response.end(block)
    else response.writeHead(404).end()
  })
  return scope.add(await listen(server), ({ stop }) => stop()).url
}

const toLists = (events: GuestEvents) =>
  Object.fromEntries(Object.entries(events).map(([name, payload]) => [name, [payload]]))

type Traced = { source: { links: { id: string; status: string }[]; source?: Record<string, string> } }

function findFaults(
  { source }: Traced,
  expected: { exitCode: number; release: string; commit: string; tree: string; digest: string },
): string[] {
  const unchecked = ['rebuild', 'guest', 'coordinator']
  const wrong = source.links.filter(({ id, status }) => status !== (unchecked.includes(id) ? 'skip' : 'pass'))
  const members = (['release', 'commit', 'tree', 'digest'] as const).filter(
    (name) => source.source?.[name] !== expected[name],
  )
  return [
    ...wrong.map(({ id, status }) => `link ${id}: ${status}`),
    ...members.map((name) => `${name}: expected ${expected[name]}, got ${source.source?.[name]}`),
    ...(expected.exitCode === 0 ? [] : [`exit code ${expected.exitCode}`]),
  ]
}
