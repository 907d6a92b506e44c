import { afterEach, expect, test } from 'vitest'
import { closeWallet, openWallet } from '../wallet/openWallet.fake.tsx'
import { installPasskeys } from './openVault.fake.ts'

installPasskeys()
afterEach(closeWallet)

/** Once `isIn` is set, another tab has signed in Bob. */
function createOther() {
  const other = {
    isIn: false,
    intercept(url: string, pass: () => Promise<Response>) {
      if (!other.isIn || !url.endsWith('/auth/me')) return undefined
      return pass().then(async (response) => Response.json({ ...(await response.json()), id: 'b', name: 'Bob' }))
    },
  }
  return other
}

test('somebody else has signed in, in another tab: the vault would be theirs, and is not made', async () => {
  const other = createOther()
  const { screen, service } = await openWallet({ path: '/vaults/new', intercept: other.intercept })
  const button = (name: string) => screen.getByRole('button', { name })
  await screen.getByLabelText('Without approval up to, in ETH').fill('0.1')
  await button('Make a passkey').click()
  await button('Read the rules').click()
  other.isIn = true
  await button('Make it without a spare').click()
  await expect.element(screen.getByText('Somebody else is signed in now')).toBeVisible()
  expect(service.requests).not.toContain('POST /vaults')
})

test('somebody else has signed in while the vaults were read: the page becomes theirs', async () => {
  const other = createOther()
  const intercept = (url: string, pass: () => Promise<Response>) => {
    if (url.endsWith('/vaults')) other.isIn = true
    return other.intercept(url, pass)
  }
  const { screen } = await openWallet({ path: '/vaults', intercept })
  await expect.element(screen.getByText('Bob')).toBeVisible()
  await expect.element(screen.getByText('You have no vault yet.')).toBeVisible()
})
