import { ServiceClient } from '@countersign/sdk/client'
import { createTestPasskeys, type TestService } from '@countersign/sdk/testing'
import { createPasskey, createVault, type Vault } from '@countersign/sdk/vaults/client'
import { parseEther } from 'viem'
import { afterEach, beforeEach, expect } from 'vitest'
import { toPolicy } from '../../src/vaults/template.ts'
import { amount, recipient, review, to } from '../send/sendForm.ts'
import { type OpenWalletOptions, openWallet } from '../wallet/openWallet.tsx'

type Screen = Awaited<ReturnType<typeof openWallet>>['screen']

/** Installs passkeys for each test and returns them. */
export function installPasskeys() {
  let passkeys = createTestPasskeys()
  let uninstall: (() => void) | undefined
  beforeEach(() => {
    passkeys = createTestPasskeys()
    uninstall = passkeys.install()
  })
  afterEach(() => uninstall?.())
  return () => passkeys
}

export const button = (screen: Screen, name: string | RegExp) => screen.getByRole('button', { name })

/** Some links get their address only after a moment. */
export async function hrefOf(screen: Screen, name: string): Promise<string> {
  const link = screen.getByRole('link', { name })
  await expect.element(link).toHaveAttribute('href')
  return (link.element() as HTMLAnchorElement).href
}

export const signings = (service: TestService) =>
  service.requests.filter((request) => request.startsWith('POST /sign/'))

/** A page of a funded vault: up to 0.1 ETH without approval, more with all its passkeys. */
export async function openVault({
  approvals = 1,
  ...options
}: Pick<OpenWalletOptions, 'intercept'> & { approvals?: number } = {}) {
  let vault: Vault | undefined
  const make = async (service: TestService) => {
    const client = new ServiceClient(service.config)
    const made = await Promise.all(Array.from({ length: approvals }, () => createPasskey({ name: 'Ada' })))
    const terms = { template: 'approval', limitWei: parseEther('0.1'), feeWei: parseEther('0.01') } as const
    const approvers = made.map(({ approver }) => approver)
    const context = { chainId: 31337, approvers, log: null }
    vault = await createVault(client, toPolicy({ ...terms, recipients: null, approvals, agent: null }, context))
    await client.signAndSend({ to: vault.address, value: '5' })
  }
  const opened = await openWallet({ path: '/vaults', prepare: make, ...options })
  if (vault === undefined) throw new Error('no vault was made')
  await opened.screen.getByRole('link', { name: /Up to 0\.1/ }).click()
  await expect.element(opened.screen.getByRole('heading', { name: 'Vault address' })).toBeVisible()
  await expect.element(opened.screen.getByText(/^This vault wasn’t created in this browser\./)).toBeVisible()
  return { ...opened, vault, before: signings(opened.service).length }
}

export async function pay(screen: Screen, value: string) {
  await to(screen).fill(recipient)
  await amount(screen).fill(value)
  await review(screen).click()
}
