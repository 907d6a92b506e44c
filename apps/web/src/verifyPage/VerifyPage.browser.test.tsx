import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { page, userEvent } from 'vitest/browser'
import goldenCollateral from '../../../../packages/receipt/spec/golden/collateral.json?raw'
import goldenReceipt from '../../../../packages/receipt/spec/golden/receipt.json?raw'
import { issueGolden, slug } from '../../../../packages/verify/test/issues.ts'
import {
  apiBaseUrl,
  createFakeNetwork,
  html,
  json,
  toGatewayProof as toProof,
} from '../../../../packages/verify/test/network.ts'
import { toConfig } from '../../test/config.ts'
import { alert, heading, renderPage, statusOf } from '../../test/report/reportPage.tsx'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { createWarmWorker } from '../../test/worker/warmWorker.ts'
import { VerifyPage } from './VerifyPage.tsx'

const issue = await issueGolden()

const WarmWorker = createWarmWorker()

let network = createFakeNetwork(issue)
beforeEach(async () => {
  network = createFakeNetwork(issue)
  vi.stubGlobal('fetch', network.fetch)
  vi.stubGlobal('Worker', WarmWorker)
  await renderPage(<VerifyPage />, toConfig(issue))
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const file = (name: string, content: BlobPart) => new File([content], name, { type: 'application/json' })
const picker = () => page.getByLabelText(/Receipt file/)
const choose = (...files: File[]) => userEvent.upload(picker(), files)

async function paste(text: string) {
  await page.getByLabelText(/Or paste/).fill(text)
  await userEvent.keyboard('{Enter}')
}

describe('files', () => {
  test('verifies the golden receipt with its collateral and fetches only the event', async () => {
    await choose(file('collateral.json', goldenCollateral), file('receipt.json', goldenReceipt))
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    expect(network.requests.filter((entry) => entry.startsWith('GET'))).toEqual([])
    expect(document.querySelector('.command')?.textContent).toContain(
      'npm run verify -- receipt.json --collateral collateral.json',
    )
    expect(document.querySelector('[data-claim]')).toBeNull()
  })

  test('keeps the verdict on chosen files when the button is pressed', async () => {
    await page.getByLabelText(/Or paste/).fill('hello')
    await choose(file('collateral.json', goldenCollateral), file('receipt.json', goldenReceipt))
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    await expect.element(page.getByText(/^Chosen: collateral.json, receipt.json/)).toBeVisible()
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    expect(page.getByLabelText(/Or paste/).element()).not.toHaveAttribute('aria-invalid')
  })

  test('verifies dropped files', async () => {
    const transfer = new DataTransfer()
    transfer.items.add(file('receipt.json', goldenReceipt))
    const zone = document.querySelector('.drop-zone')
    zone?.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    expect(network.requests.some((entry) => entry.includes(issue.receipt.signer.collateral))).toBe(true)
  })

  test('shows no verdict for another file instead of the collateral', async () => {
    await choose(file('receipt.json', goldenReceipt), file('notes.json', '{}'))
    await alert(/Wrong collateral file.*notes\.json/)
    expect(document.querySelector('.verdict')).toBeNull()
  })

  test('rejects an oversized file without reading it', async () => {
    // Playwright needs 20 seconds to send the large file to the page.
    const transfer = new DataTransfer()
    transfer.items.add(file('big.json', new Uint8Array(8_388_609)))
    const input = picker().element() as HTMLInputElement
    input.files = transfer.files
    input.dispatchEvent(new Event('change', { bubbles: true }))
    await alert(/big\.json has 8388609 bytes/)
    expect(network.requests).toEqual([])
  })
})

describe('pasted text', () => {
  test('verifies a CID', async () => {
    await paste(issue.cid)
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    expect(statusOf('cid')).toBe('pass')
    await expectAccessible()
  })

  test('verifies a transaction hash through its event', async () => {
    await paste(issue.receipt.transaction.txHash)
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    expect(document.querySelector('.command')?.textContent).toContain(issue.cid)
  })

  test('asks the app’s own service for the app’s own link, and checks its claims', async () => {
    network.routes.push([`${apiBaseUrl}/proof/`, () => json({ ...toProof(issue), chainId: 1 })])
    await paste(`${window.location.origin}/proof/${slug}`)
    await heading('Not verified: the service says something false about this receipt').toBeVisible()
    expect(document.querySelector('[data-claim="chainId"]')?.getAttribute('data-verdict')).toBe('false')
  })

  test('asks another service for its own link', async () => {
    network.routes.push(['https://elsewhere.test/', html])
    await paste(`https://elsewhere.test/proof/${slug}`)
    await alert('Unexpected response')
    expect(network.requests).toEqual([
      'GET https://elsewhere.test/config.json',
      `GET https://elsewhere.test/proof/${slug}`,
    ])
  })

  test('retries an unpinned slug only on request, and doesn’t promise to update', async () => {
    const pending = { ...toProof(issue), status: 'pending_pin', ipfsCid: null, receipt: null }
    network.routes.push([`${apiBaseUrl}/proof/`, () => json(pending)])
    await paste(slug)
    await alert('isn’t public')
    await expect.element(page.getByText('Signed. The receipt is being pinned to IPFS.')).toBeVisible()
    expect(page.getByText(/asks again/).elements()).toEqual([])
    network.routes.length = 0
    await page.getByRole('button', { name: 'Try again' }).click()
    await heading('Nothing failed, on MOCK evidence').toBeVisible()
    await expect.element(page.getByText('Proof public')).toBeInTheDocument()
  })

  test('removes the old verdict if the service fails the second time', async () => {
    const pending = { ...toProof(issue), status: 'pending_pin', ipfsCid: null, receipt: null }
    network.routes.push([`${apiBaseUrl}/proof/`, () => json(pending)])
    await paste(slug)
    await alert('isn’t public')
    network.routes.unshift([`${apiBaseUrl}/proof/`, () => json({ code: 'proof_not_found', title: 'x' }, 404)])
    await page.getByRole('button', { name: 'Try again' }).click()
    await alert('Proof not found')
    expect(page.getByRole('button', { name: 'Try again' }).elements()).toEqual([])
  })

  test('rejects invalid text at its field without a request', async () => {
    await paste('hello')
    await expect.element(page.getByLabelText(/Or paste/)).toHaveAccessibleDescription(/Expected a CID/)
    expect(network.requests).toEqual([])
  })
})

test('removes the old verdict after a rejected paste, and ignores late responses', async () => {
  await choose(file('collateral.json', goldenCollateral), file('receipt.json', goldenReceipt))
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  await paste('hello')
  await expect.element(page.getByLabelText(/Or paste/)).toHaveAccessibleDescription(/Expected a CID/)
  expect(document.querySelector('.verdict')).toBeNull()
  expect(page.getByText(/^Chosen:/).elements()).toEqual([])

  const late = Promise.withResolvers<Response>()
  network.routes.push([`${apiBaseUrl}/proof/`, () => late.promise])
  await paste(slug)
  await expect.element(page.getByText('Loading the receipt…')).toBeVisible()
  await paste('hello')
  const answer = json({ code: 'proof_not_found', title: 'x' }, 404)
  late.resolve(answer)
  await expect.element(page.getByText('Loading the receipt…')).not.toBeInTheDocument()
  await expect.poll(() => answer.bodyUsed).toBe(true)
  // Waits for the next frame, in which the page would draw it.
  for (let frame = 0; frame < 3; frame++) await new Promise((resolve) => requestAnimationFrame(resolve))
  expect(page.getByRole('alert').filter({ hasText: 'Proof not found' }).elements()).toEqual([])
  expect(document.querySelector('.verdict')).toBeNull()
})

test('is never wider than a narrow phone', async () => {
  await page.viewport(320, 700)
  await paste(issue.cid)
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  for (const details of document.querySelectorAll('details')) details.open = true
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(320)
  await page.viewport(414, 896)
})
