import { createPolicy } from '@countersign/policy'
import {
  hashOwner,
  hashUnsignedTransaction,
  type OwnerOpening,
  type TxMetadata,
  toCanonicalJson,
  toHex,
} from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import type { Vault } from '@countersign/sdk/vaults'
import { approve, createPasskey, createVault, parsePrepared, prepare } from '@countersign/sdk/vaults/client'
import { parseEther, sha256 } from 'viem'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { page, userEvent } from 'vitest/browser'
import { confirm, recipient, to } from '../../test/send/sendForm.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { button, hrefOf, installPasskeys, openVault, pay, signings } from '../../test/vaults/openVault.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'
import { readPreparedText, toApproveUrl } from './approvalText.ts'
import { EMPTY_DRAFT, readDraft, writeDraft } from './newVaultDraft.ts'
import { toPolicy } from './template.ts'
import { readVaultNotes } from './vaultNotes.ts'

const passkeys = installPasskeys()
afterEach(closeWallet)

describe('creating a vault', () => {
  test('shows the rules and what locks the funds first, and the address afterwards', async () => {
    const { screen, service } = await openWallet({ path: '/vaults' })
    await expect.element(screen.getByText('No vaults yet.')).toBeVisible()
    await expectAccessible()
    await screen.getByRole('link', { name: 'Create vault' }).click()
    await screen.getByLabelText('Maximum without approval, in ETH').fill('0.1')
    await userEvent.keyboard('{Enter}')
    await expect.element(screen.getByRole('alert')).toHaveTextContent('These rules need a passkey. Create it first.')
    await button(screen, 'Create passkey').click()
    await expect.element(screen.getByText('Add a spare passkey')).toBeVisible()
    await expectAccessible()
    await button(screen, 'Review rules').click()
    await expect
      .element(screen.getByRole('heading', { name: 'Review the rules: you can’t change them later' }))
      .toHaveFocus()
    await expect.element(screen.getByText(/^These rules can never change\./)).toBeVisible()
    await expect
      .element(screen.getByText('There is no spare passkey: one that is lost cannot be replaced.'))
      .toBeVisible()
    await expect.element(screen.getByText(/If the domain is lost, its passkeys are lost too/)).toBeVisible()
    await expect.element(screen.getByText(/root secret is lost/)).toBeVisible()
    await expectAccessible()
    expect(service.requests).not.toContain('POST /vaults')
    await button(screen, 'Create without a spare').click()
    await expect.element(screen.getByRole('heading', { name: 'Vault created' })).toHaveFocus()
    const saved = await (await fetch(await hrefOf(screen, 'Download rules'))).text()
    expect(createPolicy(JSON.parse(saved))).toMatchObject({ log: null, approvers: [{ rpId: 'localhost' }] })
    await button(screen, 'Attest address').click()
    await expect.element(screen.getByRole('link', { name: 'View proof of the address' })).toBeVisible()
    expect(service.proofs).toMatchObject([{ kind: 'address' }])
    await expect.element(screen.getByText(/belongs to user@example\.test at https:\/\/issuer\.example\./)).toBeVisible()
    const saving = await fetch(await hrefOf(screen, 'Save the owner’s opening'))
    const owner = (await saving.json()) as OwnerOpening
    service.advanceProof(service.proofs[0]?.slug ?? '')
    expect(service.proofs).toMatchObject([{ receipt: { subject: { owner: toHex(hashOwner(owner)) } } }])
    await expectAccessible()
  })

  test('shows errors at their fields and focuses the first', async () => {
    const { screen, service } = await openWallet({ path: '/vaults/new' })
    await screen.getByRole('radio', { name: /^List of addresses/ }).click()
    await screen.getByLabelText('Allowed recipients').fill('0x12')
    await button(screen, 'Review rules').click()
    const field = screen.getByLabelText('Allowed recipients')
    await expect.element(field).toHaveAccessibleDescription(expect.stringContaining('Address 1: Enter 0x followed'))
    await expect.element(field).toHaveFocus()
    await expectAccessible()
    // Clearing an error while typing must not move the focus.
    const fee = screen.getByLabelText(/^Maximum network fee/)
    await fee.fill('1')
    await expect.element(fee).toHaveFocus()
    await expect.element(field).toHaveAttribute('aria-invalid', 'true')
    expect(service.requests).not.toContain('POST /vaults')
  })

  test('restores fields and passkeys after another sign-in', async () => {
    const { screen, service } = await openWallet({ path: '/vaults/new' })
    await screen.getByLabelText('Maximum without approval, in ETH').fill('0.1')
    await screen.getByLabelText('Name', { exact: true }).fill('Savings')
    await button(screen, 'Create passkey').click()
    await button(screen, 'Review rules').click()
    service.signOut()
    await button(screen, 'Create without a spare').click()
    await expect.element(screen.getByText(/Your session has ended/)).toBeVisible()
    service.signIn()
    await screen.getByRole('link', { name: 'Vaults', exact: true }).click()
    await screen.getByRole('link', { name: 'Create vault' }).click()
    await expect.element(screen.getByText(/^Passkey 1, created here/)).toBeVisible()
    await button(screen, 'Review rules').click()
    await button(screen, 'Create without a spare').click()
    await expect.element(screen.getByRole('heading', { name: 'Vault created' })).toBeVisible()
    await screen.getByRole('link', { name: 'Open vault' }).click()
    await expect.element(screen.getByRole('heading', { level: 1, name: 'Savings' })).toBeVisible()
    await expect.element(screen.getByRole('heading', { name: 'Vault address' })).toBeVisible()
    await expect.element(screen.getByText(/^This vault wasn’t created in this browser\./)).not.toBeInTheDocument()
  })

  test('shows no address until the rules are pinned, and can be retried', async () => {
    const { screen, service } = await openWallet({ path: '/vaults/new' })
    await screen.getByRole('radio', { name: /^Limit per payment/ }).click()
    await screen.getByLabelText('Maximum per payment, in ETH').fill('0.1')
    await button(screen, 'Review rules').click()
    await expect.element(screen.getByText('A limit for each payment does not limit the total.')).toBeVisible()
    service.failNext('POST /vaults', { code: 'policy_not_pinned' })
    await button(screen, 'Create vault').click()
    await expect.element(screen.getByText('The rules aren’t on IPFS yet')).toBeVisible()
    expect(document.querySelector('.address-groups')).toBeNull()
    await button(screen, 'Create vault').click()
    await expect.element(screen.getByRole('heading', { name: 'Vault created' })).toBeVisible()
  })
})

describe('paying from a vault', () => {
  test('needs no passkey below the limit', async () => {
    const { screen, service, vault } = await openVault()
    await pay(screen, '0.1')
    await expect.element(screen.getByText('The vault’s rules allow this without approval.')).toBeVisible()
    await expectAccessible()
    await confirm(screen).click()
    await expect.element(screen.getByRole('heading', { name: 'Sent 0.1 ETH' })).toBeVisible()
    expect(service.transactions.at(-1)).toMatchObject({ from: vault.address, value: parseEther('0.1') })
    await expect.element(screen.getByRole('link', { name: /Sent to 0x709979…dc79C8.*−0\.1 ETH/ })).toBeVisible()
    // The wallet's own history names the vault.
    await screen.getByRole('link', { name: 'Wallet', exact: true }).click()
    await expect
      .element(screen.getByRole('link', { name: /Sent to 0x709979….*from vault 0x.*−0\.1 ETH/ }))
      .toBeVisible()
  })

  test('signs nothing above the limit until a passkey approves it', async () => {
    const { screen, service, before } = await openVault()
    await pay(screen, '0.2')
    await expect.element(screen.getByRole('heading', { name: 'Approval needed' })).toHaveFocus()
    await expect.element(screen.getByText('0.2 ETH', { exact: true })).toBeVisible()
    await expect.element(screen.getByText(recipient)).toBeVisible()
    await expectAccessible()
    passkeys().cancelNext()
    await button(screen, 'Approve with passkey').click()
    await expect.element(screen.getByText('Passkey cancelled')).toBeVisible()
    expect(signings(service)).toHaveLength(before)
    await button(screen, 'Approve with passkey').click()
    await expect.element(screen.getByText(/^1 of 1 approval\. Expires on/)).toBeVisible()
    // A key press meant for the previous button must not sign.
    await userEvent.keyboard('{Enter}')
    await expect.element(screen.getByRole('heading', { name: 'Review payment' })).toHaveFocus()
    expect(signings(service)).toHaveLength(before)
    await confirm(screen).click()
    await expect.element(screen.getByRole('heading', { name: 'Sent 0.2 ETH' })).toBeVisible()
    expect(signings(service)).toHaveLength(before + 1)
  })

  test('rejects a payment that no rule allows, and names the rule’s reason', async () => {
    const { screen, service, before } = await openVault()
    await screen.getByText('Contract call').click()
    await screen.getByLabelText('Data').fill('0xdeadbeef')
    await pay(screen, '0')
    await expect.element(screen.getByText('Rejected by the vault’s rules')).toBeVisible()
    await expect
      .element(screen.getByText(/without data are allowed|function is not on the list|length that is allowed/))
      .toBeVisible()
    expect(signings(service)).toHaveLength(before)
    await expect.element(to(screen)).toHaveValue(recipient)
    await expectAccessible()
  })

  test('keeps an approved payment after the session has expired', async () => {
    const { screen, service, vault } = await openVault()
    await pay(screen, '0.2')
    await button(screen, 'Approve with passkey').click()
    await expect.element(screen.getByText(/^1 of 1 approval/)).toBeVisible()
    service.signOut()
    await confirm(screen).click()
    await expect.element(screen.getByText(/Your session has ended/)).toBeVisible()
    service.signIn()
    await screen.getByRole('link', { name: 'Vaults', exact: true }).click()
    await screen.getByRole('link', { name: /Up to 0\.1/ }).click()
    await expect.element(screen.getByText(/^1 of 1 approval/)).toBeVisible()
    await confirm(screen).click()
    await expect.element(screen.getByRole('heading', { name: 'Sent 0.2 ETH' })).toBeVisible()
    expect(service.transactions.at(-1)).toMatchObject({ from: vault.address, nonce: 0 })
  })

  test('accepts an approval from another device, but not one for another payment', async () => {
    const { screen } = await openVault()
    const approveThere = async () => {
      const href = await hrefOf(screen, 'Approval link')
      return JSON.stringify(await approve(parsePrepared(readPreparedText(href))))
    }
    await pay(screen, '0.3')
    await screen.getByText('Approve on another device').click()
    const other = await approveThere()
    await button(screen, 'Change').click()
    await pay(screen, '0.2')
    await screen.getByText('Approve on another device').click()
    const field = screen.getByLabelText('Approval text')
    await field.fill(other)
    await button(screen, 'Add approval').click()
    await expect.element(field).toHaveAccessibleDescription(/for another signature/)
    await expectAccessible()
    await field.fill(await approveThere())
    await button(screen, 'Add approval').click()
    await expect.element(confirm(screen)).toBeVisible()
  })
})

describe('on an approver’s device', () => {
  test('shows the payment without a sign-in and returns the approval as text', async () => {
    const { screen, service } = await openVault()
    await pay(screen, '0.2')
    await screen.getByText('Approve on another device').click()
    const href = await hrefOf(screen, 'Approval link')
    service.signOut()
    window.history.pushState(null, '', `/approve${new URL(href).hash}`)
    window.dispatchEvent(new PopStateEvent('popstate'))
    await expect.element(screen.getByRole('heading', { name: 'Do you approve this?' })).toBeVisible()
    await expect.element(screen.getByText('0.2 ETH', { exact: true })).toBeVisible()
    await expect.element(screen.getByText(recipient)).toBeVisible()
    await expectAccessible()
    await button(screen, 'Approve with passkey').click()
    await expect.element(screen.getByRole('heading', { name: 'Approved' })).toBeVisible()
    expect(JSON.parse(document.querySelector('[data-text="approval"]')?.textContent ?? '')).toMatchObject({
      approver: 0,
    })
  })

  test('shows a message as it would be signed, and doesn’t report an early request as expired', async () => {
    let [fragment, again, ahead] = ['', '', '']
    const make = async (service: TestService) => {
      const client = new ServiceClient(service.config)
      const { approver } = await createPasskey({ name: 'Ada' })
      const rules = [{ kind: 'message', approvals: 1, approvers: 'any' }] as const
      const vault = await createVault(client, { version: 1, log: null, approvers: [approver], rules })
      const prepared = await prepare(client, vault, { kind: 'message', message: 'Ada owes Bob a coffee' })
      fragment = new URL(toApproveUrl(prepared, window.location.origin)).hash
      const endingIn = (ms: number) =>
        toApproveUrl({ ...prepared, expiresMs: prepared.expiresMs + ms }, '').slice('/approve'.length)
      ;[again, ahead] = [endingIn(1), endingIn(86_400_000)]
    }
    const { screen } = await openWallet({ path: '/approve', prepare: make })
    await screen.getByLabelText('Link or file contents').fill(fragment)
    await screen.getByRole('button', { name: 'Open', exact: true }).click()
    await expect.element(screen.getByText('Ada owes Bob a coffee')).toBeVisible()
    await expectAccessible()
    await button(screen, 'Approve with passkey').click()
    await expect.element(screen.getByRole('heading', { name: 'Approved' })).toBeVisible()
    // The same content with another expiry is a different request, and isn't approved.
    window.location.hash = again
    await expect.element(screen.getByRole('heading', { name: 'Do you approve this?' })).toBeVisible()
    window.location.hash = ahead
    await button(screen, 'Approve with passkey').click()
    await expect.element(screen.getByText('Check this device’s clock')).toBeVisible()
  })

  test.each([
    ['with another coin, names that coin', 137, '7 POL', /^at most [\d.]+ POL$/],
    [
      'with a data fee, says that the fee has no limit',
      8453,
      '7 ETH',
      /^at most [\d.]+ ETH for gas, plus the chain’s data fee/,
    ],
  ])('the approval page on a chain %s', async (_, chainId, amount, fee) => {
    let fragment = ''
    const make = async (service: TestService) => {
      const { approver } = await createPasskey({ name: 'Ada' })
      const terms = { template: 'approval', limitWei: 1n, feeWei: 1n, recipients: null, approvals: 1 } as const
      const context = { chainId, approvers: [approver], log: null }
      const client = new ServiceClient(service.config)
      const vault = await createVault(client, toPolicy({ ...terms, agent: null }, context))
      const prepared = await prepare(client, vault, { kind: 'transaction', to: recipient, value: '7', gas: 21_000n })
      const content = { ...(prepared.content as TxMetadata), chainId }
      const digest = `0x${toHex(hashUnsignedTransaction(content))}` as const
      fragment = toApproveUrl({ ...prepared, kind: 'transaction', content, digest }, '').slice('/approve'.length)
    }
    const { screen } = await openWallet({ path: '/approve', prepare: make })
    await screen.getByLabelText('Link or file contents').fill(fragment)
    await screen.getByRole('button', { name: 'Open', exact: true }).click()
    await expect.element(screen.getByText(amount, { exact: true })).toBeVisible()
    await expect.element(screen.getByText(fee)).toBeVisible()
    await screen.getByText('Vault rules').click()
    await expect.element(screen.getByText(/^These rules can never change/)).toBeVisible()
    expect(screen.getByText(/data fee, which no rule can limit/).elements()).toHaveLength(chainId === 8453 ? 1 : 0)
  })

  test('rejects an incomplete link', async () => {
    const { screen } = await openWallet({ path: '/approve', signedIn: false })
    await screen.getByLabelText('Link or file contents').fill('#eyJ2ZXJzaW9u')
    await screen.getByRole('button', { name: 'Open', exact: true }).click()
    await expect.element(screen.getByText('Invalid approval request')).toBeVisible()
    await expectAccessible()
  })

  test('creates a passkey for someone else’s vault without a sign-in', async () => {
    const { screen } = await openWallet({ path: '/passkey', signedIn: false })
    await button(screen, 'Create passkey').click()
    await expect.element(screen.getByText('Passkey created. Its public key isn’t secret:')).toBeVisible()
    const text = document.querySelector('[data-text="approver"]')?.textContent ?? ''
    expect(JSON.parse(text)).toMatchObject({ rpId: 'localhost', origins: [window.location.origin] })
    await expectAccessible()
  })
})

test('hides vaults of other users', async () => {
  const { screen } = await openWallet({ path: `/vaults/0x${'ab'.repeat(20)}` })
  await expect.element(screen.getByText('Vault not found')).toBeVisible()
})

test('is never wider than a small phone', async () => {
  const { screen } = await openVault()
  await page.viewport(320, 640)
  onTestFinished(() => page.viewport(414, 896))
  await pay(screen, '0.2')
  await screen.getByText('Approve on another device').click()
  await screen.getByText('Vault rules').click()
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(320)
})

test('rejects rules with an invalid key', async () => {
  const rule = {
    kind: 'transaction',
    chainIds: [1],
    to: 'any',
    maxValueWei: '5',
    maxFeeWei: '5',
    approvals: 0,
    approvers: 'any',
  } as const
  const policy = { version: 1, log: { witnesses: ['ff'.repeat(32)], quorum: 1 }, approvers: [], rules: [rule] } as const
  const bytes = toCanonicalJson(policy)
  const vault: Vault = {
    address: `0x${'ab'.repeat(20)}`,
    policy,
    createdAt: new Date(0).toISOString(),
    policyHash: sha256(bytes).slice(2),
    policyCid: toCid(bytes),
  }
  const { screen } = await openWallet({
    path: `/vaults/${vault.address}`,
    intercept: (url) => (url.endsWith('/vaults') ? Promise.resolve(Response.json({ vaults: [vault] })) : undefined),
  })
  await expect.element(screen.getByText('Unexpected response')).toBeVisible()
  await expect.element(screen.getByText('Vault rules')).not.toBeInTheDocument()
})

test('restores a draft only for its own user', () => {
  const [ada, bob] = [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(20)}`]
  const draft = { ...EMPTY_DRAFT, fields: { ...EMPTY_DRAFT.fields, name: 'Savings' } }
  writeDraft(ada, draft)
  expect(readDraft(ada)).toEqual(draft)
  expect(readDraft(bob)).toEqual(EMPTY_DRAFT)
  writeDraft(ada, undefined)
})

test('ignores malformed notes', () => {
  const key = `countersign:vault:0x${'ab'.repeat(20)}`
  for (const text of ['{', '7', '{"name":7,"passkeys":[{"credentialId":"%","transports":[]},{}]}']) {
    localStorage.setItem(key, text)
    expect(readVaultNotes(`0x${'AB'.repeat(20)}`)).toEqual({ name: '', passkeys: [] })
  }
})
