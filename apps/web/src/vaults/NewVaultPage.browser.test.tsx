import { type CreateAgentParameters, createAgent } from '@countersign/sdk/agent'
import { ServiceClient } from '@countersign/sdk/client'
import { listVaults } from '@countersign/sdk/vaults/client'
import { afterEach, describe, expect, test } from 'vitest'
import { budgeted, toKey } from '../../../../packages/policy/test/policies.ts'
import { createBudgetProof } from '../../../../packages/verify/test/budgetProof.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { button, installPasskeys } from '../../test/vaults/openVault.ts'
import { closeWallet, type OpenWalletOptions, openWallet } from '../../test/wallet/openWallet.tsx'

const passkeys = installPasskeys()
afterEach(closeWallet)

const FRIEND = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const WITNESSES = [1, 2, 3].map(toKey)
const USDC = { chainId: 31337, address: `0x${'70'.repeat(20)}`, symbol: 'USDC', decimals: 6, name: 'USD Coin' } as const
const ORIGIN = 'log.example/1'

describe('an agent with a budget', () => {
  const config = { tokens: [USDC], trust: { log: { witnesses: WITNESSES, quorum: 2 } } }

  /** Answers with a log that these witnesses cosign. */
  const serveLog =
    (witnesses: readonly number[]): NonNullable<OpenWalletOptions['intercept']> =>
    (url) => {
      const { proof } = createBudgetProof({ policy: budgeted, timeS: 1_800_000_000, origin: ORIGIN, witnesses })
      if (url.endsWith('/checkpoint')) return Promise.resolve(new Response(proof?.checkpoint))
      const log = { hash: '00'.repeat(32), origin: ORIGIN, key: 'key', size: 5 }
      return url.endsWith('/log') ? Promise.resolve(Response.json({ logs: [log] })) : undefined
    }

  const open = async (options: OpenWalletOptions) => {
    const opened = await openWallet({ path: '/vaults/new', config, ...options })
    await opened.screen.getByRole('radio', { name: /^An agent with a budget/ }).click()
    return opened
  }

  test('is created with a key of this browser, whose secret the page shows once and never stores', async () => {
    const { screen, service } = await open({ intercept: serveLog([1, 2]) })
    await screen.getByLabelText('Asset').selectOptions('USDC (USD Coin)')
    await screen.getByLabelText('Limit, in USDC').fill('10')
    await button(screen, 'Create agent key').click()
    const field = screen.getByLabelText('Agent’s public key')
    await expect.element(field).toHaveValue(expect.stringMatching(/^[0-9a-f]{64}$/))
    await expectAccessible()
    await button(screen, 'Review rules').click()
    await expect.element(screen.getByRole('alert')).toHaveTextContent('These rules need a passkey. Create it first.')
    await button(screen, 'Create passkey').click()
    await button(screen, 'Review rules').click()
    await expect.element(screen.getByText('Budget of the agent: 10 USDC per day')).toBeVisible()
    await expect.element(screen.getByText(/assumes that none of the 3 witnesses lies/)).toBeVisible()
    await expectAccessible()
    await button(screen, 'Create without a spare').click()
    const text = screen.getByRole('textbox', { name: 'Settings of the agent' })
    await expect.element(text).toBeVisible()
    await expectAccessible()

    const settings = JSON.parse((text.element() as HTMLTextAreaElement).value) as CreateAgentParameters
    const [vault] = await listVaults(new ServiceClient(service.config))
    expect(createAgent(settings).address.toLowerCase()).toBe(vault?.address)
    expect(vault?.policy).toMatchObject({
      log: { origin: ORIGIN, quorum: 2 },
      budgets: [{ chainId: 31337, token: USDC.address, limit: '10000000', periodS: 86_400 }],
    })
    expect(JSON.stringify([{ ...sessionStorage }, { ...localStorage }])).not.toContain(settings.key)
    await button(screen, 'Create another').click()
    expect(document.body.innerHTML).not.toContain(settings.key)
  })

  test('shows text without a secret for a key of a program', async () => {
    const { screen } = await open({ intercept: serveLog([1, 2, 3]) })
    await screen.getByLabelText('Limit, in ETH').fill('0.1')
    await screen.getByLabelText('Agent’s public key').fill(toKey(9))
    await button(screen, 'Create passkey').click()
    await button(screen, 'Review rules').click()
    await button(screen, 'Create without a spare').click()
    await expect.element(screen.getByText(/add the secret key as “key”/)).toBeVisible()
    const text = screen.getByRole('textbox', { name: 'Settings of the agent' }).element() as HTMLTextAreaElement
    expect(JSON.parse(text.value)).not.toHaveProperty('key')
  })

  test.each([
    ['a limit of zero', 'Limit, in USDC', '0', /above zero/],
    ['too many decimals', 'Limit, in USDC', '0.0000001', /6 decimals for USDC/],
    ['an address as key', 'Agent’s public key', FRIEND, /64 hex digits/],
    ['a key of small order', 'Agent’s public key', `01${'00'.repeat(31)}`, /isn’t an Ed25519 public key/],
  ])('shows the error of %s at its field, and creates no passkey', async (_, label, value, message) => {
    const { screen, service } = await open({ intercept: serveLog([1, 2]) })
    await screen.getByLabelText('Asset').selectOptions('USDC (USD Coin)')
    await screen.getByLabelText('Limit, in USDC').fill('10')
    await screen.getByLabelText('Agent’s public key').fill(toKey(9))
    await screen.getByLabelText(label).fill(value)
    await button(screen, 'Create passkey').click()
    await expect.element(screen.getByLabelText(label)).toHaveAccessibleDescription(message)
    await expect.element(screen.getByLabelText(label)).toHaveFocus()
    expect([passkeys().credentialIds, service.requests.includes('POST /vaults')]).toEqual([[], false])
  })

  test.each<[string, OpenWalletOptions, RegExp]>([
    ['witnesses that the host doesn’t name', { intercept: serveLog([4, 5]) }, /cosign no log of this service/],
    ['too few witnesses', { intercept: serveLog([1]) }, /cosign no log of this service/],
    ['no log in the configuration', { config: { trust: {} } }, /no log that can count budgets/],
    ['a log that can’t be read', {}, /log couldn’t be read/],
  ])('is not created with %s', async (_, options, message) => {
    const { screen, service } = await open(options)
    await screen.getByLabelText('Limit, in ETH').fill('0.1')
    await screen.getByLabelText('Agent’s public key').fill(toKey(9))
    if (options.config === undefined) await button(screen, 'Create passkey').click()
    else await expect.element(screen.getByText('This service can’t count budgets')).toBeVisible()
    await button(screen, 'Review rules').click()
    await expect.element(screen.getByRole('alert').getByText(message)).toBeVisible()
    await expectAccessible()
    expect(service.requests).not.toContain('POST /vaults')
  })
})

test('creates no passkey for rules that would be rejected', async () => {
  const { screen } = await openWallet({ path: '/vaults/new' })
  await screen.getByRole('radio', { name: /^List of addresses/ }).click()
  await screen.getByLabelText('Each payment needs').selectOptions('one passkey')
  const list = screen.getByLabelText('Allowed recipients')
  for (const address of ['', FRIEND.replace('C8', 'c8')]) {
    await list.fill(address)
    await button(screen, 'Create passkey').click()
    await expect.element(list).toHaveAttribute('aria-invalid', 'true')
    await expect.element(list).toHaveFocus()
  }
  expect(passkeys().credentialIds).toHaveLength(0)
  // The format in which people copy addresses.
  await list.fill(FRIEND)
  await button(screen, 'Create passkey').click()
  await expect.element(screen.getByText(/^Passkey 1, created here/)).toBeVisible()
})

test.each([
  ['requires three witnesses and shows a warning', WITNESSES, 2],
  ['does not require two witnesses', WITNESSES.slice(0, 2), 2],
])('before the vault is created: %s', async (_, witnesses, quorum) => {
  const trust = { log: { witnesses, quorum } }
  const { screen, service } = await openWallet({ path: '/vaults/new', config: { trust } })
  await screen.getByRole('radio', { name: /^Limit per payment/ }).click()
  await screen.getByLabelText('Maximum per payment, in ETH').fill('0.1')
  await button(screen, 'Review rules').click()
  await expect.element(button(screen, 'Create vault')).toBeVisible()
  const isLogged = witnesses.length >= 3
  expect(screen.getByText('Without its witnesses, this vault is locked permanently').elements()).toHaveLength(
    isLogged ? 1 : 0,
  )
  await expectAccessible()
  expect(service.requests).not.toContain('POST /vaults')
  await button(screen, 'Create vault').click()
  await expect.element(screen.getByRole('heading', { name: 'Vault created' })).toBeVisible()
  const [vault] = await listVaults(new ServiceClient(service.config))
  expect(vault?.policy.log).toEqual(isLogged ? { witnesses: witnesses.toSorted(), quorum } : null)
})
