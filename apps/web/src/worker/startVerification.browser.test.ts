import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import goldenCollateral from '../../../../packages/receipt/spec/golden/collateral.json?raw'
import goldenReceipt from '../../../../packages/receipt/spec/golden/receipt.json?raw'
import { createFakeNetwork, gatewayUrl, html, issueReceipt, rpcUrl, toTrustJson } from './service.fake.ts'
import { startVerification } from './startVerification.ts'
import { parseTrust } from './trust.ts'
import type { VerificationRequest } from './verifySubject.ts'

const issue = await issueReceipt()
const request: VerificationRequest = {
  subject: { kind: 'cid', cid: issue.cid },
  trust: parseTrust(toTrustJson(issue)),
  gateways: [gatewayUrl],
  isEventDue: true,
}
const toBytes = (text: string) => new TextEncoder().encode(text)

let network = createFakeNetwork(issue)
beforeEach(() => {
  network = createFakeNetwork(issue)
  vi.stubGlobal('fetch', network.fetch)
})
afterEach(() => {
  vi.unstubAllGlobals()
})

test('the worker judges, the page fetches, and progress is told', async () => {
  const progress: string[] = []
  const { verdict, steps } = await startVerification(request, { onProgress: (text) => progress.push(text) }).result
  expect(verdict).toBe('mock')
  expect(steps).toHaveLength(24)
  expect(progress).toEqual([
    'Fetching the receipt by its CID.',
    'Fetching the collateral that the receipt names.',
    'Checking every step.',
  ])
  expect(new Set(network.requests.map((entry) => entry.replace(/\?.*/, '')))).toEqual(
    new Set([
      `GET ${gatewayUrl}/ipfs/${issue.cid}`,
      `GET ${gatewayUrl}/ipfs/${issue.receipt.signer.collateral}`,
      `POST ${rpcUrl}/`,
    ]),
  )
})

test('the golden files verify offline, and one changed byte fails', async () => {
  const collateral = { name: 'collateral.json', bytes: toBytes(goldenCollateral) }
  const verify = (text: string) =>
    startVerification(
      {
        ...request,
        trust: { ...request.trust, contract: undefined },
        subject: { kind: 'files', files: [{ name: 'receipt.json', bytes: toBytes(text) }, collateral] },
      },
      { onProgress: () => {} },
    ).result
  expect((await verify(goldenReceipt)).verdict).toBe('mock')
  expect((await verify(goldenReceipt.replace('"nonce":0', '"nonce":1'))).verdict).toBe('failed')
  expect(network.requests).toEqual([])
})

test('it checks on a thread of its own, so that the page stays free', async () => {
  const started: string[] = []
  const { Worker } = globalThis
  class NotedWorker extends Worker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options)
      started.push(String(url))
    }
  }
  vi.stubGlobal('Worker', NotedWorker)
  onTestFinished(() => void vi.stubGlobal('Worker', Worker))
  await startVerification(request, { onProgress: () => {} }).result
  expect(started).toEqual([expect.stringContaining('verify.worker')])
})

test('what cannot be fetched is an error with a code and a reason', async () => {
  network.routes.push([gatewayUrl, html])
  await expect(startVerification(request, { onProgress: () => {} }).result).rejects.toMatchObject({
    code: 'receipt_unavailable',
    message: expect.stringContaining('gateway.test answers with a web page'),
  })
})

test('what cannot be handed to the worker ends it', async () => {
  const terminate = vi.spyOn(Worker.prototype, 'terminate')
  onTestFinished(() => terminate.mockRestore())
  const statedReceipt = () => 'functions cannot be cloned'
  const { result } = startVerification({ ...request, statedReceipt }, { onProgress: () => {} })
  await expect(result).rejects.toMatchObject({ name: 'VerificationError', code: 'internal' })
  expect(terminate).toHaveBeenCalledOnce()
})

test('once stopped it tells nothing more', async () => {
  const told: string[] = []
  const running = startVerification(request, { onProgress: (text) => told.push(text) })
  running.stop()
  const settled = vi.fn()
  running.result.then(settled, settled)
  // Another one, start to end, takes longer than the stopped one would have.
  await startVerification(request, { onProgress: () => {} }).result
  expect(told).toEqual([])
  expect(settled).not.toHaveBeenCalled()
})
