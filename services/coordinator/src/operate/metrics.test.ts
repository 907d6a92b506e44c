import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { findFreePorts } from '@countersign/testing'
import { afterEach, expect, test } from 'vitest'
import { CoordinatorError } from '../errors.ts'
import { createMetrics } from './metrics.ts'

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

const unavailable = () => Promise.reject(new CoordinatorError('database_unavailable', 'gone'))

async function start(changes: Partial<Parameters<typeof createMetrics>[0]> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-metrics-'))
  stops.push(() => rmSync(dataDir, { recursive: true }))
  const metrics = createMetrics({
    now: () => 10_000,
    info: { program: 'coordinator', version: '1.2.3', mode: 'hardware' },
    parts: { database: async () => {}, log: () => true },
    countOpenProofs: async () => [{ status: 'pending_pin', count: 3, oldestAt: 4_000 }],
    countWebhooks: async () => [{ receiver: 'hooks.example', pending: 2, dead: 1, oldestAt: 7_000 }],
    countConnections: () => ({ used: 1, idle: 2, waiting: 0, limit: 10 }),
    dataDir,
    ...changes,
  })
  const [port = 0] = await findFreePorts(1)
  const server = await metrics.listen(port, '127.0.0.1')
  stops.push(() => server.stop())
  const url = `http://127.0.0.1:${port}`
  return { metrics, url, read: async () => (await fetch(`${url}/metrics`)).text() }
}

test('the first scrape has the age of the oldest proof, and zero for statuses without proofs', async () => {
  const text = await (await start()).read()
  expect(text).toContain('countersign_oldest_open_proof_seconds{status="pending_pin"} 6\n')
  expect(text).toContain('countersign_open_proofs{status="pending_onchain"} 0\n')
  expect(text).toContain('countersign_info{program="coordinator",version="1.2.3",mode="hardware"} 1\n')
  expect(text).toContain('countersign_database_connections{state="limit"} 10\n')
  expect(text).toContain('countersign_clock_seconds 10\n')
  expect(text).toContain('countersign_open_webhooks{receiver="hooks.example",status="dead"} 1\n')
  expect(text).toContain('countersign_oldest_open_webhook_seconds{receiver="hooks.example"} 3\n')
})

test('without the database a scrape succeeds, reports the part as down and omits old values', async () => {
  let isDown = false
  const { read } = await start({
    parts: { database: () => (isDown ? unavailable() : undefined) },
    countOpenProofs: async () => (isDown ? unavailable() : []),
  })
  expect(await read()).toContain('countersign_part_up{part="database"} 1\n')
  isDown = true
  const text = await read()
  expect(text).toContain('countersign_part_up{part="database"} 0\n')
  expect(text).not.toContain('countersign_open_proofs{')
  expect(text).not.toContain('countersign_oldest_open_proof_seconds{')
})

test.each([
  ['answers false', () => false],
  ['throws', () => unavailable()],
])('a part that %s is down', async (_, ask) => {
  expect(await (await start({ parts: { log: ask } })).read()).toContain('countersign_part_up{part="log"} 0\n')
})

test('a part that never answers does not delay the scrape', async () => {
  const { read } = await start({ parts: { database: () => new Promise(() => {}) }, waitMs: 1 })
  const text = await read()
  expect(text).toContain('countersign_part_up{part="database"} 0\n')
  expect(text).toContain('countersign_open_proofs{status="pending_pin"} 3\n')
})

test('omits values that were not read: no disk without a folder, no balance before the first read', async () => {
  const { read, metrics } = await start({ dataDir: '/nowhere/at/all' })
  const text = await read()
  expect(text).not.toMatch(/^countersign_(disk|publisher)\w+[ {]/m)
  metrics.observeBalance('0x01', { wei: 10n ** 18n, gas: 5_000_000n })
  expect(await read()).toContain('countersign_publisher_affordable_gas{account="0x01"} 5000000\n')
})

test('server errors start at zero, and client errors are not listed until they occur', async () => {
  const { read, metrics } = await start()
  const text = await read()
  for (const code of ['ok', 'enclave_unavailable', 'internal']) {
    expect(text).toContain(`countersign_sign_seconds_count{code="${code}"} 0\n`)
  }
  expect(text).toContain('countersign_problems_total{code="internal"} 0\n')
  expect(text).toContain('countersign_stage_attempts_total{stage="publish",outcome="failed"} 0\n')
  expect(text).toContain('countersign_stage_attempts_total{stage="retention",outcome="kept"} 0\n')
  expect(text).not.toContain('session_expired')
  metrics.observeProblem('internal')
  expect(await read()).toContain('countersign_problems_total{code="internal"} 1\n')
})

test('disagreements of witnesses start at zero', async () => {
  const { read, metrics } = await start({ witnesses: ['w1.example'] })
  const before = await read()
  for (const outcome of ['lies', 'contradicts']) {
    expect(before).toContain(`countersign_log_witness_answers_total{witness="w1.example",outcome="${outcome}"} 0\n`)
  }
  metrics.observeWitness('w1.example', 'contradicts')
  expect(await read()).toContain(
    'countersign_log_witness_answers_total{witness="w1.example",outcome="contradicts"} 1\n',
  )
})

test('a coordinator reports enclaves, collateral, entropy and witnesses, and 0 if it has no attestation', async () => {
  const { read } = await start({
    signing: {
      checkEnclaves: async () => [
        { address: 'https://e1', isUp: true },
        { address: 'https://e2', isUp: false },
      ],
      listCollateral: () => [{ platform: 'aa platform', lapsesAt: 90_000 }],
      attestationLapsesAt() {
        throw new CoordinatorError('attestation_invalid', 'none')
      },
      readEntropy: () => ({
        buffered: 4,
        handedOut: 9,
        unused: 1,
        replayed: 2,
        refused: { stale: 3 },
        failures: 5,
      }),
      countWitnesses: () => [{ origin: 'log.example/1', named: 3, missing: 1, quorum: 2 }],
    },
  })
  // Scrapes twice: totals must not add up.
  await read()
  const text = await read()
  for (const line of [
    'countersign_enclave_up{enclave="https://e1"} 1',
    'countersign_enclave_up{enclave="https://e2"} 0',
    'countersign_collateral_lapses_at_seconds{platform="aa platform"} 90',
    'countersign_attestation_lapses_at_seconds 0',
    'countersign_entropy_buffered 4',
    'countersign_entropy_failures_total 5',
    'countersign_entropy_samples_total{outcome="handed_out"} 9',
    'countersign_entropy_samples_total{outcome="stale"} 3',
    'countersign_log_witnesses{origin="log.example/1",state="missing"} 1',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
})

test('concurrent scrapes share one refresh and get the same values', async () => {
  let count = 0
  const { url } = await start({
    async countOpenProofs() {
      count += 1
      return [{ status: 'pending_pin', count: 3, oldestAt: 4_000 }]
    },
  })
  // On one connection, before the first answer.
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  const request = (connection: string) => `GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: ${connection}\r\n\r\n`
  socket.write(request('keep-alive') + request('keep-alive') + request('close'))
  const answers = await text(socket)
  expect(answers.split('countersign_open_proofs{status="pending_pin"} 3\n')).toHaveLength(4)
  expect(count).toBe(1)
})

test('does not repeat a read that is still running, and reports its values when it ends', async () => {
  let count = 0
  const answer = Promise.withResolvers<void>()
  const { read } = await start({
    waitMs: 1,
    async countOpenProofs() {
      count += 1
      await answer.promise
      return []
    },
  })
  for (const page of [await read(), await read(), await read()]) expect(page).not.toContain('countersign_open_proofs{')
  expect(count).toBe(1)
  answer.resolve()
  await expect.poll(read).toContain('countersign_open_proofs{status="pending_pin"} 0\n')
})

test('the clock is the time at the start of the scrape', async () => {
  let time = 10_000
  const { read } = await start({
    now: () => time,
    async countOpenProofs() {
      time += 4_000
      return []
    },
  })
  expect(await read()).toContain('countersign_clock_seconds 10\n')
})

test('serves only /metrics', async () => {
  const { url } = await start()
  expect((await fetch(`${url}/`)).status).toBe(404)
})
