import { afterEach, expect, test } from 'vitest'
import { answerBob, confirm } from '../../test/send/sendForm.ts'
import { installPasskeys, openVault, pay } from '../../test/vaults/openVault.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'

installPasskeys()
afterEach(closeWallet)

/** Once `isIn` is set, Bob is signed in from another tab. */
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

test('creates no vault for a different user who signed in from another tab', async () => {
  const other = createOther()
  const { screen, service } = await openWallet({ path: '/vaults/new', intercept: other.intercept })
  const button = (name: string) => screen.getByRole('button', { name })
  await screen.getByLabelText('Maximum without approval, in ETH').fill('0.1')
  await button('Create passkey').click()
  await button('Review rules').click()
  other.isIn = true
  await button('Create without a spare').click()
  await expect.element(screen.getByText('A different user is signed in')).toBeVisible()
  expect(service.requests).not.toContain('POST /vaults')
})

test('shows a different user’s vaults if they sign in while the list loads', async () => {
  const other = createOther()
  const intercept = (url: string, pass: () => Promise<Response>) => {
    if (url.endsWith('/vaults')) other.isIn = true
    return other.intercept(url, pass)
  }
  const { screen } = await openWallet({ path: '/vaults', intercept })
  await expect.element(screen.getByText('Bob')).toBeVisible()
  await expect.element(screen.getByText('No vaults yet.')).toBeVisible()
})

test('keeps the “may have been signed” notice after a lost response and a user switch', async () => {
  let isConfirmed = false
  let isOther = false
  const intercept = (url: string, pass: () => Promise<Response>) => {
    if (isConfirmed && url.includes('/sign/')) {
      isOther = true
      return Promise.reject(new TypeError('Failed to fetch'))
    }
    if (!isOther) return undefined
    return url.includes('/vaults') ? Promise.resolve(Response.json({ vaults: [] })) : answerBob(url, pass)
  }
  const { screen, service } = await openVault({ intercept })
  await pay(screen, '0.05')
  await expect.element(confirm(screen)).toBeVisible()
  isConfirmed = true
  const count = () => service.requests.filter((request) => request === 'GET /wallet/transactions').length
  const before = count()
  await confirm(screen).click()
  await expect.element(screen.getByRole('alert').getByText(/Sign in to your own account/)).toBeVisible()
  expect(count()).toBe(before)
})
