import { toHex } from '@countersign/protocol'
import { type AnchoredReceipt, nameSignature, readAnchor, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { createFakeAnchor, editBlock, type FakeAnchor, logContract } from '../../test/anchors.ts'
import { createFakeLog } from '../../test/monitor/log/log.ts'
import {
  all,
  createLoggedWallet,
  first,
  kindsOf,
  message,
  now,
  manifests as plain,
  second,
  wallet,
} from '../../test/monitor/loggedWallet.ts'
import { stranger } from '../../test/monitor/node.ts'
import type { Manifest } from '../parseManifest.ts'
import { createLogTime, type MonitorRequest } from './monitorLogs.ts'
import { createMonitorMemory } from './monitorWallet.ts'
import { describeReport, type MonitorReport } from './report.ts'

const manifests: Manifest[] = plain.map((manifest) => ({ ...manifest, logContracts: [logContract] }))

let stack: ReturnType<typeof createLoggedWallet>
beforeEach(() => {
  stack = createLoggedWallet()
  stack.node.mine({ hash: nameSignature(first.receipt).txHash, from: wallet, nonce: 0 })
  stack.node.mine({ hash: nameSignature(second.receipt).txHash, from: wallet, nonce: 1 })
})

function publish(anchor: FakeAnchor, changes: Readonly<Record<string, unknown>> = {}): FakeAnchor {
  for (const { cid, bytes } of [anchor.block, ...anchor.parts]) stack.network.blocks.set(cid, bytes)
  stack.node.anchor(anchor, changes)
  return anchor
}

const monitor = (
  change: Partial<MonitorRequest> = {},
  more: Parameters<typeof stack.monitor>[2] = {},
): Promise<MonitorReport> => stack.monitor({ manifests, ...change }, undefined, more)

const countRequests = ({ block }: FakeAnchor) =>
  stack.network.requests.filter((request) => request.includes(block.cid)).length

function toPath({ block, parts }: FakeAnchor, index: number): string[] {
  const anchor = readAnchor(
    block.bytes,
    parts.map(({ bytes }) => bytes),
  )
  return anchor.toPath(index).map(toHex)
}

/** The rest of an hour. */
const rest = () => stack.node.rest(60)

describe('receipts in anchors', () => {
  test('make a report complete, without events', async () => {
    publish(createFakeAnchor(stack.log, [first], { size: 2 }))
    publish(createFakeAnchor(stack.log, [message, second], { from: 2 }))
    rest()
    const report = await monitor()
    expect([report.conclusion, report.proven, kindsOf(report)]).toEqual(['complete', 2, []])
    expect(report.logs).toMatchObject([{ entries: 3, proven: 3 }])
  })

  test('and events complement each other', async () => {
    publish(createFakeAnchor(stack.log, [message, second]))
    stack.node.publish(first)
    rest()
    expect(await monitor()).toMatchObject({ conclusion: 'complete', proven: 2 })
    // Also for a receipt that both name.
    stack.node.publish(second)
    rest()
    expect(await monitor()).toMatchObject({ conclusion: 'complete', proven: 2 })
  })

  test('may be listed late, with a path', async () => {
    const whole = createFakeAnchor(stack.log, [])
    const toLate = (receipt: AnchoredReceipt) =>
      receipt.index < 3 ? { ...receipt, path: toPath(whole, receipt.index) } : receipt
    publish(createFakeAnchor(stack.log, [], { size: 3 }))
    publish(createFakeAnchor(stack.log, all, { from: 3, change: toLate }))
    rest()
    expect(await monitor()).toMatchObject({ conclusion: 'complete', proven: 2 })
  })

  test('count only when their block is final', async () => {
    publish(createFakeAnchor(stack.log, all))
    stack.node.unsettled = 1
    expect(kindsOf(await monitor())).toContain('awaited')
    rest()
    expect(await monitor()).toMatchObject({ conclusion: 'complete' })
  })

  test('of another wallet or under another hash do not count', async () => {
    const change = (receipt: AnchoredReceipt) => ({ ...receipt, wallet: stranger as `0x${string}` })
    publish(createFakeAnchor(stack.log, all, { change }))
    rest()
    expect(kindsOf(await monitor())).toContain('no-receipt')
  })

  test('that name another receipt fail', async () => {
    const change = (receipt: AnchoredReceipt) => ({ ...receipt, cid: message.cid })
    publish(createFakeAnchor(stack.log, all, { change }))
    rest()
    const report = await monitor()
    expect(report.conclusion).toBe('receipt-failed')
    expect(report.findings.find(({ kind }) => kind === 'receipt-failed')?.detail).toMatch(/^subject: /)
  })

  test('of a log that ended count up to its size', async () => {
    publish(createFakeAnchor(stack.log, all))
    rest()
    const logContracts = [{ ...logContract, logs: logContract.logs.map((log) => ({ ...log, upTo: 4 })) }]
    const report = await monitor({ manifests: manifests.map((manifest) => ({ ...manifest, logContracts })) })
    expect(kindsOf(report)).toContain('no-receipt')
  })
})

describe('a missing anchor', () => {
  test.each(['block', 'part'])('whose %s is withheld leaves the report incomplete, without an alarm', async (what) => {
    publish(createFakeAnchor(stack.log, [first], { size: 2 }))
    const anchor = publish(createFakeAnchor(stack.log, [message, second], { from: 2 }))
    stack.network.blocks.delete(what === 'block' ? anchor.block.cid : (anchor.parts[0]?.cid ?? ''))
    rest()
    const memory = createMonitorMemory()
    const report = await monitor({}, { memory })
    expect([report.conclusion, report.proven]).toEqual(['incomplete', 1])
    expect(kindsOf(report).toSorted()).toEqual(['anchor-withheld', 'awaited', 'entry-unmatched 2', 'entry-unmatched 3'])
    expect(describeReport(report).findings[0]?.text).toMatch(
      /^1 anchor block could not be read: of 5 entries: withheld/,
    )
    for (const { cid, bytes } of [anchor.block, ...anchor.parts]) stack.network.blocks.set(cid, bytes)
    expect(await monitor({}, { memory })).toMatchObject({ conclusion: 'complete', findings: [] })
  })

  test('is left for the next run when the time is over', async () => {
    publish(createFakeAnchor(stack.log, all))
    rest()
    const memory = createMonitorMemory()
    const report = await monitor({}, { memory, logTime: createLogTime(0) })
    expect(report.findings).toContainEqual({
      kind: 'anchor-withheld',
      count: 1,
      detail: 'of 5 entries: withheld; the time was over',
    })
    expect(await monitor({}, { memory })).toMatchObject({ conclusion: 'complete' })
  })
})

describe('slow gateways', () => {
  /** Each request for a withheld block takes a minute. */
  function withhold(anchors: readonly FakeAnchor[]): () => Date {
    for (const { block } of anchors) stack.network.blocks.delete(block.cid)
    return () => new Date(now.getTime() + 60_000 * anchors.reduce((sum, anchor) => sum + countRequests(anchor), 0))
  }

  test('leave time to read the log', async () => {
    const sizes = [1, 2, 3, 4]
    const slow = withhold(sizes.map((size) => publish(createFakeAnchor(stack.log, [], { from: size - 1, size }))))
    for (const one of all) stack.node.publish(one)
    rest()
    const report = await monitor({}, { now: slow, logTime: createLogTime(120_000) })
    expect(kindsOf(report)).toContain('anchor-withheld')
    expect(report.logs).toMatchObject([{ entries: 3 }])
  })

  test('are tried last in the next run', async () => {
    const slow = withhold([publish(createFakeAnchor(stack.log, [], { size: 2 }))])
    publish(createFakeAnchor(stack.log, all.slice(1), { from: 2 }))
    stack.node.publish(first)
    rest()
    const memory = createMonitorMemory()
    for (const proven of [1, 2]) {
      const report = await monitor({}, { now: slow, memory, logTime: createLogTime(60_000) })
      expect(report.proven).toBe(proven)
    }
  })
})

test('anchors are read in the next run if a run fails in between', async () => {
  publish(createFakeAnchor(stack.log, [first], { size: 2 }))
  publish(createFakeAnchor(stack.log, [message, second], { from: 2 }))
  rest()
  const memory = createMonitorMemory()
  let calls = 0
  const failing = () => {
    calls += 1
    // While the second anchor is read. The clock is read for each anchor and each fetch.
    if (calls === 6) throw new Error('a failure of this process')
    return now
  }
  await expect(monitor({}, { memory, now: failing })).rejects.toThrow('a failure')
  expect(memory.anchors.get(wallet)?.unread.size).toBe(1)
  expect(await monitor({}, { memory })).toMatchObject({ conclusion: 'complete', proven: 2 })
})

test('anchors are not read again in the next run, also after a node was behind', async () => {
  const anchor = publish(createFakeAnchor(stack.log, all))
  rest()
  const memory = createMonitorMemory()
  for (const unsettled of [0, 70, 0]) {
    stack.node.unsettled = unsettled
    await monitor({}, { memory })
  }
  expect(await monitor({}, { memory })).toMatchObject({ conclusion: 'complete', findings: [] })
  expect(countRequests(anchor)).toBe(1)
})

describe('an alarm', () => {
  test('is raised in every run for an invalid anchor', async () => {
    const anchor = createFakeAnchor(stack.log, all)
    const bytes = editBlock(anchor.block, '"from":0', '"from":1')
    publish({ ...anchor, block: { cid: toCid(bytes), bytes } })
    rest()
    const memory = createMonitorMemory()
    for (let run = 0; run < 2; run++) {
      const report = await monitor({}, { memory })
      expect(kindsOf(report)).toContain('anchor-contradicts')
      expect(
        describeReport(report)
          .findings.map(({ text }) => text)
          .join(),
      ).toMatch(/The anchor block of the checkpoint in block \d+ is invalid/)
    }
  })

  test('is raised if the chain has another tree than the log', async () => {
    publish(createFakeAnchor(stack.log, all))
    stack.serve(stack.log.entries.slice(0, 4))
    stack.append({ kind: 'table', rows: 1, root: '11'.repeat(32), timeMs: now.getTime() })
    rest()
    const report = await monitor()
    expect(report.findings).toContainEqual(
      expect.objectContaining({ kind: 'anchor-contradicts', detail: 'it has another root at 5 entries' }),
    )
    expect(report.conclusion).toBe('log-lies')
  })

  test('is raised if the chain has another tree, also after an anchor that names another log', async () => {
    publish(createFakeAnchor(stack.log, all))
    const renamed = createFakeLog(stack.log.entries, undefined, 'log.example/other')
    renamed.cosignedAtS = stack.log.cosignedAtS
    renamed.append({ kind: 'table', rows: 2, root: '22'.repeat(32), timeMs: now.getTime() })
    publish(createFakeAnchor(renamed, [], { from: 5 }))
    stack.serve(stack.log.entries.slice(0, 4))
    stack.append({ kind: 'table', rows: 1, root: '11'.repeat(32), timeMs: now.getTime() })
    rest()
    expect((await monitor()).findings).toContainEqual(
      expect.objectContaining({ kind: 'anchor-contradicts', detail: 'it has another root at 5 entries' }),
    )
  })

  test('is not raised if the log shows less than the chain, which withholds', async () => {
    stack.log.close()
    stack.append({ kind: 'table', rows: 1, root: '11'.repeat(32), timeMs: now.getTime() })
    publish(createFakeAnchor(stack.log, all))
    stack.serve(stack.log.entries.slice(0, 5))
    rest()
    const { findings } = await monitor()
    expect(findings).toContainEqual(
      expect.objectContaining({
        kind: 'log-withholds',
        detail: 'it shows 5 entries, but the chain has a checkpoint of 6',
      }),
    )
  })
})
