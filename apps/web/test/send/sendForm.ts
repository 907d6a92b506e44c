import type { SignResult } from '@countersign/sdk'
import { expect } from 'vitest'
import type { Token } from '../../src/config.ts'
import { writeStored } from '../../src/ui/stored.ts'
import type { openWallet } from '../wallet/openWallet.tsx'

export const recipient = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
export const TOKEN: Token = {
  chainId: 31337,
  address: '0xabababababababababababababababababababab',
  symbol: 'TEST',
  decimals: 6,
  name: 'Test Token',
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

/** Opens a page outside the wallet, in the same tab. */
export async function leave(screen: Screen) {
  await screen.getByRole('link', { name: 'Verify', exact: true }).click()
  await expect.element(screen.getByRole('heading', { level: 1, name: /verify/i })).toBeVisible()
}

export const comeBack = (screen: Screen) => screen.getByRole('link', { name: 'Wallet', exact: true }).click()

/** The service's responses after a different user signed in from another tab. */
export function answerBob(url: string, pass: () => Promise<Response>): Promise<Response> | undefined {
  if (!/\/(?:auth|wallet)\/me$/.test(url)) return undefined
  const bob = url.endsWith('/auth/me') ? { id: 'b', name: 'Bob' } : { address: recipient.toLowerCase() }
  return pass().then(async (response) => Response.json({ ...(await response.json()), ...bob }))
}

/** Whether the browser would ask before closing the tab. */
export function isLeavingHeld(): boolean {
  const leaving = new Event('beforeunload', { cancelable: true })
  window.dispatchEvent(leaving)
  return leaving.defaultPrevented
}

export const SIGNED_ELSEWHERE: SignResult = { txHash: `0x${'5e'.repeat(32)}`, attestationSlug: 'elsewhere' }

/** Another tab stores or removes a payment with an unknown outcome. The browser notifies other documents. */
export function noteInOtherTab(address: string, signed: SignResult | undefined): void {
  const tab = document.body.appendChild(document.createElement('iframe'))
  const storage = tab.contentWindow?.localStorage as Storage
  writeStored(storage, `countersign:unsettled:${address}`, signed)
  tab.remove()
}
