import { afterEach, expect, test } from 'vitest'
import { answerBob, confirm } from '../../test/send/sendForm.ts'
import { installPasskeys, openVault, pay } from '../../test/vaults/openVault.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'

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
  await screen.getByLabelText('Maximum without approval, in ETH').fill('0.1')
  await button('Create passkey').click()
  await button('Review rules').click()
  other.isIn = true
  await button('Create without a spare').click()
  await expect.element(screen.getByText('A different user is signed in')).toBeVisible()
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
  await expect.element(screen.getByText('No vaults yet.')).toBeVisible()
})

test('a lost answer, and somebody else has signed in: that the payment may have been signed stays in sight', async () => {
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
