import type { Progress, VerifyRequest } from '@countersign/verify'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { issueGolden, toManifest } from '../../../../packages/verify/test/issues.ts'
import { createFakeNetwork, gatewayUrl, rpcUrl } from '../../../../packages/verify/test/network.ts'
import { startVerification } from './startVerification.ts'

const issue = await issueGolden()
const manifest = toManifest(issue)
const request: VerifyRequest = {
  subject: { kind: 'cid', cid: issue.cid },
  manifests: [manifest],
  gateways: [gatewayUrl],
  rpc: rpcUrl,
  allowMock: true,
}

let network = createFakeNetwork(issue)
beforeEach(() => {
  network = createFakeNetwork(issue)
  vi.stubGlobal('fetch', network.fetch)
})
afterEach(() => {
  vi.unstubAllGlobals()
})

test('the worker verifies, the page fetches, and progress is reported', async () => {
  const progress: Progress[] = []
  const { verdict, steps } = await startVerification(request, { onProgress: (entry) => progress.push(entry) }).result
  expect(verdict).toBe('mock')
  expect(steps).toHaveLength(29)
  expect(progress).toEqual([
    ...['receipt', 'collateral', 'steps'].map((phase) => ({ kind: 'phase', phase })),
    ...steps.map((step) => ({ kind: 'step', step })),
  ])
  expect(new Set(network.requests.map((entry) => entry.replace(/\?.*/, '')))).toEqual(
    new Set([
      `GET ${gatewayUrl}/ipfs/${issue.cid}`,
      `GET ${gatewayUrl}/ipfs/${issue.receipt.signer.collateral}`,
      `POST ${rpcUrl}/`,
    ]),
  )
})

test('runs in a separate thread, so the page stays responsive', async () => {
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

test('ends the worker if the request can’t be cloned', async () => {
  const terminate = vi.spyOn(Worker.prototype, 'terminate')
  onTestFinished(() => terminate.mockRestore())
  const unclonable = { toString: () => 'functions cannot be cloned' }
  const { result } = startVerification({ ...request, ...unclonable }, { onProgress: () => {} })
  await expect(result).rejects.toMatchObject({ name: 'ServiceError', code: 'internal' })
  expect(terminate).toHaveBeenCalledOnce()
})

test('reports nothing after a stop', async () => {
  const told: Progress[] = []
  const running = startVerification(request, { onProgress: (entry) => told.push(entry) })
  running.stop()
  const settled = vi.fn()
  running.result.then(settled, settled)
  // Another full run takes longer than the stopped one would have.
  await startVerification(request, { onProgress: () => {} }).result
  expect(told).toEqual([])
  expect(settled).not.toHaveBeenCalled()
})
