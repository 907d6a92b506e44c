import { parseEther } from 'viem'
import { afterEach, describe, expect, test } from 'vitest'
import { amount, confirm, recipient, review, TOKEN, to } from '../../test/send/sendForm.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'
import { toTransferData } from '../token/erc20.ts'

afterEach(closeWallet)

/** The wallet holds 12.5 tokens. */
async function openWithToken() {
  const eth_call = ([request]: readonly unknown[]) =>
    (request as { to: string }).to === TOKEN.address ? `0x${(12_500_000).toString(16).padStart(64, '0')}` : '0x'
  const opened = await openWallet({ config: { tokens: [TOKEN, { ...TOKEN, chainId: 1 }] }, rpc: { eth_call } })
  await opened.screen.getByLabelText('Asset').selectOptions('TEST (Test Token)')
  return { ...opened, tokens: () => opened.screen.getByLabelText('Amount in TEST') }
}

describe('a token', () => {
  test('shows its balance, confirms token, amount, recipient and a fee in ETH, and calls its contract', async () => {
    const { screen, service, tokens } = await openWithToken()
    await expect.element(screen.getByRole('list', { name: 'Tokens' }).getByText('12.5 TEST')).toBeVisible()
    await to(screen).fill(recipient)
    await tokens().fill('2.5')
    await review(screen).click()
    await expect.element(screen.getByRole('heading', { name: 'Review payment' })).toHaveFocus()
    await expect.element(screen.getByText('2.5 TEST', { exact: true })).toBeVisible()
    await expect.element(screen.getByText(recipient)).toBeVisible()
    await expect.element(screen.getByText(/Test Token, contract 0xab/i)).toBeVisible()
    await expect.element(screen.getByText(/up to about .* ETH, never more than .* ETH/)).toBeVisible()
    await expectAccessible()
    await confirm(screen).click()
    await expect.element(screen.getByText('Sent 2.5 TEST')).toBeVisible()
    const data = toTransferData({ recipient, amount: 2_500_000n })
    expect(service.transactions).toMatchObject([{ to: TOKEN.address, value: 0n, data }])
    await expect.element(screen.getByRole('link', { name: /Sent to 0x709979…dc79C8.*−2\.5 TEST/ })).toBeVisible()
  })

  test('warns about sending it to its own contract, and sends all of it with Max', async () => {
    const { screen, tokens } = await openWithToken()
    await to(screen).fill(TOKEN.address)
    await screen.getByRole('button', { name: 'Max' }).click()
    await expect.element(tokens()).toHaveValue('12.5')
    await review(screen).click()
    await expect.element(screen.getByText('This is the token’s own contract')).toBeVisible()
    await expectAccessible()
  })
})

describe('Max', () => {
  const max = async (fee: { gwei: bigint }) => {
    const eth_maxPriorityFeePerGas = () => `0x${(fee.gwei * 10n ** 9n).toString(16)}`
    const opened = await openWallet({ balance: parseEther('1'), rpc: { eth_maxPriorityFeePerGas } })
    await opened.screen.getByRole('button', { name: 'Max' }).click()
    await expect.element(amount(opened.screen)).toHaveValue(expect.stringMatching(/^0\.99/))
    await to(opened.screen).fill(recipient)
    return opened
  }

  test('is replaced by an amount that the user enters', async () => {
    const { screen } = await max({ gwei: 1n })
    await amount(screen).fill('0.5')
    await review(screen).click()
    await expect.element(screen.getByRole('button', { name: 'Sign and send 0.5 ETH' })).toBeVisible()
  })
})
