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
  /** Of the log. */
  key: NoteKey
  /** The log's name in the store. */
  hash: string
  onWritten(written: { size: number; kinds: readonly LogEntry['kind'][] }): void
}

type WriteContext = {
  bootId: string
  claims: readonly Claim[]
  /** What the enclave of this boot has appended from there on, or since where it has not forgotten. */
  repeat(from: number): Promise<AppendedEntries>
}

/** Writes a log's entries as its enclave appends them. */
export type LogWriter = {
  /** Returns the claims that are lost. Throws `LogFault` where the log cannot be gone on with, `log_unavailable` where it may work later. */
  write(appended: AppendedEntries, context: WriteContext): Promise<readonly string[]>
  /** How much is written, as far as it is known here. */
  readonly size: number | undefined
  /** What is at hand of a tree of this size, which is written. */
  findRecent(size: number): RecentTree | undefined
  /** The newest checkpoint, if it was written here. More may be under way. */
  readonly newest: { size: number; note: string } | undefined
}

type Write = { appended: AppendedEntries; context: WriteContext }

/** After this time a claim of somebody who does not go on with it falls: decision 23. */
export const CLAIM_MS = 90_000
/** What is written by others meanwhile, and what is missing before what came, each takes another turn. */
const MAX_TURNS = 4
/** Answers of an enclave that are written together, at most. */
const MAX_TOGETHER = 32

/** One call after the other, since each begins where another ends: what comes while one is under way is written together. */
export function createLogWriter({ store, clock, key, hash, onWritten }: LogWriterDeps): LogWriter {
  /** Exactly what is written, or undefined where that is not known. */
  let tree: RecentTree | undefined
  /** What was written last, and its tree, which may have grown by what is being written. Nothing that is written is taken back. */
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
        // Undefined until it is written: a failure leaves open what is.
        tree = undefined
        const sizeBefore = base.size
        if (!(await isContinuation(base, read))) {
          // What was known may be older than what another coordinator wrote.
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
    throw new CoordinatorError('log_unavailable', 'the log could not be written', { details: 'others write it' })
  }

  /** Brings the tree up to what was read, if that is more. */
  async function isContinuation(base: RecentTree, { from, leaves, checkpoint }: ReadEntries): Promise<boolean> {
    if (checkpoint.size >= base.size) {
      base.append(leaves.slice(base.size - from))
      return equalBytes(base.computeRoot(), checkpoint.root)
    }
    return equalBytes(await readRoot({ store, hash, recent: base }, checkpoint.size), checkpoint.root)
  }

  async function append(
    { from, entries, checkpoint, note }: ReadEntries,
    context: Pick<WriteContext, 'bootId' | 'claims'>,
  ) {
    // An enclave that has nothing new is only compared.
    if (entries.length === 0 && context.claims.length === 0) return { lost: [] }
    const { origin, size, root } = checkpoint
    const written = { from, entries, checkpoint: { size, root, note } }
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
    // An enclave forgets only what is cosigned, and only what is written gets cosigned. So either somebody has written it by now, or the
    // database has lost it.
    tree = await load()
    if (tree.size < more.from) {
      throw new LogFault('log_gap', 'entries of the log are lost', { details: `${tree.size} to ${more.from}` })
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
    async run(asked, { answer }) {
      for (const group of mergeAll(asked)) await writeGroup(group, answer)
    },
  })

  /** One that cannot be written fails alone. Where the database or the enclave does, all fail: each would wait for it again. */
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

/** What is written in one call. */
type Group = { merged: Write; parts: Write[] }

/** In the order of the log. */
function mergeAll(asked: readonly Write[]): Group[] {
  const groups: Group[] = []
  for (const part of asked.toSorted((left, right) => left.appended.from - right.appended.from)) {
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

/** Whether it is what was brought that cannot be written. */
function isFault(result: PromiseSettledResult<unknown>): boolean {
  return result.status === 'rejected' && result.reason instanceof LogFault
}

function toConflict(cause?: unknown) {
  return new LogFault('log_conflict', 'the enclave’s log is not the one that is written', { cause })
}
