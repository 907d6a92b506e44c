import type { LogEntry } from '@countersign/log'
import { nameSignature, toCid } from '@countersign/receipt'
import type { Hex } from '@countersign/sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { render } from 'vitest-browser-react'
import { issue, issueGoldenV2, signedAt, toManifest } from '../../../../packages/verify/test/issues.ts'
import { answerAsWitness, createFakeLog, logReceipt, origin } from '../../../../packages/verify/test/monitor/log/log.ts'
import { createFakeNode } from '../../../../packages/verify/test/monitor/node.ts'
import {
  apiBaseUrl,
  createFakeNetwork,
  type FakeNetwork,
  gatewayUrl,
  json,
  rpcUrl,
} from '../../../../packages/verify/test/network.ts'
import { toConfig } from '../../test/config.ts'
import { ConfigContext, type WebConfig } from '../config.ts'
import { MonitorCard } from './MonitorCard.tsx'

const signed = await issue()
const { from: wallet, txHash } = nameSignature(signed.receipt)
const foreign = { hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 1 }
const original = globalThis.fetch

const history = createFakeLog()
const plain = { treeSize: 1, leafIndex: 0, batchSequence: 0 }
const boot = (configHash = ''): LogEntry => ({
  kind: 'boot',
  bootId: 'b0'.repeat(16),
  configHash,
  timeMs: signedAt.getTime() - 1000,
})

let node: ReturnType<typeof createFakeNode>
let network: FakeNetwork
beforeEach(() => {
  network = createFakeNetwork(signed)
  node = createFakeNode({ wallet })
  // The manifest's contract starts at block 7.
  node.rest(7)
  // A service without a log.
  network.routes.push([rpcUrl, node.answer], [`${apiBaseUrl}/log`, () => json({ logs: [] })])
  globalThis.fetch = (input, init) =>
    /^https:\/\/[a-z]+\.test/.test(String(input)) ? network.fetch(String(input), init) : original(input, init)
  node.mine({ hash: txHash, from: wallet, nonce: 0 })
  node.publish(signed)
})
afterEach(() => {
  globalThis.fetch = original
})

function open(change: WebConfig = toConfig(signed)) {
  const config: WebConfig = { ...change, ipfsGatewayUrl: gatewayUrl }
  return render(
    <ConfigContext value={config}>
      <MonitorCard address={wallet as Hex} />
    </ConfigContext>,
  )
}

test('counts the wallet’s proofs on request and states the limits of the check', async () => {
  const screen = await open()
  expect(node.asked).toEqual([])
  await screen.getByRole('button', { name: 'Check all transactions' }).click()
  await expect
    .element(screen.getByRole('alert'))
    .toHaveTextContent('1 of 1 transaction has a proof; complete up to nonce 1.')
  await expect.element(screen.getByText(/signed messages and typed data/)).toBeVisible()
})

test('raises an alarm for a transaction without a receipt, also in a second check', async () => {
  const screen = await open()
  await screen.getByRole('button', { name: 'Check all transactions' }).click()
  await expect.element(screen.getByText(/complete up to nonce 1/)).toBeVisible()
  node.mine(foreign)
  node.rest(20)
  await screen.getByRole('button', { name: 'Check again' }).click()
  await expect.element(screen.getByText(/The key is used elsewhere/)).toBeVisible()
  await expect.element(screen.getByText(new RegExp(foreign.hash))).toBeVisible()
})

test('asks the site’s witnesses about a log that the service hides', async () => {
  const spare = 'log.example/enclave-b'
  const setting = { origins: [origin, spare], witnesses: history.witnesses, quorum: 2 }
  const signing = await issueGoldenV2({ ...plain, signedAt, log: { origin }, settings: { log: setting } })
  const log = createFakeLog()
  log.append(boot(signing.anchors.configHashes[0]))
  const issued = logReceipt(log, signing)
  log.cosignedAtS = Math.floor(Date.now() / 1000) - 60
  network.routes.unshift([`${apiBaseUrl}/log`, (url) => log.answer(url)])
  for (const block of [issued.bytes, issued.collateral, ...Object.values(issued.blocks)]) {
    network.blocks.set(toCid(block), Uint8Array.from(block))
  }
  node.blocks.splice(8)
  node.mine({ hash: nameSignature(issued.receipt).txHash, from: wallet, nonce: 0 })
  node.publish(issued)
  node.rest(20)
  const config = toConfig(issued)
  const witnessUrls = ['https://wa.test', 'https://wb.test']
  const screen = await open({ ...config, trust: { ...toManifest(issued), witnessUrls } })
  await screen.getByRole('button', { name: 'Check all transactions' }).click()
  await expect.element(screen.getByText(/^Not complete/)).toBeVisible()
  for (const [place, url] of witnessUrls.entries()) {
    network.routes.unshift([url, (asked) => answerAsWitness(asked, { place, logs: [], at: new Date() })])
  }
  await screen.getByRole('button', { name: 'Check again' }).click()
  await expect.element(screen.getByText(/complete up to size 3 and nonce 1/)).toBeVisible()
})

test('reports nothing as complete if the node fails', async () => {
  node.lie = (method) => (method === 'eth_getLogs' ? new Error('block range is too wide') : undefined)
  const screen = await open()
  await screen.getByRole('button', { name: 'Check all transactions' }).click()
  await expect.element(screen.getByText(/The check failed/)).toBeVisible()
  expect(screen.container.textContent).not.toContain('complete up to')
})

test('hides the check if the site has no contract', async () => {
  const { attestations: _, ...config } = toConfig(signed)
  const screen = await render(
    <ConfigContext value={config}>
      <MonitorCard address={wallet as Hex} />
    </ConfigContext>,
  )
  expect(screen.container.textContent).toBe('')
})
