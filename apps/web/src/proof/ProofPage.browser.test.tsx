import type { ProofPayload } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { page, userEvent } from 'vitest/browser'
import { issueGolden, issueGoldenV2, issue as issueReceipt, slug } from '../../../../packages/verify/test/issues.ts'
import {
  apiBaseUrl,
  createFakeNetwork,
  gatewayUrl,
  json,
  rpcUrl,
  toGatewayProof as toProof,
} from '../../../../packages/verify/test/network.ts'
import { toConfig } from '../../test/config.ts'
import { alert, heading, PATIENCE, renderPage, statusOf } from '../../test/report/reportPage.tsx'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { createWarmWorker } from '../../test/worker/warmWorker.ts'
import type { WebConfig } from '../config.ts'
import { ProofPage } from './ProofPage.tsx'
import { POLL_INTERVAL_MS } from './useProof.ts'

const issue = await issueGolden()
const other = await issueReceipt({ txMetadata: { nonce: 1 } })
const logged = await issueGoldenV2({ log: {} })
const honest = toProof(issue)
const proofUrl = `${apiBaseUrl}/proof/`

/** The height of the app's header and footer. */
const SHELL_HEIGHT = 250

const WarmWorker = createWarmWorker()

let network = createFakeNetwork(issue)
beforeEach(() => {
  network = createFakeNetwork(issue)
  vi.stubGlobal('fetch', network.fetch)
  vi.stubGlobal('Worker', WarmWorker)
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const show = (config: Partial<WebConfig> = {}, shownSlug = slug) =>
  renderPage(<ProofPage slug={shownSlug} />, { ...toConfig(issue), ...config })

const say = (change: Partial<ProofPayload>) => network.routes.push([proofUrl, () => json({ ...honest, ...change })])
const lies = () =>
  [...document.querySelectorAll('[data-verdict="false"]')].map((element) => element.getAttribute('data-claim'))
const stages = () => [...document.querySelectorAll('[data-stage]')].map((element) => element.getAttribute('data-state'))
const openParts = () =>
  [...document.querySelectorAll('details[open] > summary')].map(
    (summary) => summary.querySelector('h2, h3')?.textContent,
  )
const open = (name: string) => page.getByRole('heading', { name }).click()

describe('a complete proof', () => {
  test('is shown, verified by the browser and marked MOCK', async () => {
    await show()
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    // Fetched once. The copy in the response isn't the one that is verified.
    expect(network.requests.filter((entry) => entry.includes('/proof/'))).toHaveLength(1)
    expect(network.requests.some((entry) => entry.includes(`/ipfs/${issue.cid}`))).toBe(true)
    await expect.element(page.getByText(/simulated\. It proves nothing about hardware/)).toBeVisible()
    expect(document.body.textContent).not.toMatch(/genuine|Intel SGX Root CA/i)
    expect(document.body.textContent).not.toMatch(/you (?:trust|name)|your anchors/i)
    expect(stages()).toEqual(['done', 'done', 'done', 'done'])
    expect(document.querySelectorAll('[data-status="pass"]')).toHaveLength(27)
    expect(document.querySelectorAll('.transcript-step-mock')).toHaveLength(16)
    for (const step of ['event', 'time-bound']) {
      const sentence = document.querySelector(`[data-step="${step}"]`)?.textContent
      expect(sentence).toContain('According to the operator’s node')
    }
    const signed = document.querySelector('.signed')?.textContent
    expect(signed).toMatch(
      /^What was signedA payment of 1 ETHTo 0x\w{40} on Local chain\. The wallet 0x\w{40} signed it on/,
    )
    expect(signed).toContain(
      new Date(issue.receipt.transaction.signedAt).toLocaleDateString('en-GB', { dateStyle: 'long' }),
    )
    expect(lies()).toEqual([])
    expect(document.querySelectorAll('[data-claim]')).toHaveLength(9)
    expect(document.querySelector('.command')?.textContent).toContain(`npm run verify -- ${slug} --api ${apiBaseUrl}`)
  })

  test('shows the log entry and its cosigners, or that there is no log', async () => {
    vi.stubGlobal('fetch', createFakeNetwork(logged).fetch)
    const page = await show(toConfig(logged))
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    const step = () => document.querySelector('[data-step="log"]')?.textContent
    expect([statusOf('log'), step()]).toEqual(['pass', expect.stringContaining('This signature is in a log')])
    expect(step()).toContain('Entry 5 of the log log.example/enclave-a, in a tree of 9.')
    const signed = document.querySelector('.signed')?.textContent
    expect(signed).toContain('entry 5 of log.example/enclave-a, tree size 9')
    expect(signed).toContain('3 of 3 cosigned (2 required)')
    await page.unmount()

    vi.stubGlobal('fetch', network.fetch)
    await show()
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    expect([statusOf('log'), step()]).toEqual([
      'skip',
      expect.stringContaining('nothing proves that there are no other signatures'),
    ])
  })

  test('links to gateway and explorer and offers the bytes as downloads', async () => {
    await show()
    await heading('Download the evidence').toBeVisible()
    const links = [...document.querySelectorAll('a')]
    const hrefs = links.map(({ href }) => href)
    expect(hrefs).toContain(`${gatewayUrl}/ipfs/${issue.cid}`)
    expect(hrefs).toContain(`https://explorer.test/tx/${honest.txHash}`)
    expect(hrefs).toContain(`https://explorer.test/tx/${honest.onchainTxHash}`)
    expect(links.map(({ textContent }) => textContent)).toContain(
      'View raw receipt for the receipt (CID), in a new tab',
    )
    const saved = links.filter(({ download }) => download !== '')
    expect(saved.map(({ download }) => download)).toEqual([
      `${issue.cid}.json`,
      `${issue.receipt.signer.collateral}.json`,
    ])
    await expect.poll(() => saved[0]?.href).toMatch(/^blob:/)
    vi.unstubAllGlobals()
    const bytes = await (await fetch(saved[0]?.href ?? '')).arrayBuffer()
    expect(toCid(new Uint8Array(bytes))).toBe(issue.cid)
  })

  test('is not verified if mock evidence isn’t allowed, and says why', async () => {
    await show({ allowMock: false })
    await heading('Not verified: MOCK evidence').toBeVisible()
    expect(document.querySelector('.verdict')?.getAttribute('data-verdict')).toBe('mock')
    expect(document.querySelector('.verdict.tone-bad')).not.toBeNull()
    expect(document.querySelector('.signed')?.textContent).toMatch(
      /^Stated in the receiptA payment of 1 ETHThis is not proven, only stated in the receipt: To 0x/,
    )
    expect(statusOf('quote')).toBe('pass')
    expect(lies()).toEqual(['kmsQuoteVerified'])
  })

  test('shows and ignores invalid anchors', async () => {
    await show({ trust: { ...(toConfig(issue).trust as object), entropyKey: [] } })
    await expect.element(page.getByText(/entropyKey: unknown member/)).toBeVisible()
    await heading('Not verified: MOCK evidence').toBeVisible()
  })
})

describe('a service with false claims', () => {
  test('reports a changed copy of the receipt', async () => {
    say({ receipt: other.receipt })
    await show()
    await heading('Not verified: the service says something false about this receipt').toBeVisible()
    expect(lies()).toEqual(['receipt'])
    expect(openParts()).toContain('Reported by the service')
  })
})

describe('without a receipt', () => {
  test('reports an unknown slug and doesn’t retry', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    network.routes.push([proofUrl, () => json({ code: 'proof_not_found', title: 'there is no such proof' }, 404)])
    await show()
    await alert('Proof not found')
    await vi.advanceTimersByTimeAsync(3 * POLL_INTERVAL_MS)
    expect(network.requests).toHaveLength(1)
  })

  test('recovers when the network comes back', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let isDown = true
    network.routes.push([
      proofUrl,
      () =>
        isDown
          ? Promise.reject(new TypeError('Failed to fetch'))
          : json({ ...honest, status: 'pin_failed', ipfsCid: null, receipt: null }),
    ])
    await show()
    await alert('service is unavailable')
    isDown = false
    await vi.advanceTimersByTimeAsync(POLL_INTERVAL_MS)
    await expect.element(page.getByText('The receipt isn’t public')).toBeVisible()
    expect(page.getByRole('alert').elements()).toHaveLength(0)
  })

  test('shows no verdict for the bytes of another receipt and offers a retry', async () => {
    const isBad = { current: true }
    const route = async () => (isBad.current ? new Response(other.bytes) : new Response(issue.bytes))
    network.routes.push([`${gatewayUrl}/ipfs/${issue.cid}`, route], [`${apiBaseUrl}/ipfs/${issue.cid}`, route])
    await show()
    await alert(new RegExp(other.cid))
    expect(document.querySelector('.verdict')).toBeNull()
    isBad.current = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
  })
})

test('shows steps as they finish, in fixed groups, before the verdict', async () => {
  const late = Promise.withResolvers<void>()
  network.routes.push([
    rpcUrl,
    async (_url, init) => {
      const { id, method } = JSON.parse(String(init.body)) as { id: number; method: string }
      if (method === 'eth_getLogs') await late.promise
      return json({ jsonrpc: '2.0', id, result: network.rpc[method] })
    },
  ])
  await show()
  const running = (step: string) => document.querySelector(`[data-running-step="${step}"]`)
  await vi.waitFor(() => expect(running('release')).not.toBeNull(), PATIENCE)
  expect(running('quote')?.textContent).toContain('MOCK')
  expect(running('event')).toBeNull()
  expect(document.querySelectorAll('[data-group]')).toHaveLength(6)
  expect(document.querySelectorAll('.ticks .tick').length).toBe(document.querySelectorAll('[data-running-step]').length)
  expect(document.querySelector('.verdict')).toBeNull()
  late.resolve()
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  expect(document.querySelector('[data-running-step]')).toBeNull()
})

test('polls a pending proof until it is complete, then verifies its event', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const life: Partial<ProofPayload>[] = [
    {
      status: 'pending_pin',
      ipfsCid: null,
      ipfsUrl: null,
      receipt: null,
      onchainTxHash: null,
      onchainBlockNumber: null,
    },
    { status: 'pending_onchain', onchainTxHash: null, onchainBlockNumber: null },
    {},
  ]
  let step = 0
  network.routes.push([proofUrl, () => json({ ...honest, ...life[step] })])
  await show()
  await expect.element(page.getByText('The receipt isn’t public yet')).toBeVisible()
  expect(stages()).toEqual(['done', 'current', 'waiting', 'waiting'])
  await expect.element(page.getByText(/This page updates automatically\.$/)).toBeVisible()
  const { eth_getLogs } = network.rpc
  network.rpc.eth_getLogs = []
  step = 1
  await vi.advanceTimersByTimeAsync(POLL_INTERVAL_MS)
  await heading(/^Nothing failed.*the chain does not point to it \(the service says: pending_onchain\)$/).toBeVisible()
  expect(stages()).toEqual(['done', 'done', 'current', 'waiting'])
  expect(statusOf('event')).toBe('skip')
  expect(lies()).toEqual([])
  network.rpc.eth_getLogs = eth_getLogs
  step = 2
  await vi.advanceTimersByTimeAsync(POLL_INTERVAL_MS)
  await vi.waitFor(() => expect(statusOf('event')).toBe('pass'), PATIENCE)
  expect(stages()).toEqual(['done', 'done', 'done', 'done'])
  const asked = network.requests.length
  await vi.advanceTimersByTimeAsync(3 * POLL_INTERVAL_MS)
  expect(network.requests).toHaveLength(asked)
})

test('keeps the opening form’s text when the proof completes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  let status: ProofPayload['status'] = 'pending_onchain'
  network.routes.push([proofUrl, () => json({ ...honest, kind: 'off-chain', status })])
  await show()
  await open('Show what was signed')
  const field = page.getByLabelText('Or paste the opening')
  await field.fill('half an opening')
  const before = field.element()
  status = 'complete'
  await vi.advanceTimersByTimeAsync(POLL_INTERVAL_MS)
  await vi.waitFor(() => expect(stages()).toEqual(['done', 'done', 'done', 'done']), PATIENCE)
  expect(field.element()).toBe(before)
  await expect.element(field).toHaveValue('half an opening')
})

test('finishes verifying even if every response of the service differs', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const late = Promise.withResolvers<void>()
  const cidUrl = `${gatewayUrl}/ipfs/${issue.cid}`
  let answers = 0
  network.rpc.eth_getLogs = []
  network.routes.push(
    [
      proofUrl,
      () => {
        answers += 1
        const copy = answers < 3 ? issue.receipt : other.receipt
        return json({ ...honest, status: 'pending_onchain', createdAt: `answer ${answers}`, receipt: copy })
      },
    ],
    [
      cidUrl,
      async () => {
        await late.promise
        return new Response(issue.bytes)
      },
    ],
  )
  await show()
  const asked = () => network.requests.filter((entry) => entry.includes(cidUrl))
  await vi.waitFor(() => expect(asked()).toHaveLength(1), PATIENCE)
  for (const count of [2, 3]) {
    await vi.advanceTimersByTimeAsync(POLL_INTERVAL_MS)
    // On a slow machine, the wait itself may advance the timers enough for another poll.
    await vi.waitFor(() => expect(answers).toBeGreaterThanOrEqual(count), PATIENCE)
  }
  late.resolve()
  await heading('Not verified: the service says something false about this receipt').toBeVisible()
  expect(lies()).toEqual(['receipt'])
  expect(asked()).toHaveLength(1)
})

test('replaces the operator’s anchors with the visitor’s, by keyboard', async () => {
  await show()
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  expect(statusOf('measurement')).toBe('pass')
  await open('Trust anchors')
  await page.getByRole('radio', { name: 'My own' }).click()
  await expect.element(page.getByLabelText('RPC URL')).toHaveAccessibleDescription(/operator’s node for events/)
  await page.getByLabelText('Key enclave settings').fill('12')
  await userEvent.keyboard('{Tab}')
  await page.getByRole('button', { name: 'Use these anchors' }).click()
  await expect.element(page.getByText('Line 1 is not 32 bytes of hex.')).toBeVisible()
  await expect.element(page.getByLabelText('Key enclave settings')).toHaveFocus()
  await page.getByLabelText('Key enclave settings').fill('12'.repeat(32))
  await userEvent.keyboard('{Tab}')
  await page.getByRole('button', { name: 'Use these anchors' }).click()
  await vi.waitFor(() => expect(statusOf('config')).toBe('fail'), PATIENCE)
  expect(statusOf('measurement')).toBe('skip')
  expect(document.querySelector('.command')?.textContent).toContain(`--config-hash ${'12'.repeat(32)}`)
})

test('shows the verdict first, then what was signed, then the checks, and the service’s claims last', async () => {
  await show()
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  expect([...document.querySelectorAll('h2')].map(({ textContent }) => textContent)).toEqual([
    'Nothing failed, on MOCK evidence',
    'What was signed',
    'Checks',
    'Download the evidence',
    'Links and hashes',
    'Trust anchors',
    'Verify independently',
    'Reported by the service',
  ])
  expect(document.querySelectorAll('[data-group]')).toHaveLength(6)
  expect(document.querySelectorAll('details[open]')).toHaveLength(0)
  const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map(({ tagName }) => Number(tagName.slice(1)))
  expect(levels[0]).toBe(1)
  expect(levels.every((level, index) => level <= (levels[index - 1] ?? 0) + 1)).toBe(true)
  const status = page.getByRole('status').filter({ hasText: '30 checks: 27 passed, 0 failed, 3 skipped.' })
  await expect.element(status, PATIENCE).toBeInTheDocument()
})

test('is at most two phone screens high when folded, and never wider than the screen, also at 320 pixels', async () => {
  await page.viewport(390, 844)
  await show()
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  const { scrollHeight, scrollWidth } = document.documentElement
  expect(scrollHeight).toBeLessThanOrEqual(2 * 844 - SHELL_HEIGHT)
  expect(scrollWidth).toBeLessThanOrEqual(390)
  await page.viewport(320, 700)
  for (const details of document.querySelectorAll('details')) details.open = true
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(320)
  await page.viewport(414, 896)
})

test('has no serious axe violations, with a failure and with all parts open', async () => {
  network.rpc.eth_getLogs = []
  await show()
  await heading('Not verified').toBeVisible()
  await page.getByRole('heading', { name: 'Trust anchors' }).click()
  await page.getByRole('radio', { name: 'My own' }).click()
  await expectAccessible()
  for (const details of document.querySelectorAll('details')) details.open = true
  await expectAccessible()
})
