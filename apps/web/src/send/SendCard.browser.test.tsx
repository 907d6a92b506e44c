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
    // 21,000 gas at the cap of 10,000 gwei, whatever the RPC says after this look.
    await expect.element(screen.getByText(/never more than 0\.21 ETH/)).toBeVisible()
    await expect.element(screen.getByText(/even if the transaction isn’t sent/)).toBeVisible()
    await expectAccessible()
    expect(service.requests).not.toContain('POST /sign/digest')
    await confirm(screen).click()
    await expect.element(screen.getByText('Sent 0.000000000000000001 ETH')).toBeVisible()
    expect(service.transactions).toMatchObject([{ to: recipient.toLowerCase(), value: 1n, gas: 21_000n, data: '0x' }])
  })

  test('afterwards: progress, a link to the proof, a new balance, and a row in the history', async () => {
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

  test('change: back to the form, with everything still in it', async () => {
    const { screen, service } = await openWallet()
    await write(screen, { amount: '0.3' })
    await screen.getByRole('button', { name: 'Change' }).click()
    await expect.element(amount(screen)).toHaveValue('0.3')
    await expect.element(to(screen)).toHaveFocus()
    expect(service.requests).not.toContain('POST /sign/digest')
  })

  test('by keyboard alone', async () => {
    const { screen, service } = await openWallet()
    await expect.element(to(screen)).toBeVisible()
    // From the top of the page, as someone without a mouse comes.
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

  test('faults are told beside their fields, the first of which gets the focus; nothing is signed', async () => {
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

  test('a contract call: gas is estimated, offered and can be changed', async () => {
    const { screen, service } = await openWallet()
    await screen.getByText('Contract call').click()
    await to(screen).fill(recipient)
    await screen.getByLabelText('Data').fill('0xDEADBEEF')
    await screen.getByRole('button', { name: 'Estimate gas' }).click()
    const gas = screen.getByLabelText('Gas limit')
    // 21,000 and 4 bytes at 16, and a fifth of that.
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
  test('a refusal of the service: what it means, and the payment is still in the form', async () => {
    const { screen, service } = await openWallet()
    service.failNext('POST /sign/digest', { code: 'rate_limited' })
    await send(screen)
    await expect.element(screen.getByRole('alert').getByText('Too many requests')).toBeVisible()
    await expect.element(amount(screen)).toHaveValue('0.25')
    expect(service.transactions).toEqual([])
    await expectAccessible()
  })

  test('signed, but not broadcast: the hash and the proof are there to be found', async () => {
    const { screen, service } = await openWallet()
    service.failNext('eth_sendRawTransaction', { code: -32000, message: 'insufficient funds for gas * price + value' })
    await send(screen)
    await expect.element(screen.getByText('Insufficient funds')).toBeVisible()
    const slug = service.proofs[0]?.slug
    await expect.element(screen.getByRole('link', { name: 'View proof' })).toHaveAttribute('href', `/proof/${slug}`)
    expect(service.transactions).toEqual([])
  })
})

test('somebody else signs in after the confirmation, and the page has found out: their wallet does not pay', async () => {
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
  // Read once more when the payment has come to its end.
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

  test('fees that rise between review and confirmation: nothing is signed, and the new price is shown', async () => {
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

  test('two clicks in one turn are one payment', async () => {
    const { screen, service } = await openWallet()
    await write(screen, {})
    await expect.element(confirm(screen)).toBeVisible()
    const button = confirm(screen).element() as HTMLButtonElement
    button.click()
    button.click()
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    expect(service.requests.filter((request) => request === 'POST /sign/digest')).toHaveLength(1)
  })

  test('a lost answer: it may have been signed, and the history is read again', async () => {
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

  test('a lost answer, and somebody else has signed in: that it may have been signed stays in sight', async () => {
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

  test('a visitor who leaves the page while it signs, and comes back, finds the result', async () => {
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
    // On a page of the wallet or not: a tab that is closed now leaves a signature, and nothing sent.
    expect(isLeavingHeld()).toBe(true)
    held.resolve()
    await expect.poll(() => service.transactions.length).toBe(1)
    await comeBack(screen)
    await expect.element(screen.getByText('Sent 0.25 ETH')).toBeVisible()
    expect(isLeavingHeld()).toBe(false)
  })

  test('an outcome that is not known stays in sight until somebody has looked, also after a reload', async () => {
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

  test('somebody has looked in another tab while this one was on another page: that counts here too', async () => {
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

  test('a browser that keeps nothing: an outcome that is not known stays in sight until somebody has looked', async () => {
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

  test('a payment that is sent takes away the notice that stood beside it, and no other', async () => {
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

  test('an estimate does not outlive the call that it was made for', async () => {
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
