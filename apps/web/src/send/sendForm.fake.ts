import type { Token } from '../config.ts'
import type { openWallet } from '../wallet/openWallet.fake.tsx'

/* The form as a person finds it. */

export const recipient = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
export const TOKEN: Token = {
  ...{ chainId: 31337, address: '0xabababababababababababababababababababab', symbol: 'TEST' },
  ...{ decimals: 6, name: 'Test Token' },
}

type Screen = Awaited<ReturnType<typeof openWallet>>['screen']

export const to = (screen: Screen) => screen.getByLabelText('To', { exact: true })
export const amount = (screen: Screen) => screen.getByLabelText('Amount in ETH')
export const review = (screen: Screen) => screen.getByRole('button', { name: 'Review' })
export const confirm = (screen: Screen) => screen.getByRole('button', { name: /^Sign and send/ })

export async function write(screen: Screen, payment: { to?: string; amount?: string }) {
  await to(screen).fill(payment.to ?? recipient)
  await amount(screen).fill(payment.amount ?? '0.25')
  await review(screen).click()
}

export async function send(screen: Screen) {
  await write(screen, {})
  await confirm(screen).click()
}
