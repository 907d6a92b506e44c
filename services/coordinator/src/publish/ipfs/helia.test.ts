import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { toCid } from '@countersign/receipt'
import { withBitswap } from '@helia/bitswap'
import { withLibp2pLight } from '@helia/libp2p'
import { identify } from '@libp2p/identify'
import { tcp } from '@libp2p/tcp'
import { LevelDatastore } from 'datastore-level'
import { createHeliaLight } from 'helia'
import { base36 } from 'multiformats/bases/base36'
import { CID } from 'multiformats/cid'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHeliaPinner, type HeliaNode } from './helia.ts'

const bytes = new TextEncoder().encode('{"a":"block"}')
const block = { cid: toCid(bytes), bytes }
const { signal } = new AbortController()

describe('createHeliaPinner', () => {
  let dataDir = ''
  const nodes = new Set<HeliaNode>()
  const start = async (listen?: string[]) => {
    const node = await createHeliaPinner({ dataDir, listen })
    nodes.add(node)
    return node
  }
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'helia-'))
  })
  afterEach(async () => {
    for (const node of nodes) await node.stop()
    nodes.clear()
    await rm(dataDir, { recursive: true })
  })
  const blockPaths = async () => {
    const entries = await readdir(join(dataDir, 'ipfs/blocks'), { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  }
  const pinRecords = async () => {
    const datastore = new LevelDatastore(join(dataDir, 'ipfs/datastore'))
    await datastore.open()
    const keys: string[] = []
    for await (const key of datastore.queryKeys({ prefix: '/pin/' })) keys.push(key.toString())
    await datastore.close()
    return keys
  }

  test('reads a block without a pin, but does not count it as pinned', async () => {
    const first = await start()
    await first.pinner.pin(block, { signal })
    expect(Buffer.from(await first.pinner.readPinned(block.cid, { signal })).equals(bytes)).toBe(true)
    await first.stop()
    // Contains the pins.
    await rm(join(dataDir, 'ipfs/datastore'), { recursive: true })
    const { pinner } = await start()
    expect(Buffer.from(await pinner.read(block.cid, { signal })).equals(bytes)).toBe(true)
    await expect(pinner.readPinned(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_not_found' })
  })

  test('stores a block once and returns it unchanged', async () => {
    const { pinner, getBlock, peer } = await start()
    await pinner.pin(block, { signal })
    await pinner.pin(block, { signal })
    expect(Buffer.from(await pinner.read(block.cid, { signal })).equals(bytes)).toBe(true)
    expect(Buffer.from((await getBlock(block.cid)) ?? []).equals(bytes)).toBe(true)
    expect(await blockPaths()).toHaveLength(1)
    expect(peer.addresses).toEqual([expect.stringMatching(/^\/ip4\/127\.0\.0\.1\/tcp\/\d+\/p2p\//)])
    expect(peer.addresses[0]?.endsWith(peer.id)).toBe(true)
    expect(pinner.name).toBe('helia')
    expect((await stat(join(dataDir, 'ipfs'))).mode & 0o777).toBe(0o700)
  })

  test('stores many blocks at once, some of them twice', async () => {
    const { pinner } = await start()
    const blocks = Array.from({ length: 60 }, (_, index) => {
      const content = new TextEncoder().encode(`{"block":${index % 30}}`)
      return { cid: toCid(content), bytes: content }
    })
    await Promise.all(blocks.map((one) => pinner.pin(one, { signal })))
    for (const one of blocks) {
      expect(Buffer.from(await pinner.read(one.cid, { signal })).equals(one.bytes)).toBe(true)
    }
    expect(await blockPaths()).toHaveLength(30)
    expect(await readdir(join(dataDir, 'ipfs/incoming'))).toEqual([])
  })

  test('keeps identity, blocks and pins across a restart', async () => {
    const first = await start()
    await first.pinner.pin(block, { signal })
    await first.stop()
    expect(await pinRecords()).toEqual([`/pin/${CID.parse(block.cid).toString(base36)}`])
    const second = await start()
    expect(second.peer.id).toBe(first.peer.id)
    expect(Buffer.from((await second.getBlock(block.cid)) ?? []).equals(bytes)).toBe(true)
    await second.pinner.pin(block, { signal })
    await second.stop()
    expect(await pinRecords()).toHaveLength(1)
  })

  test('reports an unknown block as not found', async () => {
    const { pinner, getBlock } = await start()
    await expect(pinner.read(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_not_found' })
    expect(await getBlock(block.cid)).toBeUndefined()
  })

  test.each(['', '..', '../../../etc/passwd', block.cid.toUpperCase(), `${block.cid}/x`])(
    'rejects the CID %j',
    async (cid) => {
      const { pinner, getBlock } = await start()
      await expect(pinner.read(cid, { signal })).rejects.toMatchObject({ code: 'pin_mismatch' })
      expect(await getBlock(cid)).toBeUndefined()
    },
  )

  test('rejects bytes under another CID', async () => {
    const { pinner } = await start()
    const wrong = { cid: toCid(Uint8Array.of(1)), bytes }
    await expect(pinner.pin(wrong, { signal })).rejects.toMatchObject({ code: 'pin_mismatch' })
    expect(await blockPaths()).toEqual([])
  })

  test.each([
    ['altered', '{"a":"clock"}'],
    ['cut', '{"a":'],
    ['empty', ''],
  ])('does not return a file that is %s, and pinning repairs it', async (_name, content) => {
    const { pinner, getBlock } = await start()
    await pinner.pin(block, { signal })
    const [path] = await blockPaths()
    await writeFile(path as string, content)
    await expect(pinner.read(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_mismatch' })
    expect(await getBlock(block.cid)).toBeUndefined()
    await pinner.pin(block, { signal })
    expect(Buffer.from(await pinner.read(block.cid, { signal })).equals(bytes)).toBe(true)
  })

  test('reports a failing disk as unavailable and leaves no partial file', async () => {
    const { pinner } = await start()
    await rm(join(dataDir, 'ipfs/blocks'), { recursive: true })
    await writeFile(join(dataDir, 'ipfs/blocks'), 'not a folder')
    await expect(pinner.pin(block, { signal })).rejects.toMatchObject({ code: 'pin_unavailable' })
    await expect(pinner.read(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_unavailable' })
    expect(await readdir(join(dataDir, 'ipfs/incoming'))).toEqual([])
  })

  test('fails for an unwritable folder without leaving the node running', async () => {
    await (await start()).stop()
    await rm(join(dataDir, 'ipfs/blocks'), { recursive: true })
    await writeFile(join(dataDir, 'ipfs/blocks'), 'not a folder')
    await expect(createHeliaPinner({ dataDir })).rejects.toThrow()
    await rm(join(dataDir, 'ipfs/blocks'))
    await start()
  })

  test('deletes files that a crash left incomplete', async () => {
    await (await start()).stop()
    await writeFile(join(dataDir, 'ipfs/incoming/left'), 'half')
    await start()
    expect(await readdir(join(dataDir, 'ipfs/incoming'))).toEqual([])
  })

  test('an aborted call ends at once', async () => {
    const { pinner } = await start()
    const aborted = { signal: AbortSignal.abort() }
    await expect(pinner.pin(block, aborted)).rejects.toMatchObject({ code: 'pin_unavailable' })
    await expect(pinner.read(block.cid, aborted)).rejects.toMatchObject({ code: 'pin_unavailable' })
    expect(await blockPaths()).toEqual([])
    const controller = new AbortController()
    const pinning = pinner.pin(block, { signal: controller.signal })
    controller.abort()
    await expect(pinning).rejects.toMatchObject({ code: 'pin_unavailable' })
  })

  test('writes nothing after stop, not even for an aborted call', async () => {
    const { pinner, stop } = await start()
    const controller = new AbortController()
    const pinning = pinner.pin(block, { signal: controller.signal })
    controller.abort()
    await expect(pinning).rejects.toMatchObject({ code: 'pin_unavailable' })
    await stop()
    expect(await readdir(join(dataDir, 'ipfs/incoming'))).toEqual([])
    expect(await blockPaths()).toHaveLength(1)
  })

  test('is unavailable after stop, and stop is idempotent', async () => {
    const { pinner, getBlock, stop } = await start()
    await Promise.all([stop(), pinner.stop()])
    await expect(pinner.pin(block, { signal })).rejects.toMatchObject({ code: 'pin_unavailable' })
    await expect(pinner.read(block.cid, { signal })).rejects.toMatchObject({ code: 'pin_unavailable' })
    await expect(getBlock(block.cid)).rejects.toMatchObject({ code: 'pin_unavailable' })
  })

  test('rejects a second node on the same folder', async () => {
    const { pinner } = await start()
    await writeFile(join(dataDir, 'ipfs/incoming/under-way'), 'of the first')
    await expect(createHeliaPinner({ dataDir })).rejects.toThrow()
    expect(await readdir(join(dataDir, 'ipfs/incoming'))).toEqual(['under-way'])
    await pinner.pin(block, { signal })
  })

  test('fails for a used port and releases the folder', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    await expect(createHeliaPinner({ dataDir, listen: [`/ip4/127.0.0.1/tcp/${port}`] })).rejects.toThrow()
    server.close()
    await once(server, 'close')
    await start([`/ip4/127.0.0.1/tcp/${port}`])
  })

  test('a foreign node gets blocks by bitswap, but cannot add any', async () => {
    const { pinner, peer, getBlock } = await start()
    const large = new Uint8Array(262_144).fill(7)
    await pinner.pin(block, { signal })
    await pinner.pin({ cid: toCid(large), bytes: large }, { signal })
    const stranger = await startStranger()
    try {
      await stranger.connect(peer.addresses[0] as string)
      expect((await stranger.get(block.cid)).equals(bytes)).toBe(true)
      expect((await stranger.get(toCid(large))).equals(large)).toBe(true)

      const foreign = new TextEncoder().encode('{"a":"foreign block"}')
      await stranger.put(toCid(foreign), foreign)
      await expect(pinner.read(toCid(foreign), { signal })).rejects.toMatchObject({ code: 'pin_not_found' })
      expect(await getBlock(toCid(foreign))).toBeUndefined()
    } finally {
      await stranger.stop()
    }
  })

  test('does not dial the address of a peer that asked and disconnected', async () => {
    const { pinner, peer } = await start()
    const large = Array.from({ length: 8 }, (_, index) => new Uint8Array(262_144).fill(index))
    for (const content of large) await pinner.pin({ cid: toCid(content), bytes: content }, { signal })
    let calls = 0
    const elsewhere = createServer((socket) => {
      calls += 1
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(elsewhere, 'listening')
    const { port } = elsewhere.address() as { port: number }
    const rude = await startStranger({ announce: [`/ip4/127.0.0.1/tcp/${port}`] })
    const patient = await startStranger()
    try {
      await rude.connect(peer.addresses[0] as string)
      await rude.askAndHangUp(large.map(toCid))
      // When another peer has all blocks, the first would have been dialled.
      await patient.connect(peer.addresses[0] as string)
      for (const content of large) expect((await patient.get(toCid(content))).equals(content)).toBe(true)
      expect(calls).toBe(0)
    } finally {
      await rude.stop()
      await patient.stop()
      elsewhere.close()
      await once(elsewhere, 'close')
    }
  })

  test('SIGKILL after pin() loses nothing', async () => {
    const child = run(`
      const { pinner } = await createHeliaPinner({ dataDir })
      const { signal } = new AbortController()
      for (let index = 0; ; index += 8) {
        await Promise.all(Array.from({ length: 8 }, async (_, offset) => {
          const bytes = new TextEncoder().encode(JSON.stringify({ block: index + offset, filling: 'x'.repeat(30_000) }))
          await pinner.pin({ cid: toCid(bytes), bytes }, { signal })
          process.stdout.write(toCid(bytes) + '\\n')
        }))
      }`)
    const exited = once(child, 'exit')
    const pinned: string[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      pinned.push(line)
      if (pinned.length === 50) child.kill('SIGKILL')
    }
    expect(await exited).toEqual([null, 'SIGKILL'])
    expect(pinned.length).toBeGreaterThanOrEqual(50)
    const { pinner } = await start()
    for (const cid of pinned) expect(toCid(await pinner.read(cid, { signal }))).toBe(cid)
    await pinner.stop()
    expect((await pinRecords()).length).toBeGreaterThanOrEqual(pinned.length)
  })

  test('opens no connection, sends no DNS query, and lets the process exit', async () => {
    const child = run(`
      const { default: net } = await import('node:net')
      const { default: dgram } = await import('node:dgram')
      const { default: dns } = await import('node:dns')
      const { syncBuiltinESMExports } = await import('node:module')
      const calls = []
      const watch = (object, name) => {
        const original = object[name]
        object[name] = function (...all) {
          // Listening on an address looks it up locally.
          if (name !== 'lookup' || net.isIP(all[0]) === 0) calls.push(name)
          return original.apply(this, all)
        }
      }
      watch(net.Socket.prototype, 'connect')
      watch(dgram, 'createSocket')
      for (const name of ['lookup', 'resolve', 'resolve4', 'resolve6', 'resolveTxt']) {
        watch(dns, name)
        watch(dns.promises, name)
      }
      watch(globalThis, 'fetch')
      syncBuiltinESMExports()
      const { pinner, stop } = await createHeliaPinner({ dataDir })
      const bytes = Uint8Array.of(1)
      const { signal } = new AbortController()
      await pinner.pin({ cid: toCid(bytes), bytes }, { signal })
      await pinner.read(toCid(bytes), { signal })
      await stop()
      process.on('exit', () => process.stdout.write(JSON.stringify(calls)))`)
    const exited = once(child, 'exit')
    const output: string[] = []
    for await (const line of createInterface({ input: child.stdout })) output.push(line)
    expect(await exited).toEqual([0, null])
    expect(output).toEqual(['[]'])
  })

  /** Runs code with `createHeliaPinner`, `toCid` and `dataDir` in another process. */
  function run(script: string) {
    const preamble = `
      import { toCid } from '@countersign/receipt'
      import { createHeliaPinner } from ${JSON.stringify(new URL('./helia.ts', import.meta.url).href)}
      const dataDir = ${JSON.stringify(dataDir)}\n`
    return spawn(process.execPath, ['-C', 'source', '--input-type=module', '-e', preamble + script], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  }
})

/** A foreign node that uses only the libraries. */
async function startStranger({ announce = [] }: { announce?: string[] } = {}) {
  const helia = withBitswap(
    withLibp2pLight(createHeliaLight(), {
      addresses: { listen: ['/ip4/127.0.0.1/tcp/0'], announce },
      transports: [tcp()],
      connectionEncrypters: [noise()],
      streamMuxers: [yamux()],
      services: { identify: identify() },
    }),
  )
  await helia.start()
  const { libp2p, blockstore } = helia
  return {
    /** Resolves when both know each other's protocols and addresses. */
    async connect(address: string) {
      const identified = new Promise((resolve) => libp2p.addEventListener('peer:identify', resolve, { once: true }))
      // Empties its own address, because we do not depend on the address parser.
      const empty = libp2p.getMultiaddrs()[0]?.decapsulate('/ip4')
      await libp2p.dial(empty?.encapsulate(address) ?? [])
      await identified
    },
    async get(cid: string): Promise<Buffer> {
      const chunks: Uint8Array[] = []
      for await (const chunk of blockstore.get(CID.parse(cid), { signal })) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
    async put(cid: string, content: Uint8Array) {
      await blockstore.put(CID.parse(cid), content)
    },
    /** A want list of bitswap 1.2.0 by hand: `Message { wantlist: { entries: [{ block, priority }] } }`, in protobuf. */
    async askAndHangUp(cids: string[]) {
      const entries = cids.map((cid) => Buffer.concat([toField(1, CID.parse(cid).bytes), Buffer.of(0x10, 1)]))
      const wantlist = Buffer.concat(entries.map((entry) => toField(1, entry)))
      const message = toField(1, wantlist)
      const [connection] = libp2p.getConnections()
      const stream = await connection?.newStream('/ipfs/bitswap/1.2.0')
      stream?.send(Buffer.concat([toLength(message.length), message]))
      await stream?.close()
      await connection?.close()
    },
    async stop() {
      await helia.stop()
    },
  }
}

function toField(number: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of((number << 3) | 2), toLength(content.length), content])
}

/** Below 16,384. */
function toLength(length: number): Buffer {
  return length < 0x80 ? Buffer.of(length) : Buffer.of((length & 0x7f) | 0x80, length >> 7)
}
