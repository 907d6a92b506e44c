import { afterEach, expect, test, vi } from 'vitest'
import { page } from 'vitest/browser'
import { render } from 'vitest-browser-react'
import { ShareLink } from './ProofPage.tsx'

const url = 'https://wallet.example/proof/q8Zk2vXo1fTn0uYbWcR3dA'
const shareButton = page.getByRole('button', { name: 'Share the link to this proof' })
const setShare = (share: unknown) => Object.defineProperty(navigator, 'share', { value: share, configurable: true })

afterEach(() => {
  delete (navigator as { share?: unknown }).share
  vi.restoreAllMocks()
})

test('shares a link with the device’s share sheet and keeps offering it after a cancel', async () => {
  const share = vi.fn().mockRejectedValueOnce(new DOMException('closed', 'AbortError')).mockResolvedValue(undefined)
  setShare(share)
  await render(<ShareLink url={url} />)
  await shareButton.click()
  await shareButton.click()
  const shared = [{ title: 'Proof of a signature', url }]
  expect(share.mock.calls).toEqual([shared, shared])
})

test.each([
  ['that shares nothing', undefined],
  ['that refuses to share', () => Promise.reject(new DOMException('no', 'NotAllowedError'))],
])('copies the link on a device %s', async (_name, share) => {
  setShare(share)
  const writeText = vi.spyOn(navigator.clipboard, 'writeText').mockResolvedValue()
  await render(<ShareLink url={url} />)
  if (share !== undefined) await shareButton.click()
  await page.getByRole('button', { name: 'Copy the link to this proof' }).click()
  expect(writeText).toHaveBeenCalledWith(url)
})
