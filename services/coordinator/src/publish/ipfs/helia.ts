import { join } from 'node:path'
import { toCid } from '@countersign/receipt'
import { createFolder } from '@countersign/service'
import { createUnsafe } from 'multiformats/block'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { openBlockFiles } from './blockFiles.ts'
import { assertBlock, assertCid, PinError, untilAborted } from './pinError.ts'
import type { Block, Pinner } from './pinner.ts'

type CreateHeliaPinnerParameters = {
  /** Its folder `ipfs` stores blocks, pins and the node's identity. */
  dataDir: string
  /** TCP multiaddrs. Default: any free port on loopback. */
  listen?: readonly string[] | undefined
}

export type HeliaNode = {
  pinner: Pinner
  /** Reads a stored block and checks its hash. Never uses the network. */
  getBlock(cid: string): Promise<Uint8Array<ArrayBuffer> | undefined>
  /** How other nodes reach this one. Restarts keep the id. */
  peer: { id: string; addresses: string[] }
  stop(): Promise<void>
}

/**
 * An IPFS node in this process. It only serves its blocks by bitswap to peers that connect. It doesn't dial, look up peers or announce
 * blocks, and never deletes a block.
 */
export async function createHeliaPinner(parameters: CreateHeliaPinnerParameters): Promise<HeliaNode> {
  const { dataDir, listen = ['/ip4/127.0.0.1/tcp/0'] } = parameters
  const folder = join(dataDir, 'ipfs')
  // Contains the identity's key.
  await createFolder(folder)
  const blocks = join(folder, 'blocks')
  const { helia, stop: stopNode } = await startNode({ blocks, datastore: join(folder, 'datastore'), listen })
  // After the datastore, whose lock protects the folder, because this deletes files.
  const files = await openBlockFiles({ blocks, incoming: join(folder, 'incoming') }).catch(async (error: unknown) => {
    await stopNode()
    throw error
  })
  let stopped: Promise<void> | undefined

  /** Finishes even if the caller aborts: with the caller's signal, helia causes an unhandled rejection. */
  async function pin(block: Block): Promise<void> {
    assertBlock(block)
    const cid = CID.parse(block.cid)
    // A pinned file was synced before. A file without a pin may come from a process that died in between.
    const held = (await helia.pins.isPinned(cid)) ? await files.read(block.cid) : undefined
    if (held !== undefined && toCid(held) === block.cid) return
    await files.write(block.cid, block.bytes)
    await addPin(cid, block.bytes)
  }

  /** Marks the block as pinned, in case someone runs garbage collection in this folder. */
  async function addPin(cid: CID, bytes: Uint8Array): Promise<void> {
    // Yields only this block. helia's own walker would read the file.
    const walker = () => ({
      async *walk() {
        yield { block: createUnsafe({ cid, bytes, codec: raw }) as never, depth: 0, path: [cid] }
      },
    })
    try {
      for await (const _ of helia.pins.add(cid, { depth: 0, walker }));
    } catch (error) {
      if (!(error instanceof Error && error.name === 'AlreadyPinnedError')) throw error
    }
  }

  async function read(cid: string): Promise<Uint8Array<ArrayBuffer>> {
    assertCid(cid)
    const bytes = await files.read(cid)
    if (bytes === undefined) throw new PinError('pin_not_found')
    if (toCid(bytes) !== cid) throw new PinError('pin_mismatch', { details: 'other bytes' })
    return bytes
  }

  async function readPinned(cid: string): Promise<Uint8Array<ArrayBuffer>> {
    assertCid(cid)
    if (!(await helia.pins.isPinned(CID.parse(cid)))) throw new PinError('pin_not_found', { details: 'no pin' })
    return read(cid)
  }

  /** Running tasks, including those whose callers aborted. */
  const tasks = new Set<Promise<unknown>>()

  async function whileRunning<Result>(task: () => Promise<Result>): Promise<Result> {
    if (stopped) throw new PinError('pin_unavailable', { details: 'stopped' })
    const running = task()
    tasks.add(running)
    try {
      return await running
    } catch (cause) {
      if (cause instanceof PinError) throw cause
      throw new PinError('pin_unavailable', { details: 'the block store failed', cause })
    } finally {
      tasks.delete(running)
    }
  }

  /** After it resolves, this process writes nothing to the folder. */
  const stop = () => {
    stopped ??= Promise.allSettled(tasks).then(stopNode)
    return stopped
  }
  return {
    pinner: {
      name: 'helia',
      pin: (block, { signal }) => untilAborted(signal, () => whileRunning(() => pin(block))),
      read: (cid, { signal }) => untilAborted(signal, () => whileRunning(() => read(cid))),
      readPinned: (cid, { signal }) => untilAborted(signal, () => whileRunning(() => readPinned(cid))),
      stop,
    },
    async getBlock(cid) {
      try {
        return await whileRunning(() => read(cid))
      } catch (error) {
        if (error instanceof PinError && error.code !== 'pin_unavailable') return undefined
        throw error
      }
    },
    peer: {
      id: helia.libp2p.peerId.toString(),
      addresses: helia.libp2p.getMultiaddrs().map((address) => address.toString()),
    },
    stop,
  }
}

type StartNodeParameters = { blocks: string; datastore: string; listen: readonly string[] }

async function startNode({ blocks, datastore: datastorePath, listen }: StartNodeParameters) {
  // Loaded on demand: these modules take a second and 100 MB.
  const [{ createHeliaLight }, { withBitswap }, { withLibp2pLight }, { tcp }, { noise }, { yamux }, { identify }] =
    await Promise.all([
      import('helia'),
      import('@helia/bitswap'),
      import('@helia/libp2p'),
      import('@libp2p/tcp'),
      import('@chainsafe/libp2p-noise'),
      import('@chainsafe/libp2p-yamux'),
      import('@libp2p/identify'),
    ])
  const [{ FsBlockstore }, { LevelDatastore }] = await Promise.all([import('blockstore-fs'), import('datastore-level')])

  const blockstore = new FsBlockstore(blocks)
  const datastore = new LevelDatastore(datastorePath)
  await datastore.open()
  // The light variants have no HTTP gateways, routing, bootstrap, discovery, relays or certificates.
  const helia = withBitswap(
    withLibp2pLight(createHeliaLight({ blockstore, datastore }), {
      addresses: { listen: [...listen] },
      transports: [tcp()],
      connectionEncrypters: [noise()],
      streamMuxers: [yamux()],
      services: { identify: identify() },
      // Answers use the peers' connections. A peer could make this node dial any address.
      connectionGater: { denyDialPeer: () => true, denyDialMultiaddr: () => true },
    }),
  )
  // libp2p leaves a harmless one-second timer for changed addresses.
  const stop = async () => {
    try {
      await helia.stop()
    } finally {
      await datastore.close()
    }
  }
  try {
    await helia.start()
  } catch (error) {
    await stop()
    throw error
  }
  return { helia, stop }
}
