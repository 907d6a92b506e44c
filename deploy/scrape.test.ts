import { type ChildProcess, spawn } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePorts, findProgram, startBackend, startFakeKubo } from '@countersign/testing'
import { createWitnessFolders, mains, startService, toWorkerEnv } from '@countersign/testing/launcher'
import { createTx, createUser, type Scope, startInScope, waitForCompleteProofs } from '@countersign/testing/stack'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { startContract } from '../contracts/startContract.ts'
import { healthy } from './monitoring/worlds.ts'
import { alerts, alertsPath, findGroupings, findSelectors, panelExpressions, parseMetrics } from './test/promql.ts'

/** Metrics of Prometheus itself, and labels that it adds. */
const OF_PROMETHEUS = new Set(['up', 'ALERTS'])
const ADDED_LABELS = new Set(['job', 'instance', 'alertname', 'alertstate'])
/** Labels whose values are all present in any scrape of a service with a log. */
const CLOSED_LABELS = new Set(['part', 'state'])

/** Labels whose values are names of this service or others. */
const NAMES = new Set(['origin', 'receiver', 'witness'])

type Stack = Awaited<ReturnType<typeof startStack>>

/** Starts a whole service, a separate worker and a witness, all with metrics. */
async function startStack({ add }: Scope) {
  const [port = 0, workerPort = 0, witnessPort = 0, closedPort = 0] = await findFreePorts(4)
  const folder = add(mkdtempSync(join(tmpdir(), 'countersign-scrape-')), async (path) =>
    rmSync(path, { recursive: true, force: true }),
  )
  const contract = add(await startContract(), ({ chain }) => chain.stop())
  const kubo = add(await startFakeKubo(), ({ stop }) => stop())
  const env = { ...contract.env, METRICS_PORT: String(port) }
  const backend = add(await startBackend({ env, log: {} }), ({ stop }) => stop())
  await backend.untilReady()
  const worker = startService({
    name: 'worker',
    main: mains.worker,
    env: {
      ...toWorkerEnv({ databaseUrl: backend.databaseUrl ?? '', publisher: contract.env, kuboUrl: kubo.url }),
      METRICS_PORT: String(workerPort),
      DATA_DIR: folder,
      WEBHOOK_URL: `http://127.0.0.1:${closedPort}/hook`,
      WEBHOOK_PRIVATE_KEY: '11'.repeat(32),
      WEBHOOK_ALLOW_LOOPBACK: 'true',
    },
  })
  add(worker, ({ kill }) => kill('SIGKILL'))
  await worker.started
  const [own] = await createWitnessFolders(folder, 1)
  const witness = startService({
    name: 'witness',
    main: mains.witness,
    env: {
      PORT: '0',
      METRICS_PORT: String(witnessPort),
      WITNESS_DIR: own?.folder ?? '',
      WITNESS_LOGS_FILE: backend.logsFile,
    },
  })
  add(witness, ({ kill }) => kill('SIGKILL'))
  await witness.started
  return { backend, witness, ports: { coordinators: port, workers: workerPort, witnesses: witnessPort }, folder }
}

const scrape = async (port: number) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

describe('names in rules and dashboard', () => {
  let stack: Stack & { stop(): Promise<unknown> }
  let samples: ReturnType<typeof parseMetrics>
  beforeAll(async () => {
    stack = await startInScope(startStack)
    const user = createUser(stack.backend)
    await user.signIn('alice')
    const { slug } = (await (await user.sign(createTx(0))).json()) as { slug: string }
    await waitForCompleteProofs({ url: stack.backend.url, slugs: [slug], timeoutMs: 60_000 })
    const read = async () => (await Promise.all(Object.values(stack.ports).map(scrape))).join('\n')
    // Balance and webhooks are updated in the background.
    await vi.waitFor(async () => {
      const text = await read()
      expect(text).toContain('countersign_publisher_balance_wei{')
      expect(text).toContain('countersign_webhook_attempts_total{')
      samples = parseMetrics(text)
    }, 30_000)
  })
  afterAll(() => stack?.stop())

  const expressions = [...alerts.map(({ expr }) => expr), ...panelExpressions]
  const selectors = expressions.flatMap(findSelectors).filter(({ metric }) => !OF_PROMETHEUS.has(metric))

  test('every metric appears in a scrape of real processes', () => {
    expect(selectors.length).toBeGreaterThan(80)
    expect([...new Set(selectors.map(({ metric }) => metric))].filter((metric) => !samples.has(metric))).toEqual([])
  })

  test('every label exists, with values that the code writes', () => {
    const written = globSync('services/*/src/**/*.ts', { cwd: join(import.meta.dirname, '..') })
      .filter((path) => !/\.(test|fake)\.ts$/.test(path))
      .map((path) => readFileSync(join(import.meta.dirname, '..', path), 'utf8'))
      .join('\n')
    const faults = selectors.flatMap(({ metric, labels }) =>
      Object.entries(labels).flatMap(([label, values]) => {
        if (ADDED_LABELS.has(label)) return []
        const seen = new Set((samples.get(metric) ?? []).flatMap((one) => one[label] ?? []))
        if (seen.size === 0) return [`${metric} has no label ${label}`]
        const isWritten = (value: string) =>
          CLOSED_LABELS.has(label) ? seen.has(value) : seen.has(value) || new RegExp(`\\b${value}\\b`).test(written)
        return values
          .filter((value) => !isWritten(value))
          .map((value) => `${metric}: no code writes ${label}="${value}"`)
      }),
    )
    expect(faults).toEqual([])
  })

  test('counters that start at zero in a world are scraped before they grow, so that the first increase counts', () => {
    const zeros = Object.entries(healthy).flatMap(([series, values]) => (/^0x\d+$/.test(values) ? [`${series} 0`] : []))
    const missing = zeros.filter((line) => {
      const [[metric = '', [labels = {}] = []] = []] = parseMetrics(line)
      const closed = Object.entries(labels).filter(([label]) => !ADDED_LABELS.has(label) && !NAMES.has(label))
      return !samples.get(metric)?.some((one) => closed.every(([label, value]) => one[label] === value))
    })
    expect(zeros.length).toBeGreaterThan(10)
    expect(missing).toEqual([])
  })

  test('expressions group only by existing labels', () => {
    const known = new Set([...ADDED_LABELS, 'le', ...[...samples.values()].flat().flatMap(Object.keys)])
    expect(expressions.flatMap(findGroupings).filter((label) => !known.has(label))).toEqual([])
  })

  test('a scrape reports the state of each part, and no personal data', async () => {
    const text = await scrape(stack.ports.coordinators)
    for (const part of ['database', 'attestation', 'log'])
      expect(text).toContain(`countersign_part_up{part="${part}"} 1\n`)
    expect(text).toMatch(/countersign_enclave_up\{enclave="http:\/\/127\.0\.0\.1:\d+"\} 1\n/)
    expect(text).not.toMatch(/alice|[0-9a-f]{64}/)
  })

  const prometheus = findProgram('prometheus')
  if (prometheus === undefined) console.log('Prometheus not found on PATH: skipping the test with a real one')

  test.runIf(prometheus !== undefined)(
    'a real Prometheus detects a stopped enclave, witness and coordinator',
    async () => {
      const [port = 0] = await findFreePorts(1)
      const watching = startPrometheus(prometheus ?? '', { ...stack, port })
      const firing = async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`).catch(() => undefined)
        if (answer?.ok !== true) return []
        const { data } = (await answer.json()) as {
          data: { alerts: { state: string; labels: { alertname: string } }[] }
        }
        return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname)
      }
      try {
        // Fires immediately, because the hardware is simulated.
        await expect.poll(firing).toContain('CountersignMockSilicon')
        const before = await firing()
        for (const name of [
          'NoEnclave',
          'EnclaveDown',
          'WitnessDown',
          'NoCoordinator',
          'CoordinatorDown',
          'NoWorker',
          'DatabaseDown',
        ]) {
          expect(before).not.toContain(`Countersign${name}`)
        }
        await stack.backend.stopEnclave('SIGKILL')
        await expect.poll(firing).toEqual(expect.arrayContaining(['CountersignNoEnclave', 'CountersignEnclaveDown']))
        await stack.witness.kill('SIGKILL')
        await expect.poll(firing).toContain('CountersignWitnessDown')
        await stack.backend.stopCoordinator('SIGKILL')
        await expect
          .poll(firing)
          .toEqual(expect.arrayContaining(['CountersignNoCoordinator', 'CountersignCoordinatorDown']))
      } finally {
        await watching.stop()
      }
    },
  )
})

/** Starts Prometheus with our rules, without their waiting times. */
function startPrometheus(program: string, { ports, folder, port }: Pick<Stack, 'ports' | 'folder'> & { port: number }) {
  const rules = parse(readFileSync(alertsPath, 'utf8')) as { groups: { rules: { for: string }[] }[] }
  for (const { rules: each } of rules.groups) for (const rule of each) rule.for = '0s'
  writeFileSync(join(folder, 'alerts.json'), JSON.stringify(rules))
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['alerts.json'],
    scrape_configs: Object.entries(ports).map(([job_name, target]) => ({
      job_name,
      static_configs: [{ targets: [`127.0.0.1:${target}`] }],
    })),
  }
  writeFileSync(join(folder, 'prometheus.json'), JSON.stringify(config))
  const child: ChildProcess = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.json')}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  const ended = new Promise((resolve) => child.once('exit', resolve))
  return {
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
