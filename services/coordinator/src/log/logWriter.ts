import { emptyFrontier, type LogEntry, type NoteKey, toVkey } from '@countersign/log'
import { type AppendedEntries, equalBytes } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import { createGatherer, type Progress } from '../store/gather.ts'
import type { Claim, LogStore } from '../store/logs.ts'
import type { Clock } from '../system.ts'
import { LogFault, mergeAppended, type ReadEntries, readAppended } from './appended.ts'
import { createRecentTree, type RecentTree, readRoot } from './recentTree.ts'

export type LogWriterDeps = {
  store: Pick<LogStore, 'appendLog' | 'findLogHead' | 'readTiles'>
  clock: Clock
  /** The log's key. */
  key: NoteKey
  /** The log's id in the store. */
  hash: string
  onWritten(written: { size: number; kinds: readonly LogEntry['kind'][] }): void
}

type WriteContext = {
  bootId: string
  claims: readonly Claim[]
  /** Returns what this boot has appended, starting at `from` or at the first entry that the enclave still has. */
  repeat(from: number): Promise<AppendedEntries>
}

/** Stores a log's entries as its enclave appends them. */
export type LogWriter = {
  /** Returns the lost claims. Throws `LogFault` if the log is unusable, and `log_unavailable` if it may work later. */
  write(appended: AppendedEntries, context: WriteContext): Promise<readonly string[]>
  /** The stored size, if known. */
  readonly size: number | undefined
  /** The cached tree of a stored size. */
  findRecent(size: number): RecentTree | undefined
  /** The newest checkpoint, if this coordinator stored it. A newer one may be pending. */
  readonly newest: { size: number; note: string } | undefined
}

type Write = { appended: AppendedEntries; context: WriteContext }

/** Expiry of claims whose owner doesn't continue (decision 23). */
export const CLAIM_MS = 90_000
/** Each conflicting write by another coordinator and each gap before the entries takes another turn. */
const MAX_TURNS = 4
/** The most responses of an enclave that are written together. */
const MAX_TOGETHER = 32

/** Writes one call at a time, because each starts where the previous one ends. Calls that arrive in the meantime are written together. */
export function createLogWriter({ store, clock, key, hash, onWritten }: LogWriterDeps): LogWriter {
  /** Exactly the stored tree. Undefined if that is unknown. */
  let tree: RecentTree | undefined
  /** The last stored checkpoint and its tree, which may already include pending entries. Stored entries are never removed. */
  let newest: { size: number; note: string; tree: RecentTree } | undefined

  async function load(): Promise<RecentTree> {
    const written = (await store.findLogHead(hash))?.written
    return createRecentTree(written ?? emptyFrontier)
  }

  async function write(appended: AppendedEntries, { bootId, claims, repeat }: WriteContext) {
    let read = readAppended(appended, key)
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const known = tree
      const base = known !== undefined && read.from <= known.size ? known : await load()
      let missing = base.size
      if (read.from <= base.size) {
        // Undefined during the write: after a failure it is unknown what was stored.
        tree = undefined
        const sizeBefore = base.size
        if (!(await isContinuation(base, read))) {
          // The cached tree may be older than what another coordinator stored.
          if (base === known) continue
          throw toConflict()
        }
        const result = await append(read, { bootId, claims })
        if ('lost' in result) {
          tree = base
          if (read.checkpoint.size === base.size) newest = { size: base.size, note: read.note, tree }
          else if (newest?.size !== base.size) newest = undefined
          const kinds = read.kinds.slice(Math.max(0, sizeBefore - read.from))
          onWritten({ size: base.size, kinds })
          return result.lost
        }
        missing = result.missing
      }
      read = readAppended(await repeatFrom(missing, repeat), key)
    }
    throw new CoordinatorError('log_unavailable', 'the log could not be written', {
      details: 'other coordinators write to it',
    })
  }

  /** Extends the tree by the entries, if they are new, and compares the roots. */
  async function isContinuation(base: RecentTree, { from, leaves, checkpoint }: ReadEntries): Promise<boolean> {
    if (checkpoint.size >= base.size) {
      base.append(leaves.slice(base.size - from))
      return equalBytes(base.computeRoot(), checkpoint.root)
    }
    return equalBytes(await readRoot({ store, hash, recent: base }, checkpoint.size), checkpoint.root)
  }

  async function append(
    { from, entries, states, checkpoint, note }: ReadEntries,
    context: Pick<WriteContext, 'bootId' | 'claims'>,
  ) {
    // Without new entries, only the roots are compared.
    if (entries.length === 0 && context.claims.length === 0) return { lost: [] }
    const { origin, size, root } = checkpoint
    const written = { from, entries, states, checkpoint: { size, root, note } }
    try {
      return await store.appendLog({
        origin,
        key: toVkey(key),
        ...context,
        ...written,
        claimMs: CLAIM_MS,
        now: clock.now(),
      })
    } catch (error) {
      const isOther = error instanceof CoordinatorError && error.code === 'attestation_invalid'
      throw isOther ? toConflict(error) : error
    }
  }

  async function repeatFrom(missing: number, repeat: WriteContext['repeat']): Promise<AppendedEntries> {
    const more = await repeat(missing)
    if (more.from <= missing) return more
    // An enclave forgets only cosigned entries, and only stored entries get cosigned. So another coordinator has stored them by now, or the
    // database has lost them.
    tree = await load()
    if (tree.size < more.from) {
      throw new LogFault('log_gap', 'log entries are missing', { details: `${tree.size} to ${more.from}` })
    }
    return more
  }

  async function writeOne({ appended, context }: Write) {
    try {
      return await write(appended, context)
    } catch (error) {
      newest = undefined
      throw error
    }
  }

  const gatherer = createGatherer<Write, readonly string[]>({
    limit: MAX_TOGETHER,
    slots: 1,
    async run(writes, { answer }) {
      for (const group of mergeAll(writes)) await writeGroup(group, answer)
    },
  })

  /**
   * Writes a group. If it fails with a `LogFault`, writes each part separately, so that only the faulty ones fail. Other failures, of the
   * database or the enclave, fail all parts, because each would wait again.
   */
  async function writeGroup({ merged, parts }: Group, answer: Progress<Write, readonly string[]>['answer']) {
    const [together] = await Promise.allSettled([writeOne(merged)])
    let final = parts.length > 1 && isFault(together) ? undefined : together
    for (const part of parts) {
      const [result] = final === undefined ? await Promise.allSettled([writeOne(part)]) : [final]
      answer(part, result)
      if (result.status === 'rejected' && !isFault(result)) final = result
    }
  }

  return {
    write: (appended, context) => gatherer.add({ appended, context }),
    get size() {
      return tree?.size ?? newest?.size
    },
    findRecent: (size) => (newest !== undefined && size <= newest.size ? newest.tree : tree),
    get newest() {
      return newest
    },
  }
}

/** Writes that are merged into one. */
type Group = { merged: Write; parts: Write[] }

/** Merges adjacent writes, in the order of the log. */
function mergeAll(writes: readonly Write[]): Group[] {
  const groups: Group[] = []
  for (const part of writes.toSorted((left, right) => left.appended.from - right.appended.from)) {
    const last = groups.at(-1)
    const isOfBoot = last?.merged.context.bootId === part.context.bootId
    const appended = last && isOfBoot ? mergeAppended(last.merged.appended, part.appended) : undefined
    if (last === undefined || appended === undefined) {
      groups.push({ merged: part, parts: [part] })
      continue
    }
    const claims = [...last.merged.context.claims, ...part.context.claims]
    last.merged = { appended, context: { ...part.context, claims } }
    last.parts.push(part)
  }
  return groups
}

/** Whether the entries themselves can't be written. */
function isFault(result: PromiseSettledResult<unknown>): boolean {
  return result.status === 'rejected' && result.reason instanceof LogFault
}

function toConflict(cause?: unknown) {
  return new LogFault('log_conflict', 'the enclave’s log differs from the stored one', { cause })
}
