import { computeCommitment, parseOpening, toHex } from '@countersign/protocol'
import { getAddress, recoverMessageAddress, recoverTypedDataAddress } from 'viem'
import { createSiweMessage } from 'viem/siwe'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { page } from 'vitest/browser'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { confirm, text, write } from '../../test/sign/signForm.ts'
import { closeWallet, type OpenWalletOptions, openWallet } from '../../test/wallet/openWallet.tsx'

afterEach(closeWallet)

const open = (options: OpenWalletOptions = {}) => openWallet({ path: '/sign', ...options })
const SPENDER = '0x000000000000000000000000000000000000dEaD'
const TOKEN = '0x5fbdb2315678afecb367f032d93f642f64180aa3'

function toPermit(owner: string, chainId: number, value: string) {
  const members = { owner: 'address', spender: 'address', value: 'uint256', nonce: 'uint256', deadline: 'uint256' }
  return {
    domain: { name: 'Token', version: '1', chainId, verifyingContract: TOKEN },
    types: { Permit: Object.entries(members).map(([name, type]) => ({ name, type })) },
    primaryType: 'Permit',
    message: { owner, spender: SPENDER, value, nonce: '0', deadline: '1773144000' },
  }
}

/** The linked file's text. */
async function readSaved(link: Element): Promise<Uint8Array> {
  const href = link.getAttribute('href') ?? ''
  return new Uint8Array(await (await fetch(href)).arrayBuffer())
}

describe('signing', () => {
  test('shows a text before signing it, then offers signature, proof and opening', async () => {
    const { screen, service } = await open()
    await write(screen, 'I agree.\nAnd I mean it.')
    await expect.element(screen.getByRole('heading', { name: 'Review before you sign' })).toHaveFocus()
    await expect.element(screen.getByText('I agree. And I mean it.')).toBeVisible()
    await expect.element(screen.getByText(/signed something at this time is public/)).toBeVisible()
    await expectAccessible()
    expect(service.requests).not.toContain('POST /sign/message')
    await confirm(screen).click()
    await expect.element(screen.getByRole('heading', { name: 'Message signed' })).toHaveFocus()
    await expectAccessible()

    const [proof] = service.proofs
    const link = screen.getByRole('link', { name: 'View proof' })
    await expect.element(link).toHaveAttribute('href', `/proof/${proof?.slug}`)
    const save = screen.getByRole('link', { name: 'Download opening' })
    await expect.element(save).toHaveAttribute('download', `opening-${proof?.slug}.json`)
    await expect.element(screen.getByText(/without it, no one can open the proof/)).toBeVisible()
    const saved = await readSaved(save.element())
    const opening = parseOpening(saved)
    // Indentation could make nested lists exceed the size limit.
    expect(new TextDecoder().decode(saved)).toBe(`${JSON.stringify(opening)}\n`)
    expect(`0x${toHex(computeCommitment(opening))}`).toBe(proof?.txHash)
    if (typeof opening.signature === 'string') return expect.fail('the half with the signature is withheld')
    const { signature } = opening.signature
    await expect.element(screen.getByText(signature)).toBeVisible()
    const signer = await recoverMessageAddress({ message: 'I agree.\nAnd I mean it.', signature })
    expect(signer).toBe(getAddress(service.wallet.address))
  })

  test('names a sign-in and what its signature allows', async () => {
    const { screen, service } = await open()
    const message = createSiweMessage({
      address: getAddress(service.wallet.address),
      chainId: service.config.chainId,
      domain: 'example.com',
      nonce: 'abcdefgh1',
      uri: 'https://example.com/in',
      version: '1',
    })
    await write(screen, message)
    await expect.element(screen.getByText('Sign in with Ethereum: example.com')).toBeVisible()
    await expect.element(screen.getByText(/can sign in to example\.com as this wallet/)).toBeVisible()
    await expect.element(screen.getByText(/example\.com, not for this page/)).toBeVisible()
    expect(screen.getByText(/this wallet is on chain/).query()).toBeNull()
    await expectAccessible()
  })

  test('shows typed data field by field and warns about a permit', async () => {
    const { screen, service } = await open()
    const permit = toPermit(service.wallet.address, service.config.chainId, '1000')
    await write(screen, JSON.stringify(permit, undefined, 2), 'Typed data')
    await expect.element(screen.getByText(/^Permit: a token allowance/)).toBeVisible()
    await expect.element(screen.getByText(/It gives access to tokens/)).toBeVisible()
    await expect.element(screen.getByText(/1000 smallest units of the token 0x5fbdb/)).toBeVisible()
    await expect.element(screen.getByText('domain.verifyingContract')).toBeVisible()
    await expect.element(screen.getByText('message.spender')).toBeVisible()
    await expectAccessible()
    await confirm(screen).click()
    await expect.element(screen.getByRole('heading', { name: 'Typed data signed' })).toBeVisible()
    const save = screen.getByRole('link', { name: 'Download opening' })
    await expect.element(save).toHaveAttribute('href')
    const opening = parseOpening(await readSaved(save.element()))
    if (typeof opening.signature === 'string') return expect.fail('the half with the signature is withheld')
    const { signature } = opening.signature
    expect(await recoverTypedDataAddress({ ...permit, signature } as never)).toBe(getAddress(service.wallet.address))
  })

  test('shows whole addresses on a small phone', async () => {
    await page.viewport(360, 740)
    onTestFinished(() => page.viewport(414, 896))
    const { screen, service } = await open()
    const permit = toPermit(service.wallet.address, service.config.chainId, '1000')
    await write(screen, JSON.stringify(permit), 'Typed data')
    await expect.element(confirm(screen)).toBeVisible()
    expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(360)
    await confirm(screen).click()
    await expect.element(screen.getByRole('link', { name: 'Download opening' })).toBeVisible()
    expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(360)
  })
})

describe('rejects invalid input at its field, before any call', () => {
  test('is accessible with an error, and hides the error when the input changes', async () => {
    const { screen, service } = await open()
    await write(screen, JSON.stringify(toPermit(SPENDER, 1, '1')), 'Typed data')
    await expect.element(text(screen)).toHaveAccessibleDescription(/This is for chain 1\./)
    await expect.element(text(screen)).toHaveFocus()
    await expect.element(text(screen)).toHaveAttribute('aria-invalid', 'true')
    await write(screen, '')
    await expect.element(screen.getByText('Enter a message.')).toBeVisible()
    expect(service.requests.filter((request) => request.startsWith('POST /sign'))).toEqual([])
    await expectAccessible()
    await text(screen).fill('a')
    expect(screen.getByText('Enter a message.').query()).toBeNull()
  })
})

describe('the opening', () => {
  const isHeld = () => {
    const leaving = new Event('beforeunload', { cancelable: true })
    window.dispatchEvent(leaving)
    return leaving.defaultPrevented
  }

  test('makes the browser ask before closing until it is saved', async () => {
    const { screen } = await open()
    await write(screen, 'I agree.')
    expect(isHeld()).toBe(false)
    await confirm(screen).click()
    const save = screen.getByRole('link', { name: 'Download opening' })
    await expect.element(save).toHaveAttribute('href')
    expect(isHeld()).toBe(true)
    await expect.element(screen.getByRole('button', { name: 'Sign another without saving' })).toBeVisible()
    save.element().addEventListener('click', (event) => event.preventDefault())
    await save.click()
    await expect.element(screen.getByText('Opening saved')).toBeVisible()
    expect(isHeld()).toBe(false)
    await screen.getByRole('button', { name: 'Sign another', exact: true }).click()
    await expect.element(text(screen)).toHaveFocus()
  })

  test('is still there for a visitor who left the page during signing', async () => {
    const held = Promise.withResolvers<void>()
    const intercept = (url: string, pass: () => Promise<Response>) =>
      url.endsWith('/sign/message') ? held.promise.then(pass) : undefined
    const { screen, service } = await open({ intercept })
    await write(screen, 'I agree.')
    await confirm(screen).click()
    await expect.element(screen.getByText(/Signing…/)).toBeVisible()
    expect(isHeld()).toBe(true)
    await screen.getByRole('link', { name: 'Verify', exact: true }).click()
    await expect.element(screen.getByRole('heading', { level: 1, name: /verify/i })).toBeVisible()
    // On any page: closing the tab loses the opening.
    expect(isHeld()).toBe(true)
    held.resolve()
    await expect.poll(() => service.proofs.length).toBe(1)
    expect(isHeld()).toBe(true)
    await screen.getByRole('link', { name: 'Sign', exact: true }).click()
    await expect.element(screen.getByRole('link', { name: 'Download opening' })).toBeVisible()
  })

  test('is created once for a double click', async () => {
    const { screen, service } = await open()
    await write(screen, 'I agree.')
    await expect.element(confirm(screen)).toBeVisible()
    const button = confirm(screen).element() as HTMLButtonElement
    button.click()
    button.click()
    await expect.element(screen.getByRole('link', { name: 'Download opening' })).toBeVisible()
    expect(service.proofs).toHaveLength(1)
  })

  test('is reported lost after a lost response', async () => {
    const { screen, service } = await open()
    await write(screen, 'I agree.')
    await expect.element(confirm(screen)).toBeVisible()
    service.failNext('POST /sign/message', 'network')
    await confirm(screen).click()
    await expect.element(screen.getByRole('alert').getByText('This may have been signed')).toBeVisible()
    await expect.element(screen.getByText(/its proof can never be opened/)).toBeVisible()
    await expect.element(text(screen)).toHaveValue('I agree.')
  })
})

describe('the history', () => {
  test('shows a message by kind and time, not by its commitment', async () => {
    const { screen, service } = await open()
    await write(screen, 'I agree.')
    await confirm(screen).click()
    await expect.element(screen.getByRole('link', { name: 'Download opening' })).toBeVisible()
    await screen.getByRole('link', { name: 'Wallet', exact: true }).click()
    const row = screen.getByRole('link', { name: /Off-chain signature/ })
    await expect.element(row).toBeVisible()
    expect(row.element().textContent).not.toContain('chain 0')
    expect(row.element().textContent).not.toContain(service.proofs[0]?.txHash.slice(0, 8))
  })
})
