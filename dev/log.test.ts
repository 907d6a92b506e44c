import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseCheckpoint, parseNote } from '@countersign/log'
import { removePostgres } from '@countersign/testing'
import { parseManifest } from '@countersign/verify'
import { createPublicClient, http } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runMonitor } from '../apps/verifier/src/monitor/runMonitor.ts'
import { runCli } from '../apps/verifier/src/runCli.ts'
import {
  type Dev,
  getFreePorts,
  type Ports,
  readChildren,
  sign,
  signIn,
  startDev,
  summaryOf,
  toArgs,
  urlsOf,
} from './startDev.ts'
import { clearState } from './state.ts'

const STRANGER = '0x00000000000000000000000000000000000c0ffe'
/** A stack needs seconds to start, and more on a busy machine. */
const START_LIMIT_MS = 180_000

describe('npm run dev -- --log', () => {
  let stateDir: string
  let ports: Ports
  let dev: Dev
  const start = async (...args: string[]) => {
    dev = startDev([...toArgs(ports, stateDir), '--no-web', '--log', ...args])
    await dev.line('Ctrl-C stops it')
  }
  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'countersign-dev-'))
    ports = await getFreePorts()
    await start()
  }, START_LIMIT_MS)
  afterAll(async () => {
    await dev?.stop()
    await removePostgres(join(stateDir, 'postgres'))
    await clearState(stateDir)
    await rm(stateDir, { recursive: true, force: true })
  }, START_LIMIT_MS)

  const readLogs = async () =>
    ((await (await fetch(summaryOf(dev, 'Log'))).json()) as { logs: { origin: string; hash: string; size: number }[] })
      .logs
  const verify = (slug: string) => {
    const { api, chain } = urlsOf(ports)
    const deps = { fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
    const trust = ['--manifest', join(stateDir, 'manifest.json'), '--allow-mock', '--rpc', chain]
    return runCli(deps, ['verify', slug, '--api', api, ...trust, '--json'])
  }
  const monitor = async (address: string) => {
    let stdout = ''
    const writeOut = (text: string) => {
      stdout += text
    }
    const { api, chain } = urlsOf(ports)
    const exitCode = await runMonitor(
      { fetch, timeoutMs: 10_000, now: () => new Date(), writeOut, writeError: writeOut, wait: async () => false },
      [address, '--rpc', chain, '--api', api, '--manifest', join(stateDir, 'manifest.json'), '--allow-mock', '--json'],
    )
    const { looks } = JSON.parse(stdout) as { looks: [{ report: { findings: { kind: string }[] } }] }
    return { exitCode, kinds: looks[0].report.findings.map(({ kind }) => kind) }
  }
  const stepsOf = ({ stdout }: { stdout: string }) =>
    (JSON.parse(stdout) as { steps: { id: string; status: string }[] }).steps

  test(
    'each part reports that it is ready; a signature has an entry that two witnesses cosigned, and its receipt proves it',
    async () => {
      const isReady = (line: string) => /^(\w+) +ready \(/.exec(line)?.[1] ?? []
      const parts = ['oidc', 'satellite', 'chain', 'database', 'witnesses', 'enclave', 'coordinator']
      expect(dev.output.flatMap(isReady).toSorted()).toEqual(parts.toSorted())
      expect(summaryOf(dev, 'Database')).toBe('PostgreSQL,')
      const { browser } = await signIn(`${urlsOf(ports).api}/auth/google`)
      const before = await readLogs()
      expect(before).toMatchObject([{ origin: 'countersign.localhost/log-1' }])
      const slug = await sign(ports, browser)
      const [log] = await readLogs()
      // The signature, and the root of the table.
      expect(log?.size).toBe((before[0]?.size ?? 0) + 2)
      const verified = await verify(slug)
      expect([verified.exitCode, verified.stderr]).toEqual([0, ''])
      expect(stepsOf(verified).find(({ id }) => id === 'log')).toMatchObject({ status: 'pass' })
      const manifest = parseManifest(await readFile(join(stateDir, 'manifest.json'), 'utf8'))
      expect(manifest.log).toMatchObject({ witnesses: { length: 3 }, quorum: 2 })
      // A monitor that knows only the manifest asks the witnesses about the spare log, because the service does not show it.
      expect(manifest.witnessUrls).toContain(summaryOf(dev, 'Witnesses'))
      const wallet = await (await browser.request(`${urlsOf(ports).api}/wallet/me`)).json()
      expect(await monitor(wallet.address)).toEqual({ exitCode: 0, kinds: ['log-unused'] })
      // Every reader of a witness sees the same log.
      const hash = createHash('sha256').update('countersign.localhost/log-1').digest('hex')
      expect(log?.hash).toBe(hash)
      const readSeen = async () => (await fetch(`${summaryOf(dev, 'Witnesses')}/${hash}/checkpoint`)).text()
      // Two other witnesses may have been faster: the signature did not wait for this one.
      await expect.poll(async () => parseCheckpoint(parseNote(await readSeen()).text).size).toBe(log?.size)

      // The next start continues the same log, users and witnesses.
      dev.child.kill('SIGINT')
      expect(await dev.ended).toBe(0)
      await start('--verbose')
      const again = await signIn(`${urlsOf(ports).api}/auth/google`)
      await sign(ports, again.browser, 1)
      const after = await readLogs()
      // The entry of the new boot and the entry of the signature, each with a root.
      expect(after).toMatchObject([{ origin: 'countersign.localhost/log-1', size: (log?.size ?? 0) + 4 }])
      expect((await verify(slug)).exitCode).toBe(0)
    },
    START_LIMIT_MS,
  )

  test(
    'a killed witness stops the stack in order with exit code 1; --reset creates a new log with new witnesses, and a new chain with a new key',
    async () => {
      const folder = join(stateDir, 'witnesses', 'w2')
      const before = await readFile(join(folder, 'vkey'), 'utf8')
      const children = await readChildren(dev)
      const witness = children.find(({ env }) => env.WITNESS_DIR === folder)
      if (witness === undefined) throw new Error('no witness')
      const keyFile = children.find(({ env }) => env.PORT === String(ports.coordinator))?.env.PUBLISHER_PRIVATE_KEY_FILE
      const key = await readFile(keyFile ?? '', 'utf8')
      const { chain } = urlsOf(ports)
      const reader = createPublicClient({ transport: http(chain) })
      await fetch(`${chain}/faucet`, { method: 'POST', body: JSON.stringify({ address: STRANGER }) })
      expect(await reader.getBalance({ address: STRANGER })).toBeGreaterThan(0n)

      process.kill(witness.pid, 'SIGKILL')
      expect(await dev.ended).toBe(1)
      const fault = dev.output.lastIndexOf('The witness w2 was killed by SIGKILL. Its last lines:')
      expect(dev.output.slice(fault).join('\n')).toContain('Started the witness')
      expect(dev.output.join('\n')).toMatch(/Stopped the coordinator.*Stopped the enclave/s)
      await expect(fetch(`http://127.0.0.1:${ports.enclave}/health`)).rejects.toThrow()

      await start('--reset')
      expect(await reader.getBalance({ address: STRANGER })).toBe(0n)
      expect(await readFile(keyFile ?? '', 'utf8')).not.toBe(key)
      expect(await readFile(join(folder, 'vkey'), 'utf8')).not.toBe(before)
      const logs = await readLogs()
      expect(logs).toMatchObject([{ origin: 'countersign.localhost/log-1', size: 2 }])
    },
    START_LIMIT_MS,
  )
})
