import { randomInt } from 'node:crypto'
import { createConsistencyProof, createLeafReader } from '@countersign/log'
import {
  createEnclaveSettings,
  fromHex,
  fromPrefixedHex,
  type Hex,
  hashLeaf,
  hashTreeLeaf,
  type Signed,
  toHex,
  toLogId,
} from '@countersign/protocol'
import { fromCidHash, parseAnchorBlock } from '@countersign/receipt'
import type { FakeChain } from '@countersign/testing'
import { encodeAdvance } from '../../src/publish/chain/contract.ts'
import type { SigningBatch } from '../../src/store/batches.ts'
import type { Signing } from '../../src/store/signings.ts'
import type { Wallet } from '../../src/store/wallets.ts'
import type { Clock } from '../../src/system.ts'
import type { TestLog } from '../store/logs.ts'
import {
  createTestAuthorization,
  createTestBatch,
  createTestRelease,
  createTestSigningV2,
  randomHex,
  type TestStore,
} from '../store/store.ts'

/** The account that registers the logs. It never sends anything. */
export const OWNER: Hex = `0x${'0e'.repeat(20)}`

export const toIdOf = ({ hash }: Pick<TestLog, 'hash'>): Hex => toLogId(OWNER, fromHex(hash))

/** With another nonce, and so with another hash in its event. */
function toUnique(signed: Signed, digest: Hex | undefined): Signed {
  if (signed.kind !== 'authorization') return signed
  const { subject } = signed
  return { ...signed, subject: { ...subject, nonce: randomInt(2 ** 40), digest: digest ?? subject.digest } }
}

type LoggedSigning = Signing & { version: 2; logIndex: number }

/** Signs in logs as the sign path does. */
export function createLogSigner({ logStore }: Pick<TestStore, 'logStore'>, clock: Clock) {
  const storedSizes = new Map<string, number>()
  let sequence = 0

  /** Stores the new entries of a log with a cosigned checkpoint, as signing does. Returns the note. */
  async function cosign(log: TestLog): Promise<string> {
    const size = log.entries.length
    const from = storedSizes.get(log.origin) ?? 0
    if (from < size) await logStore.appendLog(log.toAppend({ from, now: clock.now() }))
    storedSizes.set(log.origin, size)
    const note = log.toNote(size, 2)
    await logStore.insertNote({ hash: log.hash, size, note, now: clock.now() })
    return note
  }

  /** Adds one signature for each digest to a log, each followed by `others` entries. Returns the rows to store. */
  async function sign(parameters: {
    wallet: Wallet
    log: TestLog
    /** Undefined: a random one. */
    digests: readonly (Hex | undefined)[]
    others: number
  }): Promise<{ batch: SigningBatch; signings: LoggedSigning[] }> {
    const { wallet, log, digests, others } = parameters
    const coordinatorKey = randomHex(32)
    const signings = digests.map((digest) => {
      const signing = createTestSigningV2(wallet, toUnique(createTestAuthorization(), digest))
      const statement = { ...signing.statement, coordinatorKey }
      const { keyId, signedAt } = statement
      const logIndex = log.entries.length
      log.add({ kind: 'signature', keyId, leaf: toHex(hashLeaf(statement)), timeMs: Date.parse(signedAt) })
      log.fill(others)
      return { ...signing, statement, logIndex }
    })
    const note = await cosign(log)
    sequence += 1
    const batch = createTestBatch({
      sequence,
      settings: createEnclaveSettings([{ kind: 'unsigned' }], [], {
        origins: [log.origin],
        witnesses: [randomHex(32)],
        quorum: 1,
      }),
      logKey: log.key,
      log: { origin: log.origin, note },
      release: createTestRelease(coordinatorKey),
    })
    return { batch, signings }
  }

  return { cosign, sign }
}

/** Returns the blocks of an anchor if all are pinned. */
export function readPinned(blocks: ReadonlyMap<string, Uint8Array>, hash: Hex) {
  const bytes = blocks.get(fromCidHash(fromPrefixedHex(hash)))
  if (bytes === undefined) return undefined
  const named = parseAnchorBlock(bytes).parts
  const parts = named.flatMap((cid) => blocks.get(cid) ?? [])
  return parts.length === named.length ? { bytes, parts } : undefined
}

/** Publishes a checkpoint from another account, as its publisher for a moment. Default: the log's tree. Returns the transaction's hash. */
export async function advanceElsewhere(
  node: FakeChain,
  parameters: {
    log: TestLog
    size: number
    root?: Uint8Array | undefined
    publisher: Hex
    stranger: { account: Hex; privateKey: Hex }
  },
): Promise<Hex> {
  const { log, size, root = log.toRoot(size), publisher, stranger } = parameters
  const id = toIdOf(log)
  const oldSize = node.checkpoints().findLast((event) => event.id === id)?.size ?? 0
  const readNode = createLeafReader(log.entries.map(hashTreeLeaf))
  const consistency = oldSize === 0 ? [] : createConsistencyProof(readNode, { oldSize, size })
  const data = encodeAdvance({ id, size, root, block: `0x${randomHex(32)}`, consistency })
  node.registerLog(id, stranger.account)
  const hash = await node.sendFromElsewhere({ privateKey: stranger.privateKey, to: node.logWitness, data })
  node.registerLog(id, publisher)
  return hash
}
