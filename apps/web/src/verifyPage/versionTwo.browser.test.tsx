import { type OwnerOpening, toCanonicalJson, withholdHalf } from '@countersign/protocol'
import { encodeReceiptCar } from '@countersign/receipt'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { page, userEvent } from 'vitest/browser'
import { goldenVaults } from '../../../../packages/receipt/test/vaults.ts'
import { issueGoldenV2 } from '../../../../packages/verify/test/issues.ts'
import { createFakeNetwork } from '../../../../packages/verify/test/network.ts'
import { toConfig } from '../../test/config.ts'
import { heading, renderPage, statusOf } from '../../test/report/reportPage.tsx'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { createWarmWorker } from '../../test/worker/warmWorker.ts'
import { VerifyPage } from './VerifyPage.tsx'

const TEXT = 'hello\u202e <b>you</b>'
const bytes = new TextEncoder().encode(TEXT)
const hex = `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}` as const
const issue = await issueGoldenV2({ signing: { kind: 'message', content: { message: hex } } })
const other = await issueGoldenV2({ signing: { kind: 'message' }, signedAt: new Date('2026-06-15T12:00:05Z') })
const wallet = await issueGoldenV2(goldenVaults['wallet-address'])
const vault = await issueGoldenV2(goldenVaults.address)
const WarmWorker = createWarmWorker()

/** Every request of the page. */
const sent: string[] = []
beforeEach(async () => {
  const network = createFakeNetwork(issue)
  const ofWallet = createFakeNetwork(wallet)
  for (const [cid, block] of ofWallet.blocks) network.blocks.set(cid, block)
  sent.length = 0
  vi.stubGlobal('fetch', (input: string | URL, init: RequestInit = {}) => {
    sent.push(`${String(input)} ${String(init.body ?? '')}`)
    return network.fetch(input, init)
  })
  vi.stubGlobal('Worker', WarmWorker)
  await renderPage(<VerifyPage />, toConfig(issue))
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const CONTENT = 'Show what was signed'
const OWNER = 'Show the owner'

async function ask(text: string, form = CONTENT) {
  await page.getByLabelText(/Or paste a proof link/).fill(text)
  await userEvent.keyboard('{Enter}')
  await heading(form).toBeVisible()
}

async function open(opening: unknown, form = CONTENT) {
  await page.getByRole('heading', { name: form }).click()
  await page.getByLabelText('Or paste the opening').fill(JSON.stringify(opening))
  await page.getByRole('button', { name: 'Check the opening' }).click()
}

describe('an off-chain signature', () => {
  test('shows only that something was signed', async () => {
    await ask(issue.cid)
    await heading('Off-chain signature').toBeVisible()
    expect(statusOf('blocks')).toBe('pass')
    expect(statusOf('opening')).toBe('skip')
    expect(document.querySelector('.signed')?.textContent).toContain('signed a message or typed data on 15 June 2026')
    expect(document.querySelector('.verdict')?.textContent).toContain('quantum computer')
    await expectAccessible()
  })

  test('shows the content with its opening, and sends nothing of the opening', async () => {
    await ask(issue.cid)
    await open(issue.opening)
    await heading('A message').toBeVisible()
    expect(statusOf('opening')).toBe('pass')
    expect(statusOf('signature')).toBe('pass')
    const shown = document.querySelector('.signed')?.textContent
    expect(shown).toContain('hello\u{fffd} <b>you</b>')
    expect(shown).not.toContain('\u202e')
    const { content, signature } = issue.opening ?? {}
    if (typeof content !== 'object' || typeof signature !== 'object') throw new Error('the simulator shows both halves')
    const secrets = [content.salt, content.digest, hex, signature.salt, signature.signature].map((text) =>
      text.slice(2),
    )
    for (const secret of secrets) expect(sent.join('\n')).not.toContain(secret)
    expect(sent.length).toBeGreaterThan(5)
    for (const part of ['.verdict', '.signed', '.checks']) {
      expect(document.querySelector(part)?.textContent).not.toContain(signature.signature)
    }
    expect([localStorage, sessionStorage].map((storage) => JSON.stringify(storage)).join()).not.toContain(content.salt)
  })

  test('shows one half with the file of that half', async () => {
    await ask(issue.cid)
    const half = toCanonicalJson(withholdHalf(issue.opening as NonNullable<typeof issue.opening>, 'signature'))
    await userEvent.upload(page.getByLabelText('Opening file'), [new File([half], 'opening.json')])
    await heading('A message').toBeVisible()
    expect(statusOf('signature')).toBe('skip')
  })

  test('clears the error about an oversized file when an opening is pasted', async () => {
    await ask(issue.cid)
    await userEvent.upload(page.getByLabelText('Opening file'), [new File(['x'.repeat(3_000_000)], 'opening.json')])
    await page.getByRole('heading', { name: 'Show what was signed' }).click()
    await expect.element(page.getByRole('alert')).toBeVisible()
    await page.getByRole('heading', { name: 'Show what was signed' }).click()
    await open(issue.opening)
    await heading('A message').toBeVisible()
    expect(page.getByRole('alert').query()).toBeNull()
  })

  test('is not verified with another signature’s opening, and shows nothing of it', async () => {
    await ask(issue.cid)
    await open(other.opening)
    await heading('Not verified').toBeVisible()
    expect(statusOf('opening')).toBe('fail')
    expect(document.querySelector('.signed')?.textContent).not.toContain('hello')
  })

  test('needs no gateway as a CAR file, and can be saved as one', async () => {
    const car = new File([encodeReceiptCar(issue)], 'receipt.car')
    await userEvent.upload(page.getByLabelText(/Receipt file/), [car])
    await heading('Off-chain signature').toBeVisible()
    expect(sent.filter((entry) => entry.includes('/ipfs/'))).toEqual([])
    expect(document.querySelector('.command')?.textContent).toContain('npm run verify -- receipt.car --rpc')
    await page.getByRole('heading', { name: 'Download the evidence' }).click()
    await expect
      .element(page.getByRole('link', { name: 'Download the receipt with its blocks' }))
      .toHaveAttribute('download', `${issue.cid}.car`)
  })
})

describe('an address on the page', () => {
  const textOf = (selector: string) => document.querySelector(selector)?.textContent

  test('has a sealed owner', async () => {
    await ask(wallet.cid, OWNER)
    await heading('The address of a wallet').toBeVisible()
    expect(statusOf('opening')).toBe('skip')
    expect(textOf('.signed')).toContain('Only its owner can show whose it is')
    expect(textOf('.checks')).toContain('Owner: sealed.')
    await expectAccessible()
  })

  test('with its opening shows the owner, and nothing of the opening leaves the page', async () => {
    await ask(wallet.cid, OWNER)
    await open(wallet.owner, OWNER)
    await expect.poll(() => statusOf('opening')).toBe('pass')
    const { salt, identity } = wallet.owner as OwnerOpening
    const belongs = new RegExp(`0x[0-9a-fA-F]{40} belongs to ${identity.email} at ${identity.issuer}`)
    expect(textOf('.signed')).toMatch(belongs)
    expect(textOf('.checks')).toMatch(belongs)
    for (const secret of [salt, identity.email]) expect(sent.join('\n')).not.toContain(secret)
    await expectAccessible()
  })

  test('with the opening of another address of this owner is not verified, and shows no owner', async () => {
    await ask(wallet.cid, OWNER)
    await open(vault.owner, OWNER)
    await heading('Not verified').toBeVisible()
    expect(statusOf('opening')).toBe('fail')
    expect(textOf('.signed')).not.toContain('alice@example.com')
  })
})
