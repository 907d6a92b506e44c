import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { WalletInfo } from '@countersign/protocol'
import { checkpointTopic, fromPrefixedHex, parseCheckpointEvent, toSizeTopic } from '@countersign/protocol'
import { fromCidHash } from '@countersign/receipt'
import { readAnchors } from '@countersign/testing'
import { LOG_ORIGINS } from '@countersign/testing/launcher'
import { createUser, type Scope, waitForCompleteProofs } from '@countersign/testing/stack'
import { runCli } from '../../apps/verifier/src/runCli.ts'
import { startContract } from '../../contracts/startContract.ts'
import { createDevManifest } from '../../dev/webConfig.ts'
import { createHeliaPinner } from '../../services/coordinator/src/publish/ipfs/helia.ts'
import { startBackend } from '../../services/coordinator/test/backend.ts'
import { createClient } from '../answers.ts'
import { audit, listFaults } from '../audit.ts'
import { count, type Outcome, type Trial, type TrialDeps, type Values } from '../trial.ts'

const LANES = 4
const AT_ONCE = 8
const RETRY_MS = 50
/** Callers repeat requests that a restarting coordinator did not answer. */
const AGAIN_MS = 120_000
const PROOFS_TIMEOUT_MS = 300_000
const CALL_MS = 30_000

const options = {
  proofs: count(1_000, 'signatures to publish with checkpoints; a fifth of that with events, before and after'),
}

export const checkpoints: Trial = {
  summary:
    'Switches a service from events to checkpoints and back while signatures are requested. Then stops it, and verifies every proof with only a node and an IPFS gateway.',
  options,
  example: '--proofs 100',
  run: (deps, values: Values<typeof options>) => runCheckpoints(deps, values),
}

export async function runCheckpoints(
  { scope, say }: TrialDeps,
  { proofs: wanted }: Values<typeof options>,
): Promise<Outcome> {
  const { chain, address: contract, ...deployed } = await startContract({ origins: LOG_ORIGINS })
  scope.add(chain, ({ stop }) => stop())
  const modes = { events: deployed.env, checkpoints: { ...deployed.checkpointsEnv, PUBLISH_DELAY_MS: '500' } }
  const backend = await startBackend({ env: { RECEIPTS: '2' }, log: {} })
  scope.add(backend, ({ stop }) => stop())
  await backend.untilReady()
  const user = createUser(backend)
  await user.signIn('alice')
  const { address } = (await (await user.get('/wallet/me')).json()) as WalletInfo
  const client = createClient(user)
  const restart = async (mode: keyof typeof modes) => {
    await backend.stopCoordinator('SIGTERM')
    await backend.startCoordinator(modes[mode])
    await backend.untilReady()
  }

  const { url, satellite } = backend
  const readProofs = () => {
    const slugs = [...client.answers.values()].map(({ slug }) => slug)
    return waitForCompleteProofs({ url, slugs, timeoutMs: PROOFS_TIMEOUT_MS })
  }

  const few = Math.ceil(wanted / 5)
  for (const [mode, number] of [
    ['events', few],
    ['checkpoints', wanted],
    ['events', few],
  ] as const) {
    const until = client.answers.size + number
    let isUp = false
    const restarting = restart(mode).then(() => {
      isUp = true
    })
    // Requests continue while the coordinator restarts in the other mode. Callers repeat those without an answer.
    while (!isUp || client.answers.size < until) {
      const missing = client.missing(client.all())
      await client.sign([...missing, ...client.next(Math.max(0, AT_ONCE - missing.length))])
      if (missing.length > 0) await setTimeout(RETRY_MS)
    }
    await restarting
    // A proof gets the mode in which it is published, so those of this mode must not wait for the next one.
    if (mode === 'checkpoints') await readProofs()
    say(`${client.answers.size} signatures, after ${number} with ${mode}`)
  }
  const all = client.all()
  for (const endsAt = performance.now() + AGAIN_MS; client.missing(all).length > 0 && performance.now() < endsAt; ) {
    await client.sign(client.missing(all))
    await setTimeout(RETRY_MS)
  }

  const payloads = await readProofs()
  const anchored = payloads.filter(({ anchor }) => anchor !== undefined)
  say(`${anchored.length} of ${payloads.length} proofs have a checkpoint`)
  const anchors = await readAnchors({ url, enclave: backend.enclaveFields(), satellite })
  const { logWitness: logContract, logs } = deployed
  const manifest = join(await scope.createFolder(), 'manifest.json')
  const listed = { ...chain, contract, logWitness: { address: logContract, fromBlock: 0, logs } }
  await writeFile(manifest, JSON.stringify(createDevManifest(listed, anchors, backend.witnesses)))
  const logWitness = { address: logContract, ids: logs.map(({ id }) => id), manifest }
  const stack = { url, chainUrl: chain.url, contract, ipfsUrl: url, anchors, logWitness }
  const audited = await audit(stack, client.received(address), { say, verifyOneIn: payloads.length })

  await backend.stopCoordinator('SIGTERM')
  const withheld = new Set<string>()
  const ipfsUrl = await startGateway(scope, { dataDir: backend.dataDir, withheld })
  const verify = async (txHash: string) => {
    const deps = { fetch, timeoutMs: CALL_MS, now: () => new Date(), isColored: false }
    const sources = ['--rpc', chain.url, '--ipfs', ipfsUrl, '--manifest', manifest, '--allow-mock', '--json']
    const { exitCode, stdout } = await runCli(deps, ['verify', txHash, ...sources])
    return { exitCode, answer: JSON.parse(stdout) as { error?: { code: string } } }
  }
  say('stopped the service; verifying with the node and a gateway')
  const startedAt = performance.now()
  const faults: string[] = []
  const rest = anchored.slice(0, wanted).values()
  const lanes = Array.from({ length: LANES }, async () => {
    for (const { txHash, slug } of rest) {
      const { exitCode } = await verify(txHash)
      if (exitCode !== 0) faults.push(`${slug}: the verifier exited with ${exitCode} without the service`)
    }
  })
  await Promise.all(lanes)
  const seconds = (performance.now() - startedAt) / 1000

  const [first] = anchored
  if (first?.anchor !== undefined) {
    withheld.add(await findAnchorCid(chain.url, first.anchor))
    const { exitCode, answer } = await verify(first.txHash)
    if (exitCode === 0 || answer.error?.code !== 'event_not_found') {
      faults.push(`with a withheld anchor block: expected event_not_found, got ${exitCode} ${JSON.stringify(answer)}`)
    }
  }
  return {
    faults: [
      ...faults,
      ...listFaults(audited),
      ...client.conflicts,
      ...client.missing(all).map((each) => `nonce ${each} was never answered`),
      ...(anchored.length < wanted ? [`only ${anchored.length} proofs have a checkpoint`] : []),
      ...(payloads.length - anchored.length < few ? ['too few proofs have events'] : []),
    ],
    figures: {
      signatures: client.answers.size,
      checkpoints: new Set(anchored.map(({ anchor }) => anchor?.txHash)).size,
      'proofs with a checkpoint': anchored.length,
      'verified without the service': Math.min(anchored.length, wanted) - faults.length,
      'seconds for that': Math.round(seconds),
    },
  }
}

/** A gateway on the blocks of the stopped service's IPFS node. Returns 404 for withheld blocks. */
async function startGateway(
  scope: Scope,
  { dataDir, withheld }: { dataDir: string; withheld: ReadonlySet<string> },
): Promise<string> {
  const { pinner, getBlock } = await createHeliaPinner({ dataDir })
  scope.add(pinner, ({ stop }) => stop())
  const server = createServer(async (request, response) => {
    const [, cid = ''] = /^\/ipfs\/(\w+)/.exec(request.url ?? '') ?? []
    const block = withheld.has(cid) ? undefined : await getBlock(cid)
    response.writeHead(block === undefined ? 404 : 200, { 'content-type': 'application/vnd.ipld.raw' }).end(block)
  })
  scope.add(server, async (one) => void one.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function findAnchorCid(
  url: string,
  { contract, id, size }: { contract: string; id: string; size: number },
): Promise<string> {
  const topics = [checkpointTopic, id, toSizeTopic(size)]
  const params = [{ address: contract, fromBlock: '0x0', toBlock: 'latest', topics }]
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params })
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const { result } = (await response.json()) as { result: Parameters<typeof parseCheckpointEvent>[0][] }
  const [log] = result
  if (log === undefined) throw new Error(`no checkpoint of size ${size}`)
  return fromCidHash(fromPrefixedHex(parseCheckpointEvent(log).block))
}
