import type { TestService } from '@countersign/sdk/testing'
import { parseEther } from 'viem'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { userEvent } from 'vitest/browser'
import {
  amount,
  answerBob,
  comeBack,
  confirm,
  isLeavingHeld,
  leave,
  noteInOtherTab,
  recipient,
  review,
  SIGNED_ELSEWHERE,
  send,
  to,
  write,
} from '../../test/send/sendForm.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'

afterEach(closeWallet)

describe('send', () => {
  test('nothing is signed before the confirmation, which names exact amount and recipient', async () => {
    const { screen, service } = await openWallet()
    await write(screen, { amount: '0.000000000000000001' })
    await expect.element(screen.getByRole('heading', { name: 'Review payment' })).toHaveFocus()
    await expect.element(screen.getByText('0.000000000000000001 ETH', { exact: true })).toBeVisible()
    await expect.element(screen.getByText(recipient)).toBeVisible()
    // 21,000 gas at the cap of 10,000 gwei, whatever the RPC reports later.
    await expect.element(screen.getByText(/never more than 0\.21 ETH/)).toBeVisible()
    await expect.element(screen.getByText(/even if the transaction isn’t sent/)).toBeVisible()
    await expectAccessible()
    expect(service.requests).not.toContain('POST /sign/digest')
    await confirm(screen).click()
    await expect.element(screen.getByText('Sent 0.000000000000000001 ETH')).toBeVisible()
    expect(service.transactions).toMatchObject([{ to: recipient.toLowerCase(), value: 1n, gas: 21_000n, data: '0x' }])
  })

  test('shows progress, a link to the proof, the new balance and a history row after sending', async () => {
    const config = { explorerUrl: 'https://explorer.test/' }
    const { screen, service } = await openWallet({ balance: parseEther('2'), config })
    await send(screen)
    await expect.element(screen.getByText(/Confirmed in block 1/).first()).toBeVisible()
    const { hash } = service.transactions[0] ?? {}
    const { slug } = service.proofs[0] ?? {}
    const link = screen.getByRole('link', { name: /^0x/ })
    await expect.element(link).toHaveAttribute('href', `https://explorer.test/tx/${hash}`)
    await expect.element(screen.getByRole('link', { name: 'View proof' })).toHaveAttribute('href', `/proof/${slug}`)
    await expect.element(screen.getByText(/1\.749\d* ETH/)).toBeVisible()
    await expect
      .element(screen.getByRole('link', { name: /Sent to 0x709979…dc79C8.*−0\.25 ETH.*Pinning/ }))
      .toBeVisible()
    await expectAccessible()
  })

  test('returns to the form with all fields filled on Change', async () => {
    const { screen, service } = await openWallet()
    await write(screen, { amount: '0.3' })
    await screen.getByRole('button', { name: 'Change' }).click()
    await expect.element(amount(screen)).toHaveValue('0.3')
    await expect.element(to(screen)).toHaveFocus()
    expect(service.requests).not.toContain('POST /sign/digest')
  })

  test('works with the keyboard only', async () => {
    const { screen, service } = await openWallet()
    await expect.element(to(screen)).toBeVisible()
    // From the top of the page, like a keyboard user.
    document.body.focus()
    for (let presses = 0; presses < 40 && document.activeElement !== to(screen).element(); presses += 1) {
      await userEvent.keyboard('{Tab}')
    }
    await userEvent.keyboard(recipient)
    await userEvent.keyboard('{Tab}0.5{Enter}')
    await expect.element(screen.getByRole('heading', { name: 'Review payment' })).toHaveFocus()
    await userEvent.keyboard('{Tab}')
    await expect.element(confirm(screen)).toHaveFocus()
    await userEvent.keyboard('{Enter}')
    await expect.element(screen.getByRole('heading', { name: 'Sent 0.5 ETH' })).toHaveFocus()
    expect(service.transactions).toMatchObject([{ value: parseEther('0.5') }])
  })

  test('shows errors at their fields, focuses the first, and signs nothing', async () => {
    const { screen, service } = await openWallet()
    await write(screen, { amount: '10000.1' })
    await expect.element(amount(screen)).toHaveAccessibleDescription(/Insufficient balance: 10000 ETH/)
    await write(screen, { to: '0x1', amount: 'x' })
    await expect.element(to(screen)).toHaveAccessibleDescription(/Enter 0x followed by 40/)
    await expect.element(to(screen)).toHaveFocus()
    await expect.element(to(screen)).toHaveAttribute('aria-invalid', 'true')
    await expect.element(screen.getByText('Enter a number, such as 0.05.')).toBeVisible()
    await expectAccessible()
    await amount(screen).fill('1')
    expect(screen.getByText('Enter a number, such as 0.05.').query()).toBeNull()
    await expect.element(screen.getByText(/Enter 0x followed/)).toBeVisible()
    await expect.element(amount(screen)).toHaveFocus()
    expect(service.requests).not.toContain('POST /sign/digest')
  })

  test('estimates the gas of a contract call and lets the user change it', async () => {
    const { screen, service } = await openWallet()
    await screen.getByText('Contract call').click()
    await to(screen).fill(recipient)
    await screen.getByLabelText('Data').fill('0xDEADBEEF')
    await screen.getByRole('button', { name: 'Estimate gas' }).click()
    const gas = screen.getByLabelText('Gas limit')
    // 21,000 plus 4 bytes at 16, plus 20%.
    await expect.element(gas).toHaveValue('25276')
    await gas.fill('50000')
    await review(screen).click()
    await expect.element(screen.getByText('4 bytes')).toBeVisible()
    await expectAccessible()
    await confirm(screen).click()
    await expect.element(screen.getByText('Sent 0 ETH')).toBeVisible()
    expect(service.transactions).toMatchObject([{ data: '0xdeadbeef', gas: 50_000n, value: 0n }])
  })
})

describe('when it fails', () => {
  test('explains a rejection by the service and keeps the form', async () => {
    const { screen, service } = await openWallet()
    service.failNext('POST /sign/digest', { code: 'rate_limited' })
    await send(screen)
    await expect.element(screen.getByRole('alert').getByText('Too many requests')).toBeVisible()
    await expect.element(amount(screen)).toHaveValue('0.25')
    expect(service.transactions).toEqual([])
    await expectAccessible()
  })

  test('shows hash and proof of a transaction that was signed but not sent', async () => {
    const { screen, service } = await openWallet()
    service.failNext('eth_sendRawTransaction', { code: -32000, message: 'insufficient funds for gas * price + value' })
    await send(screen)
    await expect.element(screen.getByText('Insufficient funds')).toBeVisible()
    const slug = service.proofs[0]?.slug
    await expect.element(screen.getByRole('link', { name: 'View proof' })).toHaveAttribute('href', `/proof/${slug}`)
    expect(service.transactions).toEqual([])
  })
})

test('does not pay from a different user’s wallet after they sign in', async () => {
  const held = Promise.withResolvers<void>()
  let isConfirmed = false
  let isOther = false
  const intercept = (url: string, pass: () => Promise<Response>) => {
    if (isConfirmed && url.startsWith('https://rpc.test')) return held.promise.then(pass)
    return isOther ? answerBob(url, pass) : undefined
  }
  const prepare = (service: TestService) => service.failNext('GET /wallet/transactions', { code: 'rate_limited' })
  const { screen, service } = await openWallet({ intercept, prepare })
  await write(screen, {})
  await expect.element(confirm(screen)).toBeVisible()
  isConfirmed = true
  await confirm(screen).click()
  isOther = true
  await screen.getByRole('button', { name: 'Reload history' }).click()
  await expect.element(screen.getByText('Bob')).toBeVisible()
  await expect.element(screen.getByText(/^No activity yet/)).toBeVisible()
  // Read again when the payment has finished.
  const count = () => service.requests.filter((request) => request === 'GET /wallet/transactions').length
  const before = count()
  held.resolve()
  await expect.poll(count).toBeGreaterThan(before)
  expect(service.requests).not.toContain('POST /sign/digest')
})

describe('paying once', () => {
  const dear = (fee: { gwei: bigint }) => ({
    eth_maxPriorityFeePerGas: () => `0x${(fee.gwei * 10n ** 9n).toString(16)}`,
  })

  test('signs nothing and shows the new price if fees rise after the review', async () => {
    const fee = { gwei: 1n }
    const { screen, service } = await openWallet({ rpc: dear(fee) })
    await write(screen, {})
    await expect.element(confirm(screen)).toBeVisible()
    fee.gwei = 500n
    await confirm(screen).click()
    await expect.element(screen.getByText('The network fee went up')).toBeVisible()
    expect(service.requests).not.toContain('POST /sign/digest')
    await confirm(screen).click()
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    expect(service.transactions).toHaveLength(1)
  })

  test('sends one payment for a double click', async () => {
    const { screen, service } = await openWallet()
    await write(screen, {})
    await expect.element(confirm(screen)).toBeVisible()
    const button = confirm(screen).element() as HTMLButtonElement
    button.click()
    button.click()
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    expect(service.requests.filter((request) => request === 'POST /sign/digest')).toHaveLength(1)
  })

  test('says that a payment may have been signed after a lost response, and reloads the history', async () => {
    const { screen, service } = await openWallet()
    await write(screen, {})
    await expect.element(confirm(screen)).toBeVisible()
    service.failNext('POST /sign/digest', 'network')
    service.failNext('POST /sign/digest', 'network')
    const count = () => service.requests.filter((request) => request === 'GET /wallet/transactions').length
    const before = count()
    await confirm(screen).click()
    await expect.element(screen.getByRole('alert').getByText('This may have been signed')).toBeVisible()
    await expect.poll(count).toBeGreaterThan(before)
  })

  test('keeps that notice after a different user signed in', async () => {
    let isOther = false
    const intercept = (url: string, pass: () => Promise<Response>) => {
      if (!url.endsWith('/sign/digest')) return isOther ? answerBob(url, pass) : undefined
      isOther = true
      return Promise.reject(new TypeError('Failed to fetch'))
    }
    const { screen, service } = await openWallet({ intercept })
    await expect.element(screen.getByText(/^No activity yet/)).toBeVisible()
    await send(screen)
    await expect.element(screen.getByRole('alert').getByText(/Sign in to your own account/)).toBeVisible()
    expect(service.requests.filter((request) => request === 'GET /wallet/transactions')).toHaveLength(1)
  })

  test('shows the result to a visitor who left the page during signing', async () => {
    const held = Promise.withResolvers<void>()
    let isAsked = false
    const intercept = (url: string, pass: () => Promise<Response>) => {
      if (!url.endsWith('/sign/digest')) return undefined
      isAsked = true
      return held.promise.then(pass)
    }
    const { screen, service } = await openWallet({ intercept })
    await send(screen)
    await expect.poll(() => isAsked).toBe(true)
    expect(isLeavingHeld()).toBe(true)
    await leave(screen)
    // Also on other pages: closing the tab now would leave a signature and no transaction.
    expect(isLeavingHeld()).toBe(true)
    held.resolve()
    await expect.poll(() => service.transactions.length).toBe(1)
    await comeBack(screen)
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    expect(isLeavingHeld()).toBe(false)
  })

  test('keeps the notice about an unknown outcome until it is dismissed, also after a reload', async () => {
    const { screen, service, reload } = await openWallet()
    const notice = (on: typeof screen) => on.getByText('An earlier payment may still go through')
    service.failNext('eth_sendRawTransaction', { code: -32000, message: 'upstream timed out' })
    await send(screen)
    await expect.element(screen.getByText('The transaction may have been sent')).toBeVisible()
    await review(screen).click()
    await expect.element(confirm(screen)).toBeVisible()
    await expect.element(notice(screen)).toBeVisible()
    const again = await reload()
    await expect.element(notice(again)).toBeVisible()
    await again.getByRole('button', { name: 'I’ve checked' }).click()
    await expect.element(notice(again)).not.toBeInTheDocument()
  })

  test('removes the notice when it is dismissed in another tab', async () => {
    const { screen, service } = await openWallet()
    const notice = screen.getByText('An earlier payment may still go through')
    noteInOtherTab(service.wallet.address, SIGNED_ELSEWHERE)
    await expect.element(notice).toBeVisible()
    await leave(screen)
    noteInOtherTab(service.wallet.address, undefined)
    await comeBack(screen)
    await expect.element(review(screen)).toBeVisible()
    expect(notice.query()).toBeNull()
  })

  test('keeps the notice if the browser stores nothing', async () => {
    const { screen, service } = await openWallet()
    const notice = screen.getByText('An earlier payment may still go through')
    using _ = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new Error('full')
    })
    service.failNext('eth_sendRawTransaction', { code: -32000, message: 'upstream timed out' })
    await send(screen)
    await expect.element(screen.getByText('The transaction may have been sent')).toBeVisible()
    await leave(screen)
    await comeBack(screen)
    await write(screen, {})
    await expect.element(notice).toBeVisible()
    await screen.getByRole('button', { name: 'I’ve checked' }).click()
    await expect.element(notice).not.toBeInTheDocument()
  })

  test('removes only the notice that was shown when the payment was sent', async () => {
    const held = Promise.withResolvers<void>()
    let isHeld = false
    const intercept = (url: string, pass: () => Promise<Response>) =>
      isHeld && url.endsWith('/sign/digest') ? held.promise.then(pass) : undefined
    const { screen, service } = await openWallet({ intercept })
    const notice = screen.getByText('An earlier payment may still go through')
    noteInOtherTab(service.wallet.address, SIGNED_ELSEWHERE)
    await expect.element(notice).toBeVisible()
    await send(screen)
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    await screen.getByRole('button', { name: 'Send another' }).click()
    await expect.element(review(screen)).toBeVisible()
    expect(notice.query()).toBeNull()
    isHeld = true
    await send(screen)
    await expect.element(screen.getByText(/^Signing and sending/).first()).toBeVisible()
    noteInOtherTab(service.wallet.address, SIGNED_ELSEWHERE)
    held.resolve()
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    await screen.getByRole('button', { name: 'Send another' }).click()
    await expect.element(notice).toBeVisible()
  })

  test('drops a gas estimate when its call changes', async () => {
    const { screen } = await openWallet()
    await screen.getByText('Contract call').click()
    await to(screen).fill(recipient)
    await amount(screen).fill('0.1')
    await screen.getByRole('button', { name: 'Estimate gas' }).click()
    await expect.element(screen.getByLabelText('Gas limit')).toHaveValue('21000')
    await screen.getByLabelText('Data').fill('0xdeadbeef')
    await expect.element(screen.getByLabelText('Gas limit')).toHaveValue('')
  })
})
