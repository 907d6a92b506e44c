import { hashOwner, toHex } from '@countersign/protocol'
import type { Approval, Passkey, Policy, Vault } from '@countersign/sdk/vaults/client'
import type { BrowserContext, Page } from 'playwright'
import { type Address, parseEther, recoverMessageAddress } from 'viem'
import { expect, test } from 'vitest'
import { addAuthenticator } from '../driveVaults.ts'
import { readMined } from '../readMined.ts'
import { createStranger, type Harness } from './harness.ts'

export function testVaults(sdk: Harness) {
  /** A device: a browser with a separate authenticator and a passkey in it. */
  async function openDevice(context: BrowserContext): Promise<{ page: Page; passkey: Passkey }> {
    const { page } = await sdk.open({ context, path: '/vaults.html' })
    await page.waitForFunction(() => 'vaults' in window)
    await addAuthenticator(page)
    return { page, passkey: await page.evaluate(() => window.vaults.createPasskey({ name: 'owner' })) }
  }

  /** Allows up to 0.1 ether to one address without approval, up to one ether to anyone with one passkey, and messages with both. */
  function toPolicy(payee: Address, passkeys: readonly Passkey[]): Policy {
    const payment = {
      kind: 'transaction',
      chainIds: [sdk.stack.chain.chainId],
      maxFeeWei: String(parseEther('0.1')),
      approvers: 'any',
    } as const
    return {
      version: 1,
      log: null,
      approvers: passkeys.map(({ approver }) => approver),
      rules: [
        { ...payment, to: [payee.toLowerCase() as Address], maxValueWei: String(parseEther('0.1')), approvals: 0 },
        { ...payment, to: 'any', maxValueWei: String(parseEther('1')), approvals: 1 },
        { kind: 'message', approvals: 2, approvers: 'any' },
      ],
    }
  }

  type Payment = { vault: Vault; to: Address; value: string }

  const pay = (page: Page, payment: Payment) =>
    page.evaluate(
      ({ vault, to, value }) =>
        window.vaults
          .signAndSend(window.vaults.client, { to, value, wallet: vault })
          .catch(({ code }: { code: string }) => ({ code })),
      payment,
    )

  /** On a device without a session, from text only. */
  const approve = (page: Page, text: string) =>
    page.evaluate((given) => window.vaults.approve(window.vaults.parsePrepared(given)), text)

  test('a vault with passkeys on two devices is attested, pays small amounts without approval, and larger ones after approval', async () => {
    const [here, elsewhere] = [await sdk.openBrowser(), await sdk.openBrowser()]
    await sdk.openSignedIn('alice', { context: here })
    const [own, other] = [await openDevice(here), await openDevice(elsewhere)]
    const payee = createStranger()
    const vault = await own.page.evaluate(
      (policy) => window.vaults.createVault(window.vaults.client, policy),
      toPolicy(payee, [own.passkey, other.passkey]),
    )
    const attested = await own.page.evaluate((made) => window.vaults.attestVault(window.vaults.client, made), vault)
    await sdk.stack.fund(vault.address)

    const small = await pay(own.page, { vault, to: payee, value: '0.05' })
    if ('code' in small) return expect.fail(small.code)
    expect(await pay(own.page, { vault, to: payee, value: '0.5' })).toEqual({ code: 'approvals_missing' })
    expect(await pay(own.page, { vault, to: payee, value: '2' })).toEqual({ code: 'policy_refused' })

    const prepared = await own.page.evaluate(async (made) => {
      const { client, prepare } = window.vaults
      const to = '0x000000000000000000000000000000000000dead'
      return JSON.stringify(await prepare(client, made, { kind: 'transaction', to, value: '0.5' }))
    }, vault)
    const approval = await approve(other.page, prepared)
    const send = ({ text, approvals }: { text: string; approvals: Approval[] }) =>
      window.vaults
        .sendPrepared(window.vaults.client, window.vaults.parsePrepared(text), approvals)
        .catch(({ code }: { code: string }) => ({ code }))
    const large = await own.page.evaluate(send, { text: prepared, approvals: [approval] })
    if ('code' in large) return expect.fail(large.code)
    expect(await readMined(sdk.stack, [small.txHash, large.txHash])).toMatchObject([
      { status: 'success', from: vault.address, to: payee.toLowerCase() },
      { status: 'success', from: vault.address },
    ])
    // The nonce prevents a replay: the same approval moves nothing a second time.
    expect(await own.page.evaluate(send, { text: prepared, approvals: [approval] })).toEqual({ code: 'nonce_taken' })

    const slugs = [attested, small, large].map(({ attestationSlug }) => attestationSlug)
    const proofs = await sdk.waitForProofs(slugs)
    expect(proofs.map(({ kind, walletAddress }) => [kind, walletAddress])).toEqual([
      ['address', vault.address],
      [undefined, vault.address],
      [undefined, vault.address],
    ])
    // The public proof has only a commitment. The opening names the user who signed in.
    expect(attested.owner.identity).toMatchObject({ email: expect.stringContaining('alice') })
    expect(proofs[0]?.receipt).toMatchObject({ subject: { owner: toHex(hashOwner(attested.owner)) } })
    expect(JSON.stringify(proofs[0])).not.toContain(attested.owner.identity.subject)
  })

  test('a vault signs a message approved on two devices, and the opening with its approvals opens the proof', async () => {
    const [here, elsewhere] = [await sdk.openBrowser(), await sdk.openBrowser()]
    await sdk.openSignedIn('bob', { context: here })
    const [own, other] = [await openDevice(here), await openDevice(elsewhere)]
    const { vault, text } = await own.page.evaluate(
      async (policy) => {
        const { client, createVault, prepare } = window.vaults
        const vault = await createVault(client, policy)
        return { vault, text: JSON.stringify(await prepare(client, vault, { kind: 'message', message: 'I agree.' })) }
      },
      toPolicy(createStranger(), [own.passkey, other.passkey]),
    )
    const approvals = [await approve(other.page, text), await approve(own.page, text)]
    const sign = (given: { text: string; approvals: Approval[] }) => {
      const { client, parsePrepared, signPrepared } = window.vaults
      return signPrepared(client, parsePrepared(given.text), given.approvals).catch(({ code }: { code: string }) => ({
        code,
      }))
    }
    expect(await own.page.evaluate(sign, { text, approvals: approvals.slice(1) })).toEqual({
      code: 'approvals_missing',
    })
    const signed = await own.page.evaluate(sign, { text, approvals })
    if (!('opening' in signed)) return expect.fail(JSON.stringify(signed))
    const signer = await recoverMessageAddress({ message: 'I agree.', signature: signed.signature })
    expect(signer.toLowerCase()).toBe(vault.address)
    await own.page.evaluate(async ({ attestationSlug, opening }) => {
      const { client } = window.vaults
      await client.verifyOpening(await client.api.getProof(attestationSlug), opening)
    }, signed)
  })
}
