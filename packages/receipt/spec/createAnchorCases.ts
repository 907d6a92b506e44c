import { developmentSeed } from '@countersign/attestation/simulator'
import { createNoteKey } from '@countersign/log'
import { checkpointTopic, toCanonicalJson, toSizeTopic } from '@countersign/protocol'
import type { Anchors, ChainLog, Verdict } from '@countersign/receipt'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type Anchored,
  createCheckpointEvent,
  goldenIndex,
  LOG_ID,
  LOG_WITNESS,
  signCheckpoint,
} from '../test/anchored.ts'
import { createEvent } from '../test/checkReceipt.ts'
import type { Case, CaseEvent } from './createCaseFiles.ts'
import { GOLDEN_SIGNED_AT } from './createSpecFiles.ts'

/** Changes to the member `anchor` of `golden-anchor/expected.json`. */
type AnchorChanges = {
  contract?: string
  id?: string
  size?: number
  path?: readonly string[]
  /** The text of a block in place of `golden-anchor/anchor.json`. Null if it is withheld. */
  block?: string | null
}

/** A case as in `golden-v2/cases/cases.json`, with an anchor. */
export type AnchorCase = Omit<Case, 'receipt'> & {
  /** A folder in golden-v2. Default: the receipt in `golden-anchor`. */
  receipt?: string
  anchor: AnchorChanges
}

type Given = Pick<AnchorCase, 'receipt' | 'reader'> & {
  anchor?: AnchorChanges
  events?: readonly ChainLog[]
  steps?: Case['steps']
}

export function toCaseEvent({ blockTime, ...event }: ChainLog): CaseEvent {
  return { ...event, blockTime: blockTime.toISOString() }
}

const OTHER_CONTRACT = `0x${'cd'.repeat(20)}`
const OTHER_ID = `0x${'cd'.repeat(32)}`

/** What a reader with an anchor finds: each rule of section 3, met and broken. */
export function createAnchorCases(anchored: Anchored): AnchorCase[] {
  return [
    ...createEventCases(anchored),
    ...createListCases(anchored),
    ...createBlockCases(anchored),
    ...createNoteCases(anchored),
    ...createPathCases(anchored),
  ]
}

/** Creates cases of one verdict and status of the step. */
function createCase(status: 'pass' | 'fail' | 'skip', verdict: Verdict, { anchors }: Anchored) {
  return (name: string, { receipt, anchor = {}, events, reader, steps }: Given = {}): AnchorCase => {
    const given = (events ?? [createCheckpointEvent(anchors[1])]).map(toCaseEvent)
    return {
      name,
      ...(receipt !== undefined && { receipt }),
      anchor,
      reader: { isHardware: true, chain: { events: given, transaction: 'mined' }, ...reader },
      verdict,
      steps: { event: status, ...steps },
    }
  }
}

const bounded = { log: 'pass', time: 'pass', 'time-bound': 'pass' } as const
const notDue = { isEventDue: false } as const

/** Rule 3, and the time. */
function createEventCases(anchored: Anchored): AnchorCase[] {
  const [, own, later] = anchored.anchors
  const passes = createCase('pass', 'verified', anchored)
  const fails = createCase('fail', 'failed', anchored)
  const skips = createCase('skip', 'unbounded', anchored)
  const event = createCheckpointEvent(own)
  const { topics, data } = event
  const [, id = '', size = ''] = topics
  const after = (ms: number, changes: Partial<ChainLog> = {}): ChainLog => {
    return { ...event, blockTime: new Date(GOLDEN_SIGNED_AT.getTime() + ms), ...changes }
  }
  const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`
  const ofReceipt = createEvent({
    contract: OTHER_CONTRACT,
    wallet: OTHER_CONTRACT as `0x${string}`,
    txHash: OTHER_ID as `0x${string}`,
    cid: anchored.issue.cid,
    blockTime: GOLDEN_SIGNED_AT,
  })
  const otherRoot = `0x${later.root}${data.slice(66)}`
  const malformed: [name: string, changes: Partial<ChainLog>][] = [
    ['another event', { topics: [`0x${'11'.repeat(32)}`, id, size] }],
    ['an event whose id has 31 bytes', { topics: [checkpointTopic, id.slice(0, -2), size] }],
    ['an event with two topics', { topics: [checkpointTopic, id] }],
    ['an event with four topics', { topics: [...topics, size] }],
    [
      'an event whose size is above 2^53 - 1',
      { topics: [checkpointTopic, id, `0x${'00'.repeat(24)}${'ff'.repeat(8)}`] },
    ],
    ['an event with one word of data', { data: data.slice(0, 66) }],
    ['an event with three words of data', { data: `${data}${'00'.repeat(32)}` }],
    ['an event with half a byte less', { data: data.slice(0, -1) }],
  ]
  return [
    passes('a checkpoint after 9 s', { steps: { ...bounded, transaction: 'pass' } }),
    {
      ...createCase('pass', 'mock', anchored)('a checkpoint, for a reader who knows the roots as simulated'),
      reader: { chain: { events: [toCaseEvent(event)], transaction: 'mined' } },
    },
    passes('a checkpoint, although none is due yet', { reader: notDue }),
    passes('a checkpoint, for a reader with a contract of events', {
      reader: { anchors: { contract: OTHER_CONTRACT } },
    }),
    passes('an event in upper case', {
      events: [{ ...event, address: upper(event.address), topics: topics.map(upper), data: upper(data) }],
    }),
    passes('a checkpoint, and events of other contracts', {
      events: [ofReceipt, { ...event, address: OTHER_CONTRACT, data: '0x' }, event],
    }),
    passes('a checkpoint, and one of another size and of another log', {
      events: [
        createCheckpointEvent(later),
        { ...event, topics: [checkpointTopic, OTHER_ID, size], data: otherRoot },
        event,
      ],
    }),
    passes('a checkpoint 5 s before the signing', { events: [after(-5_000)], steps: bounded }),
    fails('a checkpoint 5.001 s before the signing', {
      events: [after(-5_001)],
      steps: { event: 'pass', time: 'fail' },
    }),
    passes('a checkpoint after 72 h', { events: [after(259_200_000)], steps: bounded }),
    createCase(
      'pass',
      'late',
      anchored,
    )('a checkpoint after 72 h and 1 ms', {
      events: [after(259_200_001)],
      steps: { ...bounded, 'time-bound': 'skip' },
    }),
    passes('a checkpoint twice, the earlier in time', { events: [after(259_200_001), after(9_000)], steps: bounded }),
    fails('a checkpoint twice, the earlier of another root', {
      events: [after(9_001), after(9_000, { data: otherRoot })],
    }),
    skips('no chain', { reader: { chain: undefined as never } }),
    fails('no event', { events: [] }),
    fails('only an event of the receipt', { events: [ofReceipt] }),
    fails('only an event of another contract', { events: [after(9_000, { address: OTHER_CONTRACT })] }),
    fails('only an event of another log', { events: [after(9_000, { topics: [checkpointTopic, OTHER_ID, size] })] }),
    fails('only an event of another size', {
      events: [after(9_000, { topics: [checkpointTopic, id, toSizeTopic(14)] })],
    }),
    skips('no event, and none is due yet', { events: [], reader: notDue, steps: { 'time-bound': 'skip' } }),
    skips('only a smaller checkpoint, and none is due yet', {
      events: [createCheckpointEvent(anchored.anchors[0])],
      reader: notDue,
    }),
    fails('no event, and the block is withheld', { events: [], anchor: { block: null } }),
    ...malformed.flatMap(([name, changes]) => [
      fails(name, { events: [after(9_000, changes)] }),
      fails(`${name}, next to the checkpoint`, { events: [event, after(9_000, changes)] }),
    ]),
    fails('a malformed event, although none is due yet', { events: [after(9_000, { data: '0x' })], reader: notDue }),
    fails('an event of another root', { events: [after(9_000, { data: otherRoot })] }),
  ]
}

/** Rules 1 and 2. */
function createListCases(anchored: Anchored): AnchorCase[] {
  const passes = createCase('pass', 'verified', anchored)
  const skips = createCase('skip', 'incomplete', anchored)
  const list = (...logs: { id?: string; upTo?: number }[]) => [
    { address: LOG_WITNESS, logs: logs.map((one) => ({ id: LOG_ID, ...one })) },
  ]
  const listing = (logContracts: Anchors['logContracts'] | null) => ({ reader: { anchors: { logContracts } } })
  const elsewhere = [{ address: OTHER_CONTRACT, logs: [{ id: LOG_ID }] }]
  return [
    passes('a limit of exactly this size', listing(list({ upTo: 13 }))),
    passes('a log listed twice, once with a lower limit', listing([...list({ upTo: 12 }), ...list({})])),
    passes('a log listed among others', listing([...elsewhere, ...list({ id: OTHER_ID }, {})])),
    skips('a lower limit', listing(list({ upTo: 12 }))),
    skips('a limit of 0', listing(list({ upTo: 0 }))),
    skips('no listed logs', listing(null)),
    skips('an empty list', listing([])),
    skips('only another log listed', listing(list({ id: OTHER_ID }))),
    skips('the log listed at another contract', listing([...elsewhere, ...list({ id: OTHER_ID })])),
    skips('a log that is not listed, with an event', {
      anchor: { id: OTHER_ID },
      events: [
        {
          ...createCheckpointEvent(anchored.anchors[1]),
          topics: [checkpointTopic, OTHER_ID, toSizeTopic(anchored.anchors[1].size)],
        },
      ],
    }),
    skips('a contract that is not listed, with an event', {
      anchor: { contract: OTHER_CONTRACT },
      events: [{ ...createCheckpointEvent(anchored.anchors[1]), address: OTHER_CONTRACT }],
    }),
    skips('a log that is not listed, without an event', { ...listing(null), events: [] }),
    skips('a receipt without a log', { receipt: 'cases/attested', steps: { log: 'skip' } }),
    createCase(
      'skip',
      'failed',
      anchored,
    )('a receipt whose own proof is not cosigned by the reader’s witnesses', {
      reader: { anchors: { logWitnesses: [{ witnesses: [toKey(1), toKey(2)], quorum: 2 }] } },
      steps: { log: 'fail' },
    }),
  ]
}

/** RFC 8032, section 7.1, keys of tests 1 and 2. */
function toKey(test: 1 | 2): string {
  return test === 1
    ? 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
    : '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'
}

/** The block with these bytes, and the event that names it. */
function replaceBlock({ anchors }: Anchored, bytes: Uint8Array<ArrayBuffer>, tree: { root?: string } = {}): Given {
  return {
    anchor: { block: new TextDecoder().decode(bytes) },
    events: [createCheckpointEvent({ ...anchors[1], ...tree, bytes })],
  }
}

/** Rule 4. */
function createBlockCases(anchored: Anchored): AnchorCase[] {
  const [first, own] = anchored.anchors
  const fails = createCase('fail', 'failed', anchored)
  const text = new TextDecoder().decode(own.bytes)
  const encode = (changed: string) => replaceBlock(anchored, new TextEncoder().encode(changed))
  const change = (changes: object) => replaceBlock(anchored, toCanonicalJson({ ...own.block, ...changes }))
  return [
    createCase('skip', 'incomplete', anchored)('a withheld block', { anchor: { block: null } }),
    fails('an empty block', { anchor: { block: '' } }),
    fails('the block of another anchor', { anchor: { block: new TextDecoder().decode(first.bytes) } }),
    fails('a block with a line feed at the end', { anchor: { block: `${text}\n` } }),
    fails('an event of another block', { events: [createCheckpointEvent({ ...own, bytes: first.bytes })] }),
    fails('a named block with a line feed at the end', encode(`${text}\n`)),
    fails('a named block with a member too many', change({ note: '' })),
    fails('a named block of another version', change({ version: 'countersign-anchor/2' })),
    fails('a named block without parts', change({ parts: [] })),
    fails('a named block that is a part', encode(new TextDecoder().decode(own.partBytes[0]))),
    // Only readers of all entries find this: the step doesn't use them.
    createCase('pass', 'verified', anchored)('a named block with another frontier', change({ frontier: [own.root] })),
  ]
}

/** Rule 5. */
function createNoteCases(anchored: Anchored): AnchorCase[] {
  const [first, own, later] = anchored.anchors
  const passes = createCase('pass', 'verified', anchored)
  const fails = createCase('fail', 'failed', anchored)
  const toRoot = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))
  const sign = (checkpoint: object = {}, signer: Parameters<typeof signCheckpoint>[1] = {}) =>
    signCheckpoint({ size: own.size, root: toRoot(own.root), ...checkpoint }, signer)
  const withNote = (checkpoint: string, tree: { root?: string } = {}) =>
    replaceBlock(anchored, toCanonicalJson({ ...own.block, checkpoint }), tree)
  const note = own.block.checkpoint
  const [text = ''] = note.split('\n\n')
  const linesOf = (signed: string) => (signed.split('\n\n')[1] ?? '').split('\n')
  const [log = '', w0 = '', w2 = ''] = linesOf(note)
  const [, , w1 = ''] = linesOf(sign({}, { log: { cosigners: [0, 1] } }))
  const [, early = ''] = linesOf(sign({}, { log: { timestampS: 1 } }))
  const [foreignLog = '', foreign0 = '', foreign1 = ''] = linesOf(sign({}, { seed: 'another service' }))
  const [laterLog = '', later0 = ''] = linesOf(later.block.checkpoint)
  const withLines = (...lines: string[]) => withNote(`${text}\n\n${lines.map((line) => `${line}\n`).join('')}`)
  /** The line of a witness under a name and with a time. */
  const cosign = (line: string, name: string, timestampS: bigint) => {
    const secret = sha256(new TextEncoder().encode(`${developmentSeed} cosignature-ed25519 ${line.split(' ')[1]}`))
    const publicKey = ed25519.getPublicKey(secret)
    const { id } = createNoteKey({ name, type: 'cosignature-ed25519', publicKey })
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(timestampS)
    const message = new TextEncoder().encode(`cosignature/v1\ntime ${timestampS}\n${text}\n`)
    return `— ${name} ${Buffer.concat([Buffer.from(id, 'hex'), time, ed25519.sign(message, secret)]).toString('base64')}`
  }
  const otherOrigin = { origin: 'log.example/enclave-b' }
  return [
    passes('a note with its lines in another order', withLines(w2, w0, log)),
    passes('a note with the cosignatures of another quorum', withLines(log, w0, w1)),
    passes('a note with the cosignatures of all witnesses', withLines(log, w0, w1, w2)),
    passes('a note with lines of unknown keys', withLines(foreign0, log, foreignLog, w0, w2, foreign1)),
    passes('a note with the log’s line twice', withLines(log, log, w0, w2)),
    passes('a note with two cosignatures of one witness, and of another', withLines(log, early, w0, w2)),
    fails('a note with one witness too few', withLines(log, w0)),
    fails('a note without cosignatures', withLines(log)),
    fails('a note with one cosignature twice', withLines(log, w0, w0)),
    fails('a note with two cosignatures of one witness', withLines(log, early, w0)),
    fails('a note with cosignatures of other witnesses', withLines(log, foreign0, foreign1)),
    fails('a note with one of the witnesses and one other', withLines(log, w0, foreign1)),
    fails('a note without the log’s signature', withLines(w0, w2)),
    fails('a note with only the signature of another log', withLines(foreignLog, w0, w2)),
    fails('a note with the log’s signature of another text', withLines(laterLog, w0, w2)),
    fails('a note with the log’s signature, and one of another text', withLines(log, laterLog, w0, w2)),
    fails('a quorum, and an invalid cosignature of the third witness', withLines(log, w0, w2, changeEnd(w1))),
    fails('a quorum, and a cosignature of another text', withLines(log, w0, w2, later0)),
    fails(
      'a witness under another name, with the first name’s key id',
      withLines(log, w0.replace('.example', '.invalid'), w2),
    ),
    passes('a witness under another name', withLines(log, w0, cosign(w2, 'other.example', 1n))),
    fails('one witness under two names', withLines(log, w0, cosign(w0, 'other.example', 1n))),
    passes('a witness under a name with U+FEFF', withLines(log, w0, cosign(w2, 'other\ufeff', 1n))),
    fails('a line of an unknown key whose name has U+00A0', withLines(log, w0, w2, foreign0.replace('.', '\u00a0'))),
    fails('a line of an unknown key whose name has a plus', withLines(log, w0, w2, foreign0.replace('.', '+'))),
    fails(
      'a line of an unknown key whose name has a control character',
      withLines(log, w0, w2, foreign0.replace('.', '\t')),
    ),
    fails('a line of an unknown key that is not base64', withLines(log, w0, w2, '— unknown.example AAAAAAA')),
    fails('a line of an unknown key without a signature', withLines(log, w0, w2, '— unknown.example AAAAAA==')),
    passes('a line of an unknown key with one byte', withLines(log, w0, w2, '— unknown.example AAAAAAA=')),
    passes('a cosignature of the time 2^53 - 1', withLines(log, w0, cosign(w2, 'w.example', 2n ** 53n - 1n))),
    fails('a quorum, and a cosignature of the time 0', withLines(log, w0, w2, cosign(w1, 'w.example', 0n))),
    fails('a quorum, and a cosignature of the time 2^53', withLines(log, w0, w2, cosign(w1, 'w.example', 2n ** 53n))),
    fails('a note without a line feed at the end', withNote(note.slice(0, -1))),
    fails('a note with an empty line more', withNote(`${note}\n`)),
    fails('a note without lines', withNote(`${text}\n`)),
    fails('a note with a malformed line', withLines(log, w0, w2, '— unknown.example')),
    fails('a note with 66 lines', withLines(log, w0, w2, ...Array.from({ length: 63 }, () => foreign0))),
    passes('a note with 65 lines', withLines(log, w0, w2, ...Array.from({ length: 62 }, () => foreign0))),
    fails('the note of an earlier checkpoint', withNote(first.block.checkpoint)),
    fails('the note of a later checkpoint', withNote(later.block.checkpoint)),
    fails('a cosigned checkpoint of another size', withNote(sign({ size: 12 }))),
    fails('a cosigned checkpoint of another root', withNote(sign({ root: toRoot(later.root) }))),
    fails('a cosigned checkpoint of another origin', withNote(sign(otherOrigin))),
    fails('a cosigned checkpoint of another origin, by its own key', withNote(sign(otherOrigin, { log: otherOrigin }))),
    fails('a cosigned checkpoint with an extension line', withNote(sign({ extensions: ['more'] }))),
    fails('a checkpoint of another service', withNote(sign({}, { seed: 'another service' }))),
    fails(
      'another tree, on the chain and cosigned',
      withNote(sign({ root: toRoot(later.root) }), { root: later.root }),
    ),
  ]
}

/** A line with another last byte of its signature. */
function changeEnd(line: string): string {
  const [prefix = '', name = '', base64 = ''] = line.split(' ')
  const bytes = Buffer.from(base64, 'base64')
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  return [prefix, name, bytes.toString('base64')].join(' ')
}

/** Rule 6. */
function createPathCases(anchored: Anchored): AnchorCase[] {
  const [first, own, later] = anchored.anchors
  const passes = createCase('pass', 'verified', anchored)
  const fails = createCase('fail', 'failed', anchored)
  const path = own.paths[goldenIndex] ?? []
  const given = (changes: readonly string[]) => ({ anchor: { path: changes } })
  const text = new TextDecoder()
  const reader = { anchors: { logContracts: anchored.logContracts } }
  const smaller = { size: first.size, path: first.paths[3] ?? [], block: text.decode(first.bytes) }
  return [
    passes('a later checkpoint, whose anchor does not list the receipt', {
      anchor: { size: later.size, path: later.paths[goldenIndex] ?? [], block: text.decode(later.bytes) },
      events: [createCheckpointEvent(later)],
      steps: bounded,
    }),
    fails('the path in a later checkpoint', given(later.paths[goldenIndex] ?? [])),
    fails('the path of another entry', given(own.paths[5] ?? [])),
    fails('no path', given([])),
    fails('a path cut short', given(path.slice(0, -1))),
    fails('a path too long', given([...path, own.root])),
    fails('a path in reverse order', given(path.toReversed())),
    fails('a path with another hash', given(path.with(1, own.root))),
    fails('a checkpoint that ends before the entry', { anchor: smaller, events: [createCheckpointEvent(first)] }),
    createCase(
      'pass',
      'unknown-code',
      anchored,
    )('another receipt of the same signature', { receipt: 'logged', reader }),
    fails('a receipt of another signature with the same index', {
      receipt: 'cases/logged-vault',
      reader,
      steps: { log: 'pass' },
    }),
  ]
}
