import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import { afterEach, expect, test } from 'vitest'
import { recipient } from '../send/sendForm.fake.ts'
import { expectAccessible } from '../shell/expectAccessible.fake.ts'
import { closeWallet, openWallet } from '../wallet/openWallet.fake.tsx'

afterEach(closeWallet)

test('a payment that the node does not know, while its number is used, may have been paid; the node is asked again', async () => {
  const rpc: Record<string, () => unknown> = {
    eth_getTransactionReceipt: () => null,
    eth_getTransactionByHash: () => null,
  }
  const prepare = async (service: TestService) =>
    void (await new ServiceClient(service.config).signAndSend({ to: recipient, value: 1n }))
  const { screen } = await openWallet({ rpc, prepare })
  const row = screen.getByRole('link', { name: /^Sent to 0x709979…dc79C8.*ETH May have been paid/ })
  await expect.element(row).toBeVisible()
  expect(document.querySelector('.history-void')).toBeNull()
  await expectAccessible()
  // The node has caught up.
  rpc.eth_getTransactionReceipt = () => ({ status: '0x1' })
  document.dispatchEvent(new Event('visibilitychange'))
  await expect.element(row).not.toBeInTheDocument()
})
