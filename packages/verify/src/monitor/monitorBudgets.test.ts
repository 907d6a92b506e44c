import { nameSignature } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { agentRule, approveWith, spending, transfer } from '../../../receipt/test/vaults.ts'
import { toManifest } from '../../test/issues.ts'
import { createFakeLog, logReceipt, origin } from '../../test/monitor/log/log.ts'
import { boot, createLoggedWallet, issueLogged, kindsOf, later, now } from '../../test/monitor/loggedWallet.ts'
import { createFakeNode } from '../../test/monitor/node.ts'
import { rpcUrl } from '../../test/network.ts'
import { createLogsMemory } from './log/logMemory.ts'

const AMOUNT = 2_500_000
const FEE = 120_000_000_000_000
const timeS = later(-12).getTime() / 1000
const day = Math.floor(timeS / 86_400)

/** A payment of the vault, counted as one after this many others. */
const pay = (nonce: number, { sequence, earlier }: { sequence: number; earlier: number }) => {
  const count = (amount: number) => ({ before: String(amount * earlier), after: String(amount * (earlier + 1)) })
  const items = [
    { budget: 0, window: day, ...count(AMOUNT) },
    { budget: 1, window: 0, ...count(AMOUNT) },
    { budget: 2, window: day, ...count(FEE) },
  ]
  const approve = approveWith(spending, { by: [1], expiresMs: later(nonce + 60).getTime() })
  const budget = { time: timeS, sequence, isRepeated: false, items }
  const vault = { policy: spending, approve, rule: agentRule, isSessionless: true, budget }
  return issueLogged(nonce, { vault, txMetadata: { ...transfer, nonce }, log: { origin } })
}

async function monitor(payments: readonly Awaited<ReturnType<typeof pay>>[]) {
  const stack = createLoggedWallet()
  stack.serve([])
  const log = createFakeLog([boot(0, payments[0]?.anchors.configHashes[0])])
  log.cosignedAtS = now.getTime() / 1000 - 60
  stack.log = log
  const issues = payments.map((issue) => logReceipt(log, issue))
  const [first] = issues
  if (first === undefined) throw new Error('no payment')
  const { from } = nameSignature(first.receipt)
  const node = createFakeNode({ wallet: from })
  node.rest(7)
  for (const [nonce, issue] of issues.entries()) {
    stack.addBlocks(issue)
    node.mine({ hash: nameSignature(issue.receipt).txHash, from, nonce })
    node.publish(issue)
  }
  node.rest(60)
  stack.network.routes.unshift([rpcUrl, node.answer])
  return stack.monitor({ address: from, manifests: [toManifest(first)] }, createLogsMemory())
}

test('payments of a vault may leave out changes that are not public', async () => {
  const report = await monitor([await pay(0, { sequence: 1, earlier: 0 }), await pay(1, { sequence: 4, earlier: 1 })])
  expect(report).toMatchObject({
    conclusion: 'complete',
    proven: 2,
    findings: [{ kind: 'budget-not-shown', count: 2 }],
  })
})

test.each([
  ['the same sequence number', { sequence: 1, earlier: 1 }],
  ['the same amounts', { sequence: 2, earlier: 0 }],
])('payments of a vault that were counted with %s raise an alarm', async (_, second) => {
  const report = await monitor([await pay(0, { sequence: 1, earlier: 0 }), await pay(1, second)])
  expect(report.conclusion).toBe('used-elsewhere')
  expect(new Set(kindsOf(report))).toEqual(new Set(['budget-contradicts']))
})
