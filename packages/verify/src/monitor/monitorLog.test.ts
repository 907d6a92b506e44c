import type { LogEntry } from '@countersign/log'
import { encodeBlock, nameSignature, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { toManifest } from '../../test/issues.ts'
import { createFakeLog, logReceipt, nameEntry, origin, toEntry } from '../../test/monitor/log/log.ts'
import {
  all,
  authorized,
  boot,
  createLoggedWallet,
  ending,
  first,
  history,
  issueLogged,
  kindsOf,
  later,
  manifests,
  message,
  now,
  old,
  others,
  second,
  secret,
  signature,
  unlogged,
  wallet,
} from '../../test/monitor/loggedWallet.ts'
import { stranger, toItem } from '../../test/monitor/node.ts'
import { apiBaseUrl, gatewayUrl, rpcUrl } from '../../test/network.ts'
import { createFetchBytes } from '../fetchBytes.ts'
import { createLogsMemory, formatMonitorState, parseMonitorState } from './log/logMemory.ts'
import { createMonitorMemory, monitorWallet } from './monitorWallet.ts'
import { describeReport } from './report.ts'

let stack: ReturnType<typeof createLoggedWallet>
beforeEach(() => {
  stack = createLoggedWallet()
})

/** Without the address of a log. */
function monitorChain(gateways: readonly string[]) {
  const deps = { fetchBytes: createFetchBytes({ fetch: stack.network.fetch, timeoutMs: 5_000 }), now: () => now }
  return monitorWallet(deps, { address: wallet, rpc: rpcUrl, manifests, gateways, allowMock: true })
}

describe('an honest log', () => {
  test('raises nothing, and is complete up to its size', async () => {
    stack.publish(...all)
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'complete', proven: 2, completeTo: 2, findings: [] })
    expect(report.logs).toMatchObject([{ origin, size: 5, entries: 3, proven: 3, dropped: 0 }])
    expect(describeReport(report).headline).toBe('2 of 2 transactions have a proof; complete up to size 5 and nonce 2.')
    expect(describeReport(report).logs[0]).toContain('3 signatures of this wallet, 3 with a proof')
  })

  test('may erase unreleased signatures, and have entries of other wallets', async () => {
    stack.publish(...all)
    stack.append(signature(), ...others(1), ending('dropped'), boot(90))
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'complete', logs: [{ size: 9, entries: 4, proven: 3, dropped: 1 }] })
  })

  test.each([
    ['on-chain', all],
    ['off-chain', [message]],
  ])('is a gap if receipts of %s signatures name it and its address is unknown', async (_, issues) => {
    stack.publish(...issues)
    const report = await monitorChain([gatewayUrl])
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: undefined })
    expect(kindsOf(report)).toEqual(['log-not-checked'])
    expect(describeReport(report).unseen).toContain('signed messages')
  })

  test('whose receipts are unavailable does not end the run', async () => {
    stack.node.mine({ hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 0 })
    stack.publish(message)
    const report = await monitorChain([])
    expect(report).toMatchObject({ conclusion: 'used-elsewhere', logs: undefined })
    expect(kindsOf(report)).toEqual(['no-receipt', 'log-not-checked'])
  })

  test('of a service without a log is not missed, nor are receipts that the reader leaves out', async () => {
    stack.network.routes.unshift([`${apiBaseUrl}/log`, () => new Response(null, { status: 404 })])
    stack.publish(old)
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', logs: undefined, findings: [] })
    stack.network.blocks.delete(old.cid)
    const from = { nonce: 1 }
    expect(kindsOf(await stack.monitor({ from }))).toEqual(['wallet-unknown'])
  })

  test('leaves a gap if the service does not say whether it has one', async () => {
    stack.network.routes.unshift([`${apiBaseUrl}/log`, () => new Response(null, { status: 500 })])
    stack.publish(old)
    expect(await stack.monitor()).toMatchObject({ conclusion: 'incomplete', findings: [{ kind: 'log-unavailable' }] })
  })
})

describe('a wallet without an accepted receipt', () => {
  test('leaves a gap, because any signature in the log may be by its key', async () => {
    const report = await stack.monitor({ manifests: stack.withPolicy() })
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: [{ origin, size: 5, entries: undefined }] })
    expect(report.findings).toContainEqual({ kind: 'key-unknown', origin, count: 3 })
    expect(describeReport(report).logs.join()).not.toContain('no signature')
  })

  test('leaves a gap if its receipts are not accepted, because they may name another key', async () => {
    stack.publish(...all)
    const report = await stack.monitor({ manifests: stack.withPolicy(), allowMock: false })
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: [{ entries: undefined }] })
    expect(kindsOf(report)).toEqual(expect.arrayContaining(['receipt-not-accepted', 'key-unknown']))
  })

  test('leaves a gap if the log has no signatures, because its enclave may have other logs', async () => {
    stack.serve([boot(0)])
    const report = await stack.monitor({ manifests: stack.withPolicy() })
    expect([report.conclusion, kindsOf(report)]).toEqual(['incomplete', ['logs-unknown', 'wallet-unknown']])
  })
})

describe('signatures that are not in the log', () => {
  test('from before it are explained and counted', async () => {
    stack.serve([boot(0)])
    const next = logReceipt(stack.log, await issueLogged(2, { txMetadata: { nonce: 1 } }))
    stack.addBlocks(next)
    stack.publish(old, next)
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'complete', proven: 2, completeTo: 2, logs: [{ size: 3, entries: 1 }] })
    expect(report.findings).toEqual([{ kind: 'before-log', count: 1 }])
    expect(describeReport(report).findings).toEqual([
      { severity: 'note', text: '1 signature is from before there was a log.' },
    ])
  })

  test('from before it fail for a reader who requires witnesses', async () => {
    stack.serve([boot(0)])
    stack.publish(old)
    const report = await stack.monitor({ manifests: stack.withPolicy() })
    expect(report).toMatchObject({ conclusion: 'not-in-manifest', proven: 0 })
    expect(kindsOf(report)).toEqual(['receipt-not-listed', 'before-log', 'logs-unknown'])
  })

  test('are not searched for if no receipt names its witnesses', async () => {
    stack.publish(old)
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: [] })
    expect(kindsOf(report)).toEqual(['log-not-checked'])
  })

  test('from after it are by a key that is used elsewhere', async () => {
    stack.publish(...all, unlogged)
    const report = await stack.monitor()
    expect(report.conclusion).toBe('used-elsewhere')
    expect(report.findings).toMatchObject([{ kind: 'not-logged', txHash: nameSignature(unlogged.receipt).txHash }])
  })

  test('from after it was first seen too, however far ahead its start is dated', async () => {
    stack.serve([{ ...boot(0), timeMs: later(86_400).getTime() }])
    stack.log.cosignedAtS = later(3).getTime() / 1000
    const [logs, change] = [createLogsMemory(), { manifests: stack.withPolicy() }]
    stack.publish(old)
    expect(kindsOf(await stack.monitor(change, logs, { now: () => later(3) }))).toContain('before-log')
    stack.node.mine({ hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 1 })
    stack.publish(unlogged)
    expect(kindsOf(await stack.monitor(change, logs, { now: () => later(10) }))).toContain('not-logged')
  })

  test('and without a receipt are by a key that is used elsewhere', async () => {
    stack.publish(...all)
    stack.node.mine({ hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 2 })
    stack.node.rest(60)
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'used-elsewhere', completeTo: 2 })
    expect(kindsOf(report)).toEqual(['no-receipt'])
  })
})

describe('nonces that authorizations use (EIP-7702)', () => {
  test('are explained by the receipt, which is in the log', async () => {
    const issued = logReceipt(stack.log, authorized)
    stack.addBlocks(issued)
    stack.publish(...all)
    stack.node.mine({ hash: `0x${'aa'.repeat(32)}`, from: stranger, nonce: 4, authorizationList: [toItem(issued)] })
    stack.node.publish(issued)
    const report = await stack.monitor()
    expect(report).toMatchObject({
      conclusion: 'complete',
      proven: 3,
      completeTo: 3,
      logs: [{ entries: 4, proven: 4 }],
    })
    expect(kindsOf(report)).toEqual(['authorization'])
  })
})

describe('entries without a receipt', () => {
  test('of a running boot are hidden', async () => {
    stack.publish(...all)
    stack.log.append(signature())
    const report = await stack.monitor()
    expect(report.conclusion).toBe('hidden')
    expect(report.findings).toEqual([{ kind: 'hidden', origin, index: 4, leaf: nameEntry(secret).leaf }])
    expect(describeReport(report).headline).toMatch(/^Something is hidden\. 2 of 2 transactions have a proof/)
  })

  test('are awaited for a while', async () => {
    stack.publish(...all)
    stack.log.append(signature({ timeMs: later(75 * 60).getTime() }))
    expect(kindsOf(await stack.monitor({ graceS: 3600 }))).toEqual(['entry-awaited 4'])
    expect(await stack.monitor({ graceS: 3600 })).toMatchObject({ conclusion: 'incomplete' })
  })

  test('are awaited, even if a witness’s clock is slow', async () => {
    stack.publish(...all)
    const head = later(60 * (stack.node.blocks.length - 1))
    stack.log.append(signature({ timeMs: head.getTime() - 60_000 }))
    Object.assign(stack.log, { cosignedAtS: head.getTime() / 1000, cosigners: [0, 1], delaysS: [0, -900, 0] })
    expect(kindsOf(await stack.monitor({}, createLogsMemory(), { now: () => head }))).toEqual(['entry-awaited 4'])
  })

  test.each([
    ['all witnesses are right', [0, 0, 0]],
    ['the clock of one is ahead', [0, 43_200, 0]],
  ])('and dated ahead are awaited from when they were first seen, from run to run: %s', async (_, delaysS) => {
    stack.publish(...all)
    stack.log.append(signature({ timeMs: later(11 * 3600).getTime() }))
    Object.assign(stack.log, { cosigners: [0, 1], delaysS })
    let logs = createLogsMemory()
    const kinds: string[][] = []
    // Blocks are a minute apart, and the log is cosigned again for each run.
    for (const minutes of [0, 9, 1]) {
      stack.node.rest(minutes)
      const head = later(60 * (stack.node.blocks.length - 1))
      stack.log.cosignedAtS = head.getTime() / 1000
      kinds.push(kindsOf(await stack.monitor({}, logs, { now: () => head })))
      logs = parseMonitorState(new TextEncoder().encode(formatMonitorState(logs)))
    }
    expect(kinds).toEqual([['entry-awaited 4'], ['entry-awaited 4'], ['hidden 4']])
  })

  test.each([
    ['of a boot that is over', [signature(), boot(50)]],
    ['that the enclave reported', [signature(), ending('unacknowledged')]],
    ['that it erased and reported', [signature(), signature(), ending('dropped'), ending('unacknowledged')]],
  ])('%s are unresolved', async (_, entries) => {
    stack.publish(...all)
    stack.append(...entries)
    const report = await stack.monitor()
    expect(report.conclusion).toBe('unresolved')
    expect(kindsOf(report)).toEqual(['unresolved 4'])
  })

  test('that the enclave reported are resolved if they have a receipt after all', async () => {
    stack.publish(...all)
    stack.log.append(ending('unacknowledged', second))
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete' })
  })

  test('may belong to an unavailable receipt, but two cannot belong to one', async () => {
    stack.publish(...all)
    stack.network.blocks.delete(message.cid)
    expect(kindsOf(await stack.monitor())).toEqual(['receipt-unavailable', 'entry-unmatched 2'])
    stack.log.append(signature())
    const report = await stack.monitor()
    expect(report.conclusion).toBe('hidden')
    expect(kindsOf(report)).toEqual(['receipt-unavailable', 'hidden 2', 'hidden 5'])
  })

  test('of a repeated call that were all erased raise nothing (log-v1 §1)', async () => {
    stack.publish(...all)
    stack.append(signature(), signature(), ending('dropped'))
    const logs = [{ size: 8, entries: 4, proven: 3, dropped: 1 }]
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', findings: [], logs })
  })

  test('of a repeated call of which one has a receipt raise nothing', async () => {
    stack.publish(...all)
    stack.append(toEntry(second))
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', logs: [{ size: 6, entries: 3, proven: 3 }] })
  })

  test('of two starts of which one erased them raise nothing', async () => {
    stack.publish(...all)
    stack.append(boot(50), toEntry(second), ending('dropped', second))
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', findings: [] })
  })

  test('are not hidden if only few receipts are checked', async () => {
    stack.publish(...all)
    expect(kindsOf(await stack.monitor({ maxReceipts: 2 }))).toEqual(['not-judged', 'entry-unmatched 2'])
  })
})

describe('a log that lies', () => {
  const contradictions: [string, () => readonly LogEntry[]][] = [
    ['says that something was erased, and it is mined', () => [ending('dropped', first)]],
    ['says that something was erased, and it has a receipt', () => [ending('dropped', message)]],
    ['erases by its second entry what has a receipt', () => [toEntry(second), ending('dropped', second)]],
    ['has a signature again that was erased', () => [signature(), ending('dropped'), signature()]],
    ['erases twice', () => [signature(), ending('dropped'), ending('dropped')]],
    ['erases what it does not have', () => [ending('dropped')]],
    ['erases what an earlier boot signed', () => [signature(), boot(50), ending('dropped')]],
    ['erases and reports the same', () => [signature(), ending('dropped'), ending('unacknowledged')]],
  ]
  test.each(contradictions)('since it %s', async (_, entries) => {
    stack.publish(...all)
    stack.append(...entries())
    const report = await stack.monitor()
    expect(report.findings.filter(({ kind }) => kind === 'log-lies')).toHaveLength(1)
    expect(['log-lies', 'hidden']).toContain(report.conclusion)
  })

  const answering = (path: string, answer: () => Uint8Array<ArrayBuffer> | string) => () => {
    stack.log.lie = (asked) => (asked === path ? answer() : undefined)
  }
  const lies: [string, () => void, RegExp][] = [
    [
      'too few cosignatures',
      () => Object.assign(stack.log, { cosigners: [1] }),
      /too few witnesses cosigned \(1 of 2\)/,
    ],
    [
      'a cosignature that does not hold',
      answering('checkpoint', () => {
        const [note, other] = [stack.log.toNote(), stack.log.toNote(3)]
        return `${note.split('\n\n')[0]}\n\n${other.split('\n\n')[1]}`
      }),
      /a key did not sign this note/,
    ],
    ['another key', () => Object.assign(stack.log, { key: createFakeLog([], 'other').key }), /different keys/],
    ['an invalid checkpoint', answering('checkpoint', () => 'x'), /malformed note/],
    [
      'a root that does not match its entries',
      answering('checkpoint', () => {
        const other = createFakeLog([...stack.log.entries.slice(0, 3), boot(50)])
        other.cosignedAtS = stack.log.cosignedAtS
        return other.toNote()
      }),
      /root of its checkpoint of 5 entries does not match its entries/,
    ],
    [
      'a tile that does not match its entries',
      answering('tile/0/000.p/5', () => new Uint8Array(160)),
      /tile 0 of level 0 does not match its entries/,
    ],
    [
      'a tile that is cut',
      answering('tile/0/000.p/5', () => new Uint8Array(128)),
      /tile 0 of level 0: the tile has the wrong width/,
    ],
    [
      'a bundle that is cut',
      answering('tile/entries/000.p/5', () => new Uint8Array(59)),
      /the bundle 0: malformed tile, the bundle has more entries/,
    ],
    [
      'another history than its receipts',
      () => stack.serve([boot(0), boot(1), boot(2), ...history.entries.slice(1)]),
      /shows two histories: the receipt of 0x\w{64} is in another tree of 2 entries/,
    ],
    ['a beginning without a boot', () => stack.serve(history.entries.slice(1)), /two histories/],
  ]
  test.each(lies)('because of %s', async (_, plant, detail) => {
    stack.publish(...all)
    plant()
    const report = await stack.monitor()
    const finding = report.findings.find(({ kind }) => kind === 'log-lies')
    expect(finding).toMatchObject({ origin, detail: expect.stringMatching(detail) })
    expect(report.conclusion).toBe('log-lies')
  })

  test('because it does not begin with the start of an enclave', async () => {
    stack.serve(others(2))
    stack.publish(old)
    const report = await stack.monitor({ manifests: stack.withPolicy() })
    expect(report.findings).toContainEqual(
      expect.objectContaining({
        kind: 'log-lies',
        index: 0,
        detail: 'it does not begin with the start of an enclave',
      }),
    )
  })

  test('for a reader whose required witnesses did not cosign', async () => {
    stack.publish(...all)
    const [own = ''] = createFakeLog([], 'other').witnesses
    const log = { witnesses: [own], quorum: 1 }
    const { conclusion, findings } = await stack.monitor({ manifests: [...manifests, { ...toManifest(first), log }] })
    expect(conclusion).toBe('not-in-manifest')
    expect(findings.map(({ kind }) => kind)).toContain('receipt-not-listed')
  })
})

describe('a configuration that the manifest does not list', () => {
  const unknown = 'c1'.repeat(32)

  test('is reported once per log, with its first start', async () => {
    stack.publish(...all)
    stack.append(boot(50, unknown), boot(51, unknown), boot(52))
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'not-in-manifest', proven: 2, completeTo: 2 })
    expect(report.findings).toEqual([{ kind: 'boot-not-listed', origin, index: 4, configHash: unknown, count: 2 }])
  })

  test('does not hide an alarm', async () => {
    stack.publish(...all)
    stack.append(boot(50, unknown), signature())
    expect(await stack.monitor()).toMatchObject({ conclusion: 'hidden' })
  })
})

describe('a transaction that was signed again after a database restore', () => {
  const signAgain = async () => {
    const again = logReceipt(stack.log, await issueLogged(30, { txMetadata: { nonce: 1 } }))
    stack.addBlocks(again)
    return again
  }

  test('has two receipts, and nothing is hidden', async () => {
    const again = await signAgain()
    stack.publish(...all)
    stack.node.publish(again)
    expect(nameSignature(again.receipt).txHash).toBe(nameSignature(second.receipt).txHash)
    const logs = [{ size: 6, entries: 4, proven: 4 }]
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', proven: 2, findings: [], logs })
  })

  test('is checked again when its second receipt is published after the first run', async () => {
    const memory = createMonitorMemory()
    const monitor = () => stack.monitor({}, createLogsMemory(), { memory })
    stack.publish(...all)
    expect(await monitor()).toMatchObject({ conclusion: 'complete' })
    const again = await signAgain()
    expect(await monitor()).toMatchObject({ conclusion: 'hidden' })
    stack.node.publish(again)
    expect(await monitor()).toMatchObject({ conclusion: 'complete', findings: [] })
  })

  test('does not hide an entry behind a second receipt that does not verify', async () => {
    const again = await signAgain()
    const receipt = { ...again.receipt, signer: { ...again.receipt.signer, inclusion: { leafIndex: 1, path: [] } } }
    const bytes = encodeBlock('attestation', receipt)
    const forged = { ...again, receipt, bytes, cid: toCid(bytes) }
    stack.addBlocks(forged)
    stack.publish(...all)
    stack.node.publish(forged)
    expect(kindsOf(await stack.monitor())).toEqual(['hidden 4'])
  })

  test('is not complete if its second receipt cannot be fetched', async () => {
    const again = await signAgain()
    stack.publish(...all)
    stack.node.publish(again)
    stack.network.blocks.delete(again.cid)
    expect(kindsOf(await stack.monitor())).toEqual(['entry-unmatched 4'])
  })
})
