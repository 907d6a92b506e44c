import { createHash } from 'node:crypto'
import { developmentSeed } from '@countersign/attestation/simulator'
import { type AttestationReceiptV2, hashLeaf, hashSubject, toCanonicalJson, toHex } from '@countersign/protocol'
import { encodeReceiptCar, toCid } from '@countersign/receipt'
import { createSimulatedLog } from '@countersign/receipt/simulator'
import type { Random } from '../../packages/protocol/fuzz/random.ts'
import type { DrawnReceipt } from './drawReceipt.ts'
import type { Request } from './protocol.ts'

// biome-ignore lint/suspicious/noExplicitAny: changed JSON has no type.
type Json = any

/** All blocks by role, with the receipt as `attestation`. */
type Blocks = Record<string, Uint8Array>

/** Changes a drawn receipt in one way, or not at all. `other` lends blocks and values. */
export function mutateReceipt(random: Random, drawn: DrawnReceipt, other: DrawnReceipt): Omit<Request, 'id'> {
  const { below, pick } = random
  const { receipt, reader, opening } = drawn
  const blocks = toBlocks(drawn)
  const change = below(20)
  if (change < 5) return toRequest(random, blocks, { reader, opening })
  if (change < 7) return toRequest(random, changeBytes(random, blocks), { reader, opening })
  if (change < 13) return toRequest(random, changeMember(random, blocks, toBlocks(other)), { reader, opening })
  if (change === 13) return toRequest(random, swapBlock(random, blocks, toBlocks(other)), { reader, opening })
  if (change === 14) {
    const car = encodeReceiptCar({
      ...drawn,
      bytes: receipt,
      ...(drawn.blocks.collateral && { collateral: drawn.blocks.collateral }),
    })
    const isWhole = below(4) === 0
    return { car: toBase64(isWhole ? car : spliceBytes(random, car, pick([60, 100, car.length]))), reader }
  }
  if (change < 17) {
    const given = opening ?? other.opening ?? new TextEncoder().encode('{}')
    return toRequest(random, blocks, { reader, opening: changeOpening(random, given) })
  }
  return toRequest(random, blocks, { reader: changeReader(random, reader, other.reader), opening })
}

function toBlocks({ receipt, blocks }: DrawnReceipt): Blocks {
  return { attestation: receipt, ...blocks }
}

function toRequest(
  { below, pick }: Random,
  { attestation, ...blocks }: Blocks,
  { reader, opening }: { reader: Request['reader']; opening?: Uint8Array | undefined },
): Omit<Request, 'id'> {
  const given = Object.entries(blocks)
  const missing = below(40) === 0 ? pick(given)[0] : undefined
  const cid = below(10) === 0 ? toCid(below(2) === 0 ? (attestation as Uint8Array) : new Uint8Array()) : undefined
  return {
    receipt: toBase64(attestation as Uint8Array),
    blocks: Object.fromEntries(
      given.filter(([role]) => role !== missing).map(([role, block]) => [role, toBase64(block)]),
    ),
    ...(cid !== undefined && { cid }),
    ...(opening && { opening: toBase64(opening) }),
    reader,
  }
}

const toBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const parse = (bytes: Uint8Array): Json => JSON.parse(new TextDecoder().decode(bytes))

/** Replaces, deletes or inserts some bytes before `end`. */
function spliceBytes({ below, bytes, pick }: Random, old: Uint8Array, end = old.length): Uint8Array {
  const at = below(Math.min(end, old.length) + 1)
  const [removed, added] = pick([
    [1, 1],
    [1, 1],
    [1, 0],
    [2, 0],
    [0, 1],
    [old.length, 0],
  ] as const)
  // Mostly a character that can come there.
  const text = new TextEncoder().encode(pick(['0', '1', 'f', 'a', '"', ',', ' ', '\n', '{', '9']))
  const inserted = below(3) === 0 ? bytes(added) : text.subarray(0, added)
  return Uint8Array.from([...old.subarray(0, at), ...inserted, ...old.subarray(at + removed)])
}

function changeBytes(random: Random, blocks: Blocks): Blocks {
  const role = random.pick(Object.keys(blocks))
  const changed = { ...blocks, [role]: spliceBytes(random, blocks[role] as Uint8Array) }
  return random.below(3) > 0 ? nameAnew(changed) : changed
}

function swapBlock(random: Random, blocks: Blocks, others: Blocks): Blocks {
  const role = random.pick(Object.keys(blocks))
  const block = others[random.below(8) === 0 ? random.pick(Object.keys(others)) : role]
  const changed = { ...blocks, ...(block && { [role]: block }) }
  return random.below(2) === 0 ? nameAnew(changed) : changed
}

/** Changes a member of one block, and encodes it again. Mostly with the block's new name in the blocks above. */
function changeMember(random: Random, blocks: Blocks, others: Blocks): Blocks {
  const { below, pick } = random
  const roles = Object.keys(blocks)
  const role = pick([...roles, 'attestation', 'attestation'])
  const value = tryTo(() => parse(blocks[role] as Uint8Array))
  if (value === undefined) return blocks
  const donor = tryTo(() => parse(others[role] ?? (blocks[role] as Uint8Array)))
  for (let turn = below(5) === 0 ? 2 : 1; turn > 0; turn--) changeValue(random, value, donor)
  const bytes = tryTo(() => toCanonicalJson(role === 'attestation' && below(2) === 0 ? restate(value) : value))
  const changed = { ...blocks, [role]: bytes ?? new TextEncoder().encode(JSON.stringify(value)) }
  return below(4) > 0 ? nameAnew(changed) : changed
}

/** The statement and the log as if the enclave had signed the changed subject and approvals, so that the rules of the vault decide. */
function restate(receipt: Json): Json {
  const { signer, subject, approvals, log } = receipt as AttestationReceiptV2 & { approvals?: unknown }
  const statement = {
    ...signer.statement,
    subject: tryTo(() => toHex(hashSubject(subject))) ?? signer.statement.subject,
    ...(approvals !== undefined && {
      approvals: tryTo(() => hash(toCanonicalJson(approvals))) ?? signer.statement.approvals,
    }),
  }
  const restated = { ...receipt, signer: { ...signer, statement } }
  if (log === undefined) return restated
  const leaf = tryTo(() => toHex(hashLeaf(statement)))
  const entry = {
    kind: 'signature',
    keyId: statement.keyId,
    leaf: leaf ?? '',
    timeMs: Date.parse(statement.signedAt),
  } as const
  return { ...restated, log: tryTo(() => createSimulatedLog(developmentSeed).prove(entry)) ?? log }
}

const hash = (bytes: Uint8Array) => toHex(new Uint8Array(createHash('sha256').update(bytes).digest()))

/** Lets the blocks above name the given blocks, where the member for the name exists. */
function nameAnew(blocks: Blocks): Blocks {
  const { attestation, release, batch, coordinator, collateral, policy } = blocks
  const named = { ...blocks }
  const write = (role: string, change: (value: Json) => void) => {
    const bytes = tryTo(() => {
      const value = parse(named[role] as Uint8Array)
      const before = JSON.stringify(value)
      change(value)
      return before === JSON.stringify(value) ? undefined : toCanonicalJson(value)
    })
    if (bytes !== undefined) named[role] = bytes
  }
  if (release !== undefined) {
    write('release', (value) => {
      if (batch) value.batch = toCid(batch)
      if (coordinator) value.coordinator = toCid(coordinator)
      if (collateral) value.collateral = toCid(collateral)
    })
  }
  if (attestation !== undefined) {
    write('attestation', (value) => {
      if (release === undefined && collateral) value.signer.collateral = toCid(collateral)
      if (named.release && batch) value.signer.batch = toCid(batch)
      if (named.release) value.coordinator.release = toCid(named.release)
      if (policy && value.policy !== undefined) {
        value.policy = toCid(policy)
        value.signer.statement.policy = hash(policy)
      }
    })
  }
  return named
}

function changeOpening(random: Random, opening: Uint8Array): Uint8Array {
  const { below, pick } = random
  if (below(4) === 0) return spliceBytes(random, opening)
  const value = tryTo(() => parse(opening))
  if (value === undefined) return opening
  if (below(4) > 0) changeValue(random, value, value)
  else if (value.content) Object.assign(value, { [pick(['content', 'signature'])]: 'ab'.repeat(32) })
  return new TextEncoder().encode(JSON.stringify(value, undefined, pick([undefined, undefined, 1])))
}

const registers = ['mrTd', 'rtmr0', 'rtmr1', 'rtmr2', 'rtmr3', 'mrConfigId', 'mrOwner', 'mrOwnerConfig']

function changeReader(random: Random, reader: Request['reader'], other: Request['reader']): Request['reader'] {
  const { below, pick } = random
  const copy: Json = structuredClone(reader)
  const { anchors } = copy
  const names = Object.keys(anchors)
  const lists = names.filter((name) => Array.isArray(anchors[name]))
  const changes: (() => void)[] = [
    () => delete anchors[pick(names)],
    () => Object.assign(anchors, { [pick(lists)]: [] }),
    () => Object.assign(anchors, pick(Object.entries(other.anchors).map(([name, value]) => ({ [name]: value })))),
    () => delete anchors.measurements?.[0]?.[pick(registers)],
    () => {
      delete anchors.measurements?.[0]?.rtmr3
      const entries = ['compose-hash', 'app-id', 'key-provider'].map((name, at): [string, string[]] => [
        name,
        [`c${at}`, 'c0'],
      ])
      anchors.events = Object.fromEntries(entries.slice(0, pick([3, 3, 3, 2, 1])))
    },
    () => Object.assign(anchors, { events: pick([{}, { 'compose-hash': ['c0'] }, { other: [''] }]) }),
    () => Object.assign(anchors, { platforms: [pick([{ fmspc: '00'.repeat(6) }, { ppid: '00'.repeat(16) }])] }),
    () =>
      Object.assign(anchors, {
        coordinatorMinimumTcb: pick([
          {},
          { Milan: {} },
          { Milan: { snp: 0 } },
          { Milan: { snp: 24 } },
          { Milan: { bl: 5 } },
          { Genoa: { snp: 1 } },
        ]),
      }),
    () =>
      Object.assign(anchors, {
        coordinatorMeasurements: anchors.coordinatorMeasurements?.map((one: string) => one.split(':')[0]),
      }),
    () => {
      const { witnesses } = createSimulatedLog(developmentSeed, { witnesses: 3 }).setting
      anchors.logWitnesses = [{ witnesses: below(3) === 0 ? witnesses.slice(1) : witnesses, quorum: pick([1, 2, 3]) }]
    },
    () =>
      Object.assign(copy, {
        policy: { signer: { statuses: pick([['UpToDate', 'SWHardeningNeeded', 'TDRelaunchAdvised'], ['OutOfDate']]) } },
      }),
    () =>
      Object.assign(copy, {
        policy: {
          signer: {
            [pick(['allowSeptVe', 'allowMigratable', 'allowPerfmon', 'allowTpa'])]: true,
            minimumTcbEvaluationDataNumber: pick([0, 20, 21]),
          },
        },
      }),
    () =>
      Object.assign(copy, {
        policy: {
          coordinator: pick([
            { vmpls: [0, 1] },
            { signingKeys: ['VLEK'] },
            { allowMigrationAgent: true },
            { allowUncheckedAliases: true },
          ]),
          time: { maximumEventDelayS: pick([9, 8, 0]) },
        },
      }),
    () => delete copy.chain,
    () => {
      for (const event of copy.chain?.events ?? []) {
        const name = pick(['address', 'data', 'blockTime'])
        event[name] =
          name === 'blockTime'
            ? pick(['2026-06-15T12:00:00.000Z', '2027-01-15T08:00:00.000Z'])
            : drawNeighbour(random, event[name])
      }
    },
    () => Object.assign(copy, { mockEntropyKeys: [] }),
    () => Object.assign(copy, { roots: copy.roots.slice(below(2), 1 + below(2)) }),
    () => Object.assign(copy.roots[below(copy.roots.length)], { mode: pick(['mock', 'hardware']) }),
  ]
  pick(changes)()
  return copy
}

/** Changes one value, anywhere in an object or list. */
function changeValue(random: Random, root: Json, donor: Json): void {
  const { below, pick } = random
  let parent = root
  let lent = donor
  for (;;) {
    const keys = Object.keys(parent)
    const key = pick(keys)
    const value = parent[key]
    const isLeaf = typeof value !== 'object' || value === null
    if (!isLeaf && Object.keys(value).length > 0 && below(8) > 0) {
      parent = value
      lent = lent?.[key]
      continue
    }
    const shape = below(16)
    if (shape === 0 && Array.isArray(parent)) parent.splice(Number(key), 1)
    else if (shape === 0) delete parent[key]
    else if (shape === 1 && Array.isArray(parent)) parent.push(structuredClone(value))
    else if (shape === 1) parent[pick(['more', '', `${key}s`])] = structuredClone(value)
    else if (shape === 2 && Array.isArray(parent)) parent.reverse()
    else if (shape === 2) [parent[key], parent[keys[0] ?? key]] = [parent[keys[0] ?? key], parent[key]]
    else if (shape === 3) parent[key] = pick([null, [], {}, '', 0, true])
    else if (shape === 4 && lent?.[key] !== undefined) parent[key] = structuredClone(lent[key])
    else parent[key] = drawNeighbour(random, value)
    return
  }
}

/** A value of the same type that is close. */
function drawNeighbour({ below, pick }: Random, value: Json): Json {
  if (typeof value === 'number')
    return pick([value + 1, value - 1, 0, 1, -1, 2 ** 53 - 1, value * 2, value + 0.5, value + 1000])
  if (typeof value === 'boolean') return !value
  if (value === null) return pick(['', 'ab'.repeat(32), 0, []])
  if (typeof value !== 'string') return Array.isArray(value) ? [...value, ...value] : { ...value, more: 1 }
  const time = Date.parse(value)
  if (/^\d{4}-.*Z$/.test(value) && !Number.isNaN(time)) {
    return pick([
      ...[1, -1, 1_000, -5_000, 3_600_000, 86_400_000].map((ms) => new Date(time + ms).toISOString()),
      value.replace(/\.\d+Z/, 'Z'),
      value.replace('-06-15', '-02-30'),
      value.replace('Z', '+00:00'),
    ])
  }
  if (/^\d+$/.test(value) && value.length < 60)
    return pick([String(BigInt(value) + 1n), '0', `0${value}`, `-${value}`, String(2n ** 256n), ''])
  const at = below(value.length + 1)
  const digit = value[at] ?? ''
  if (/^(0x)?[0-9a-f]*$/.test(value)) {
    const flipped =
      value.slice(0, at) + (Number.parseInt(digit || '0', 16) ^ pick([1, 2, 4, 8])).toString(16) + value.slice(at + 1)
    return pick([
      flipped,
      flipped,
      flipped,
      flipped,
      value.slice(0, -2),
      `${value}00`,
      value.toUpperCase(),
      value.replace(/[^x]/g, '0'),
      '',
    ])
  }
  const inserted = pick(['a', '0', ' ', '\n', 'é', '\u0000', '"', ''])
  return pick([
    value.slice(0, at) + inserted + value.slice(at + 1),
    value + inserted,
    value.slice(0, at),
    value.toUpperCase(),
    value.split('\n').toReversed().join('\n'),
  ])
}

function tryTo<Value>(work: () => Value): Value | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
