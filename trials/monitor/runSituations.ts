import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { hashOrigin } from '@countersign/log'
import { listen, withScope } from '@countersign/testing/stack'
import type { Manifest } from '@countersign/verify'
import {
  answerAsWitness,
  createFakeLog,
  type FakeLog,
  logReceipt,
  origin,
} from '../../packages/verify/test/monitor/log/log.ts'
import {
  boot,
  createLoggedWallet,
  first,
  history,
  issueLogged,
  manifests,
  old,
  signature,
  spared,
  spareOrigin,
  wallet,
} from '../../packages/verify/test/monitor/loggedWallet.ts'
import { apiBaseUrl, gatewayUrl, json, rpcUrl } from '../../packages/verify/test/network.ts'
import { type Outcome, selectNames, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { readReport, runMonitor } from './runMonitor.ts'

const HOOK = 'https://hook.test'
const WITNESSES = ['https://w1.test', 'https://w2.test', 'https://w3.test']
const HOSTS = [rpcUrl, gatewayUrl, apiBaseUrl, HOOK, ...WITNESSES]
const UNKNOWN = `0x${'11'.repeat(20)}`
const SETTING = { origins: [origin, spareOrigin], witnesses: history.witnesses, quorum: 2 }
const [configHash = ''] = spared.anchors.configHashes
const [otherConfigHash = ''] = first.anchors.configHashes

type Situation = {
  name: string
  /** The expected exit code, and the expected findings in the webhook. */
  exitCode: number
  kinds?: readonly string[]
  prepare: (service: Service) => Promise<void> | void
}

type Row = {
  name: string
  headline: string
  exitCode: number
  /** Body of the webhook; undefined if none was sent. */
  webhook: ReturnType<typeof readReport> | undefined
  isExpected: boolean
}

type Service = ReturnType<typeof createService>

/** A service with a log and a spare, three witnesses and a wallet with two transactions, as servers that can be changed. */
function createService() {
  const stack = createLoggedWallet()
  const { network, node } = stack
  const logs = [createFakeLog([boot(0, configHash)])]
  const service = {
    network,
    node,
    logs,
    address: wallet,
    manifest: {
      ...(manifests[0] as Manifest),
      enclave: {
        ...(manifests[0] as Manifest).enclave,
        configHashes: manifests.flatMap(({ enclave }) => enclave.configHashes),
      },
    },
    hasWitnessUrls: true,
    /** The logs that the witnesses have cosigned, if they differ from those of the service. */
    cosigned: undefined as readonly FakeLog[] | undefined,
    down: new Set<number>(),
    cosignedAgoS: 60,
    /** Signs a transaction and publishes its receipt. `isMined: false` leaves the transaction out of the chain, which has each nonce once. */
    async sign(nonce: number, { seconds = nonce, log = logs[0] as FakeLog, isOther = false, isMined = true } = {}) {
      const options = {
        txMetadata: { nonce },
        log: { origin: log.name },
        ...(isOther ? {} : { settings: { log: SETTING } }),
      }
      const issued = logReceipt(log, await issueLogged(seconds, options))
      stack.addBlocks(issued)
      if (isMined) stack.publish(issued)
      else node.publish(issued)
    },
    publishOld: () => stack.publish(old),
  }
  network.routes.unshift(
    [`${apiBaseUrl}/log`, (url) => answerLog(url, service)],
    ...WITNESSES.map((url, place): (typeof network.routes)[number] => [
      url,
      (request) => {
        if (service.down.has(place)) return new Response(null, { status: 503 })
        // A checkpoint in a statement carries only the log's signature.
        const seen = (service.cosigned ?? logs).map((log) => {
          return Object.assign(createFakeLog(log.entries, undefined, log.name), { cosigners: [] })
        })
        return answerAsWitness(request, { place, logs: seen, at: new Date() })
      },
    ]),
  )
  return service
}

function answerLog(url: URL, { logs, cosignedAgoS }: Pick<Service, 'logs' | 'cosignedAgoS'>): Response {
  if (logs.length === 0) return new Response(null, { status: 404 })
  const listed = logs.map(({ name, key, entries }) => ({
    origin: name,
    hash: hashOrigin(name),
    key,
    size: entries.length,
  }))
  if (url.pathname === '/log') return json({ logs: listed })
  const log = logs.find(({ name }) => url.pathname.includes(hashOrigin(name)))
  if (log === undefined) return new Response(null, { status: 404 })
  log.cosignedAtS = Math.floor(Date.now() / 1000) - cosignedAgoS
  return log.answer(url)
}

async function signTwo(service: Service) {
  await service.sign(0)
  await service.sign(1)
}

async function upgrade(service: Service) {
  service.publishOld()
  await service.sign(1)
  service.logs[0]?.append(boot(50, otherConfigHash))
  await service.sign(2, { seconds: 60, isOther: true })
}

const openSpare = () => createFakeLog([boot(30, configHash)], undefined, spareOrigin)

const situations: readonly Situation[] = [
  { name: 'Honest, with a log', exitCode: 0, prepare: signTwo },
  {
    name: 'Honest, without a log',
    exitCode: 0,
    prepare(service) {
      service.logs.length = 0
      service.hasWitnessUrls = false
      service.publishOld()
    },
  },
  { name: 'After an upgrade', exitCode: 0, prepare: upgrade },
  {
    name: 'After a restore',
    exitCode: 0,
    // The log has ended and its spare took over. A transaction that the database lost was signed again there.
    async prepare(service) {
      await signTwo(service)
      const spare = openSpare()
      service.logs.push(spare)
      await service.sign(1, { seconds: 40, log: spare, isMined: false })
    },
  },
  {
    name: 'Unknown wallet',
    exitCode: 3,
    kinds: ['log-not-checked', 'wallet-unknown', 'witness-unavailable'],
    async prepare(service) {
      await signTwo(service)
      service.address = UNKNOWN
      service.node.lie = (method) => (method === 'eth_getTransactionCount' ? '0x0' : undefined)
    },
  },
  {
    name: 'Spare origin unread',
    exitCode: 3,
    kinds: ['log-not-checked'],
    async prepare(service) {
      await signTwo(service)
      service.hasWitnessUrls = false
    },
  },
  {
    name: 'Secret use on the spare',
    exitCode: 3,
    kinds: ['log-withholds'],
    async prepare(service) {
      await signTwo(service)
      const spare = openSpare()
      spare.append(signature())
      service.cosigned = [...service.logs, spare]
    },
  },
  {
    name: 'Hidden entry',
    exitCode: 4,
    kinds: ['log-unused', 'hidden'],
    async prepare(service) {
      await signTwo(service)
      service.logs[0]?.append(signature())
    },
  },
  {
    name: 'Two receipts',
    exitCode: 0,
    async prepare(service) {
      await signTwo(service)
      await service.sign(1, { seconds: 30, isMined: false })
    },
  },
  {
    name: 'Witness down',
    exitCode: 0,
    async prepare(service) {
      await signTwo(service)
      service.down.add(2)
    },
  },
  {
    name: 'Stale log',
    exitCode: 3,
    kinds: ['log-not-checked', 'log-stale', 'witness-unavailable'],
    async prepare(service) {
      await signTwo(service)
      service.cosignedAgoS = 7_200
      service.down.add(1).add(2)
    },
  },
  {
    name: 'Unknown configuration',
    exitCode: 7,
    kinds: ['receipt-not-listed', 'boot-not-listed', 'log-unused', 'before-log'],
    async prepare(service) {
      await upgrade(service)
      service.manifest.enclave.configHashes = [configHash]
    },
  },
]

async function runSituation({ name, prepare, exitCode: expected, kinds = [] }: Situation): Promise<Row> {
  const service = createService()
  await prepare(service)
  const bodies: string[] = []
  service.network.routes.unshift([
    HOOK,
    (_, { body }) => {
      bodies.push(String(body))
      return json({})
    },
  ])
  return withScope(async ({ add, createFolder }) => {
    const servers = await Promise.all(HOSTS.map(async (host) => add(await serve(host, service), ({ stop }) => stop())))
    const urlOf = (host: string) => servers[HOSTS.indexOf(host)]?.url ?? ''
    const manifest = { ...service.manifest, ...(service.hasWitnessUrls ? { witnessUrls: WITNESSES.map(urlOf) } : {}) }
    const manifestFile = join(await createFolder(), 'manifest.json')
    await writeFile(manifestFile, JSON.stringify(manifest))
    const sources = ['--rpc', urlOf(rpcUrl), '--ipfs', urlOf(gatewayUrl), '--log', urlOf(apiBaseUrl)]
    const trust = ['--manifest', manifestFile, '--allow-mock']
    const { exitCode, stdout } = await runMonitor([service.address, ...sources, ...trust, '--webhook', urlOf(HOOK)])
    const headline = stdout.split('\n')[1]?.trim() ?? ''
    const webhook = bodies.map(readReport).at(-1)
    const isComplete = expected === 0
    const isExpected =
      exitCode === expected &&
      headline.includes('; complete up to ') === isComplete &&
      bodies.length === (isComplete ? 0 : 1) &&
      (isComplete || (webhook?.exitCode === expected && isSame(webhook.kinds, kinds)))
    return { name, headline, exitCode, webhook, isExpected }
  })
}

const isSame = (found: readonly string[], expected: readonly string[]) =>
  JSON.stringify([...new Set(found)].toSorted()) === JSON.stringify(expected.toSorted())

const options = { only: word('WORD', 'run only the situations with this text in their names') }

export const monitorSituations: Trial = {
  summary:
    'Runs the monitor in twelve situations, each in a separate process, and prints its headline, exit code and webhook in a table.',
  options,
  example: '--only witness',
  run: runSituations,
}
type Options = Values<typeof options>

export async function runSituations({ say }: Pick<TrialDeps, 'say'>, { only }: Options): Promise<Outcome> {
  const names = selectNames(
    situations.map(({ name }) => name),
    only,
  )
  const rows: Row[] = []
  for (const situation of situations.filter(({ name }) => names.includes(name))) {
    const row = await runSituation(situation)
    say(`${row.name}: exit code ${row.exitCode}`)
    rows.push(row)
  }
  return {
    faults: rows.filter(({ isExpected }) => !isExpected).map(({ name }) => `unexpected result: ${name}`),
    tables: [
      {
        head: ['Situation', 'Headline', 'Exit code', 'Webhook'],
        rows: rows.map(({ name, headline, exitCode, webhook }) => [
          name,
          headline,
          exitCode,
          webhook === undefined ? 'not called' : `\`${JSON.stringify(webhook)}\``,
        ]),
      },
    ],
  }
}

/** Serves one of the fake hosts on loopback. */
function serve(host: string, { network }: Service) {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    const init = { method: request.method ?? 'GET', ...(body !== '' && { body }) }
    const answer = await network.fetch(`${host}${request.url}`, init)
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(new Uint8Array(await answer.arrayBuffer()))
  })
  return listen(server)
}
