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

/** A policy that requires two of these witnesses. */
export function toPolicy(witnesses: readonly { vkey: string }[]): WitnessPolicy {
  return { witnesses: witnesses.map(({ vkey }) => toHex(parseVkey(vkey).publicKey)), quorum: QUORUM }
}

export type LogVerdict = {
  /** Number of signature entries by outcome. */
  counts: { signatures: number; committed: number; dropped: number; unacknowledged: number; ofDeadBoots: number }
  /** Entries of the latest boot that are neither stored, dropped nor reported yet. */
  open: number
  faults: string[]
}

/** Checks the invariants of a log, from its rows and from the cosignatures of honest witnesses. */
export function checkLog(
  rows: LogRows,
  outside: {
    policy: WitnessPolicy
    /** Cosignatures of honest witnesses; undefined if they weren't recorded. */
    cosigned?: readonly Cosigned[]
    /** The newest checkpoints that the witnesses serve. */
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
    if (!isOfTree({ size, root })) fault(`checkpoint of size ${size} doesn't match the tree`)
    if (size > 0 && entries[size - 1]?.kind !== 'table') fault(`checkpoint of size ${size} doesn't end with a table`)
  }
  const lines = outside.cosigned && new Set(outside.cosigned.flatMap((each) => each.lines.split('\n')))
  for (const { size, note } of rows.notes) {
    try {
      const { checkpoint, cosignatures } = assertCosigned(note, { log: key, policy: outside.policy })
      if (checkpoint.size !== size || !isOfTree({ size, root: toHex(checkpoint.root) })) {
        fault(`note of size ${size} doesn't match the tree`)
      }
      const honest = cosignatures.filter(
        ({ signature }) => lines?.has(formatSignatureLines([signature]).trim()) ?? true,
      )
      if (honest.length < outside.policy.quorum) fault(`note of size ${size} has no quorum of honest witnesses`)
    } catch (error) {
      fault(`note of size ${size}: ${error instanceof Error ? error.message : error}`)
    }
  }
  for (const each of outside.cosigned ?? []) {
    if (each.origin === origin && !isOfTree(each)) fault(`a witness cosigned a different tree of size ${each.size}`)
  }
  for (const { name, vkey, note } of outside.newest) {
    const { text, verified } = openNote(note, [key, parseVkey(vkey)])
    const { size, root } = parseCheckpoint(text)
    if (verified.length !== 2 || !isOfTree({ size, root: toHex(root) }))
      fault(`${name} has a different tree of size ${size}`)
  }
  const { counts, open } = checkEntries(entries, signings, fault)
  return { counts, open, faults }
}

function checkEntries(entries: readonly LogEntry[], signings: LogRows['signings'], fault: (text: string) => void) {
  const stored = new Set(signings.map(({ index }) => index))
  if (stored.size < signings.length) fault('two stored signatures share an entry')
  for (const { slug, index, note } of signings) {
    if (entries[index]?.kind !== 'signature') fault(`${slug} has no entry`)
    if (index >= parseCheckpoint(parseNote(note).text).size)
      fault(`${slug} was released by a note that doesn't contain its entry`)
  }
  const counts = { signatures: 0, committed: 0, dropped: 0, unacknowledged: 0, ofDeadBoots: 0 }
  const ended = { dropped: new Set<string>(), unacknowledged: new Set<string>() }
  const signed = new Set<string>()
  const lastBoot = entries.findLastIndex(({ kind }) => kind === 'boot')
  if (entries.length > 0 && entries[0]?.kind !== 'boot') fault('the first entry is not a boot entry')
  for (const entry of entries) {
    if (entry.kind === 'boot' || entry.kind === 'table') continue
    if (entry.kind === 'signature') {
      if (signed.has(entry.leaf)) fault(`${entry.leaf} was appended twice`)
      signed.add(entry.leaf)
    } else {
      if (!signed.has(entry.leaf)) fault(`${entry.leaf} is marked ${entry.kind} but was never signed`)
      if (ended.dropped.has(entry.leaf) || ended.unacknowledged.has(entry.leaf))
        fault(`${entry.leaf} has two final entries`)
      ended[entry.kind].add(entry.leaf)
    }
  }
  let open = 0
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'signature') continue
    counts.signatures += 1
    const isDropped = ended.dropped.has(entry.leaf)
    if (stored.has(index) && isDropped) fault(`${entry.leaf} is both stored and dropped`)
    if (stored.has(index)) counts.committed += 1
    else if (isDropped) counts.dropped += 1
    else if (ended.unacknowledged.has(entry.leaf)) counts.unacknowledged += 1
    else if (index < lastBoot) counts.ofDeadBoots += 1
    else open += 1
  }
  return { counts, open }
}

/** Roots by tree size. */
function computeRoots(entries: readonly LogEntry[]): string[] {
  let frontier = emptyFrontier
  const roots = [toHex(computeFrontierRoot(frontier))]
  for (const entry of entries) {
    frontier = appendLeaves(frontier, [hashLogEntry(entry)])
    roots.push(toHex(computeFrontierRoot(frontier)))
  }
  return roots
}
