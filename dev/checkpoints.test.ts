import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProofPayload } from '@countersign/protocol'
import { removePostgres } from '@countersign/testing'
import { readEvents } from '@countersign/testing/stack'
import { parseManifest } from '@countersign/verify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { type Dev, getFreePorts, type Ports, sign, signIn, startDev, summaryOf, toArgs, urlsOf } from './startDev.ts'
import { clearState } from './state.ts'

/** A stack needs seconds to start, and more on a busy machine. */
const START_LIMIT_MS = 180_000

describe('npm run dev -- --log --checkpoints', () => {
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
    await start('--checkpoints')
  }, START_LIMIT_MS)
  afterAll(async () => {
    await dev?.stop()
    await removePostgres(join(stateDir, 'postgres'))
    await clearState(stateDir)
    await rm(stateDir, { recursive: true, force: true })
  }, START_LIMIT_MS)

  async function signOne(nonce: number): Promise<ProofPayload> {
    const { api } = urlsOf(ports)
    const { browser } = await signIn(`${api}/auth/google`)
    const slug = await sign(ports, browser, nonce)
    return (await (await fetch(`${api}/proof/${slug}`)).json()) as ProofPayload
  }
  async function verify(target: string, ...sources: string[]) {
    const deps = { fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
    const trust = ['--manifest', join(stateDir, 'manifest.json'), '--allow-mock', '--rpc', urlsOf(ports).chain]
    const { exitCode, stdout } = await runCli(deps, ['verify', target, ...trust, ...sources, '--json'])
    const { steps = [] } = JSON.parse(stdout) as { steps?: { id: string; status: string }[] }
    return { exitCode, event: steps.find(({ id }) => id === 'event')?.status }
  }
  const readPublished = async () => readEvents({ url: urlsOf(ports).chain, contract: summaryOf(dev, 'Contract') })

  test(
    'a signature is complete with a checkpoint and verifies, with the service and without it',
    async () => {
      const address = summaryOf(dev, 'Checkpoints').toLowerCase()
      const { slug, txHash, anchor } = await signOne(0)
      expect(anchor).toMatchObject({ chainId: 31337, contract: address })
      expect(await readPublished()).toEqual([])
      const manifest = parseManifest(await readFile(join(stateDir, 'manifest.json'), 'utf8'))
      const logs = [{ id: anchor?.id }, { id: expect.any(String) }]
      expect(manifest.logContracts).toEqual([{ chainId: 31337, address, fromBlock: expect.any(Number), logs }])
      const { api } = urlsOf(ports)
      expect(await verify(slug, '--api', api)).toEqual({ exitCode: 0, event: 'pass' })
      expect(await verify(txHash, '--ipfs', api)).toEqual({ exitCode: 0, event: 'pass' })
    },
    START_LIMIT_MS,
  )

  test(
    'a start without --checkpoints publishes events again, and earlier proofs still verify',
    async () => {
      const { slug } = await signOne(1)
      dev.child.kill('SIGINT')
      expect(await dev.ended).toBe(0)
      await start()
      const later = await signOne(2)
      expect(later.anchor).toBeUndefined()
      expect(await readPublished()).toMatchObject([{ txHash: later.txHash }])
      const { api } = urlsOf(ports)
      for (const each of [slug, later.slug]) {
        expect(await verify(each, '--api', api)).toEqual({ exitCode: 0, event: 'pass' })
      }
    },
    START_LIMIT_MS,
  )
})
