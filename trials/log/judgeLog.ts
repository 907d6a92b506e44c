import {
  appendLeaves,
  assertCosigned,
  computeFrontierRoot,
  decodeLogEntry,
  emptyFrontier,
  formatSignatureLines,
  hashLogEntry,
  type LogEntry,
  openNote,
  parseCheckpoint,
  parseNote,
  parseVkey,
  type WitnessPolicy,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'
import type { Cosigned } from './badWitness.ts'
import type { LogRows } from './readLogs.ts'

const QUORUM = 2

/** Of these witnesses two are enough. */
export function toPolicy(witnesses: readonly { vkey: string }[]): WitnessPolicy {
  return { witnesses: witnesses.map(({ vkey }) => toHex(parseVkey(vkey).publicKey)), quorum: QUORUM }
}

export type LogVerdict = {
  /** Entries of signatures, by what became of them. */
  counts: { signatures: number; committed: number; dropped: number; unacknowledged: number; ofDeadBoots: number }
  /** Neither stored, nor dropped, nor reported, by a boot that is the newest of its log. They may still come to their end. */
  open: number
  faults: string[]
}

/** What is true of a log whatever became of those who kept it, from its rows and from what witnesses really cosigned. */
export function judgeLog(
  rows: LogRows,
  outside: {
    policy: WitnessPolicy
    /** What honest witnesses have answered; undefined where that was not watched. */
    cosigned?: readonly Cosigned[]
    /** Their newest checkpoints, as they serve them. */
    newest: readonly { name: string; vkey: string; note: string }[]
  },
): LogVerdict {
  const { origin, signings } = rows
  const faults: string[] = []
  const fault = (text: string) => void faults.push(`${origin}: ${text}`)
  const entries = rows.entries.map(decodeLogEntry)
  const roots = computeRoots(entries)
  const key = parseVkey(rows.key)
  const isOfTree = ({ size, root }: { size: number; root: string }) => roots[size] === root

  for (const { size, root } of rows.checkpoints) {
    if (!isOfTree({ size, root })) fault(`the checkpoint of size ${size} is of another tree`)
  }
  const lines = outside.cosigned && new Set(outside.cosigned.flatMap((each) => each.lines.split('\n')))
  for (const { size, note } of rows.notes) {
    try {
      const { checkpoint, cosignatures } = assertCosigned(note, { log: key, policy: outside.policy })
      if (checkpoint.size !== size || !isOfTree({ size, root: toHex(checkpoint.root) })) {
        fault(`the note of size ${size} is of another tree`)
      }
      const honest = cosignatures.filter(
        ({ signature }) => lines?.has(formatSignatureLines([signature]).trim()) ?? true,
      )
      if (honest.length < outside.policy.quorum) fault(`the note of size ${size} has no quorum of honest witnesses`)
    } catch (error) {
      fault(`the note of size ${size}: ${error instanceof Error ? error.message : error}`)
    }
  }
  for (const each of outside.cosigned ?? []) {
    if (each.origin === origin && !isOfTree(each)) fault(`a witness cosigned another tree of size ${each.size}`)
  }
  for (const { name, vkey, note } of outside.newest) {
    const { text, verified } = openNote(note, [key, parseVkey(vkey)])
    const { size, root } = parseCheckpoint(text)
    if (verified.length !== 2 || !isOfTree({ size, root: toHex(root) }))
      fault(`${name} has another tree of size ${size}`)
  }
  const { counts, open } = judgeEntries(entries, signings, fault)
  return { counts, open, faults }
}

function judgeEntries(entries: readonly LogEntry[], signings: LogRows['signings'], fault: (text: string) => void) {
  const stored = new Set(signings.map(({ index }) => index))
  if (stored.size < signings.length) fault('two stored signatures have one entry')
  for (const { slug, index, note } of signings) {
    if (entries[index]?.kind !== 'signature') fault(`${slug} has no entry`)
    if (index >= parseCheckpoint(parseNote(note).text).size)
      fault(`${slug} was released by a note that does not have it`)
  }
  const counts = { signatures: 0, committed: 0, dropped: 0, unacknowledged: 0, ofDeadBoots: 0 }
  const ended = { dropped: new Set<string>(), unacknowledged: new Set<string>() }
  const signed = new Set<string>()
  const lastBoot = entries.findLastIndex(({ kind }) => kind === 'boot')
  if (entries.length > 0 && entries[0]?.kind !== 'boot') fault('the first entry is not that of a boot')
  for (const entry of entries) {
    if (entry.kind === 'boot') continue
    if (entry.kind === 'signature') {
      if (signed.has(entry.leaf)) fault(`${entry.leaf} was appended twice`)
      signed.add(entry.leaf)
    } else {
      if (!signed.has(entry.leaf)) fault(`${entry.leaf} is ${entry.kind} and was never signed`)
      if (ended.dropped.has(entry.leaf) || ended.unacknowledged.has(entry.leaf)) fault(`${entry.leaf} ended twice`)
      ended[entry.kind].add(entry.leaf)
    }
  }
  let open = 0
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'signature') continue
    counts.signatures += 1
    const isDropped = ended.dropped.has(entry.leaf)
    if (stored.has(index) && isDropped) fault(`${entry.leaf} is stored and was dropped`)
    if (stored.has(index)) counts.committed += 1
    else if (isDropped) counts.dropped += 1
    else if (ended.unacknowledged.has(entry.leaf)) counts.unacknowledged += 1
    else if (index < lastBoot) counts.ofDeadBoots += 1
    else open += 1
  }
  return { counts, open }
}

/** By size. */
function computeRoots(entries: readonly LogEntry[]): string[] {
  let frontier = emptyFrontier
  const roots = [toHex(computeFrontierRoot(frontier))]
  for (const entry of entries) {
    frontier = appendLeaves(frontier, [hashLogEntry(entry)])
    roots.push(toHex(computeFrontierRoot(frontier)))
  }
  return roots
}
