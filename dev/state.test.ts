import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyManifest, type Manifest, parseManifest } from '@countersign/verify'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { onSync } from '../packages/service/test/onSync.ts'
import { lockState } from './lockState.ts'
import { type Options, parseOptions } from './options.ts'
import { startStack } from './stack.ts'
import { clearState, loadState, writeManifest } from './state.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'countersign-dev-'))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

describe('the state of the local stack', () => {
  test('creates a secret that only its owner can read, and later starts read it', async () => {
    const state = await loadState(join(dir, 'state'))
    expect(state.oidcClientSecret).toMatch(/^[0-9a-f]{64}$/)
    expect((await stat(join(dir, 'state', 'dev.json'))).mode & 0o777).toBe(0o600)
    expect(await loadState(join(dir, 'state'))).toEqual(state)
  })

  test('a start that is interrupted while it writes the secret leaves no damaged file', async () => {
    await onSync(() => {
      throw new Error('power failure')
    })
    await expect(loadState(dir)).rejects.toThrow('power failure')
    expect(await readdir(dir)).toEqual([])
  })

  test.each(['', '{', 'null', '[]', '{}', '{"oidcClientSecret":"short"}'])('reports %j as damaged', async (text) => {
    await writeFile(join(dir, 'dev.json'), text)
    await expect(loadState(dir)).rejects.toThrow(/dev\.json is damaged/)
  })

  async function failStart(args: readonly string[]): Promise<string[]> {
    const faults: string[] = []
    const parsed = parseOptions([...args, '--state', dir]) as { options: Options }
    const ports = { web: 0, demo: 0, coordinator: 0, enclave: 0, oidc: 0, chain: 0 }
    const stack = startStack({
      options: { ...parsed.options, ports },
      voice: { say: () => {}, detail: () => {}, log: () => {} },
      onFault: (text) => void faults.push(text),
    })
    expect(await stack.ready).toBeUndefined()
    await stack.stop()
    return faults
  }

  test('--reset fails while the stack runs, and deletes nothing', async () => {
    const unlock = await lockState(dir)
    for (const part of ['enclave', 'chain']) await mkdir(join(dir, part))
    await writeFile(join(dir, 'enclave', 'root-secret'), 'the secret')
    const before = (await readdir(dir, { recursive: true })).toSorted()
    expect(await failStart(['--reset'])).toEqual([`the state folder is in use by process ${process.pid}`])
    expect((await readdir(dir, { recursive: true })).toSorted()).toEqual(before)
    await unlock()
    await (await lockState(dir))()
  })

  test('rejects state with the embedded database of earlier versions, keeps it, and names --reset', async () => {
    await mkdir(join(dir, 'database'))
    await writeFile(join(dir, 'database', 'PG_VERSION'), '17')
    expect(await failStart([])).toEqual([expect.stringContaining('npm run dev -- --reset')])
    expect(await readdir(join(dir, 'database'))).toEqual(['PG_VERSION'])
  })

  test('writes a manifest that the verifier accepts', async () => {
    const { path } = await writeManifest(dir, { ...emptyManifest, entropyKeys: ['ab'.repeat(32)] })
    expect(path).toBe(join(dir, 'manifest.json'))
    expect(parseManifest(await readFile(path, 'utf8')).entropyKeys).toEqual(['ab'.repeat(32)])
  })

  describe('the manifest of a later start', () => {
    const hash = (digits: string) => digits.repeat(32)
    const log = { witnesses: [hash('a1')], quorum: 1 }
    const start = (configHash: string, change: Partial<Manifest> = {}) =>
      writeManifest(dir, { ...emptyManifest, enclave: { measurements: [], configHashes: [configHash] }, ...change })

    test('keeps the configurations of earlier manifests, each once', async () => {
      await start(hash('c1'))
      await start(hash('c2'))
      const { path, manifest } = await start(hash('c1'))
      expect(manifest.enclave.configHashes).toEqual([hash('c1'), hash('c2')])
      expect(parseManifest(await readFile(path, 'utf8'))).toEqual(manifest)
    })

    test('requires no witnesses if an earlier one had no log, and still names their addresses', async () => {
      await start(hash('c1'))
      const witnessUrls = ['http://127.0.0.1:8095']
      const { manifest } = await start(hash('c2'), { log, witnessUrls })
      expect([manifest.log, manifest.witnessUrls]).toEqual([undefined, witnessUrls])
      expect((await start(hash('c2'), { log, witnessUrls })).manifest.log).toBeUndefined()
    })

    test('requires the witnesses that the earlier ones required', async () => {
      await start(hash('c1'), { log })
      expect((await start(hash('c1'), { log })).manifest.log).toEqual(log)
    })

    test('keeps the log contract of an earlier one, whose proofs still need it', async () => {
      const logContracts = [
        { chainId: 31337, address: `0x${'c0'.repeat(20)}`, fromBlock: 5, logs: [{ id: `0x${hash('d1')}` }] },
      ]
      await start(hash('c1'), { logContracts })
      const { path, manifest } = await start(hash('c2'))
      expect(manifest.logContracts).toEqual(logContracts)
      expect(parseManifest(await readFile(path, 'utf8'))).toEqual(manifest)
    })

    test('replaces a damaged one', async () => {
      await writeFile(join(dir, 'manifest.json'), '{')
      expect((await start(hash('c1'))).manifest.enclave.configHashes).toEqual([hash('c1')])
    })
  })

  test("clearing leaves other tools' files", async () => {
    await loadState(dir)
    await writeManifest(dir, emptyManifest)
    for (const name of ['enclave', 'database', 'chain', 'ipfs', 'web', 'witnesses', 'elsewhere', 'setup'])
      await mkdir(join(dir, name))
    // As for root: the database's files are where another account can reach them.
    await symlink(join(dir, 'elsewhere'), join(dir, 'postgres'))
    await writeFile(join(dir, 'enclave', 'root-secret'), '')
    await clearState(dir)
    expect(await readdir(dir)).toEqual(['setup'])
    await clearState(join(dir, 'nothing-there'))
  })
})
