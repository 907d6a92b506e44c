import { createWalletClient, http, parseEther } from 'viem'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { alice, bob, rule, type StartedVault, startVault, toFailure } from '../../test/vaults/vaults.ts'
import { createEip1193Provider } from '../eip1193/createEip1193Provider.ts'
import { toServiceAccount } from '../viem/toServiceAccount.ts'
import { signAndSend, toVaultClient } from './toVaultClient.ts'
import { createVault } from './vaultCalls.ts'

let started: StartedVault

beforeEach(async () => {
  started = await startVault()
})
afterEach(() => started.stop())

const countSigned = () => started.service.requests.filter((name) => name.startsWith('POST /sign/')).length

describe('signAndSend with a vault', () => {
  test('signs and sends a payment that needs no approval', async () => {
    const { client, service, vault } = started
    const { txHash } = await signAndSend(client, { to: alice, value: '0.1', wallet: vault })
    expect(service.transactions.at(-1)).toMatchObject({ hash: txHash, from: vault.address, to: alice })
  })

  test('the vault and the user’s own wallet have separate nonces', async () => {
    const { client, service, vault } = started
    await Promise.all([
      signAndSend(client, { to: alice, value: 1n, wallet: vault }),
      client.signAndSend({ to: alice, value: 2n }),
      signAndSend(client, { to: alice, value: 3n, wallet: vault }),
    ])
    const sent = service.transactions.slice(1).map(({ from, nonce }) => `${from === vault.address} ${nonce}`)
    expect(sent.toSorted()).toEqual(['false 1', 'true 0', 'true 1'])
  })

  test.each([
    ['more than may go without approval', { to: alice, value: '0.11' }, 'approvals_missing'],
    ['somebody else', { to: bob, value: 1n }, 'approvals_missing'],
    ['more than may go at all', { to: alice, value: '6' }, 'policy_refused'],
  ] as const)('rejects %s before signing: %o is %s', async (_name, request, code) => {
    const before = countSigned()
    const error = await toFailure(signAndSend(started.client, { ...request, wallet: started.vault }))
    expect(error).toMatchObject({ code, status: undefined, signed: undefined })
    expect(countSigned()).toBe(before)
  })

  test('keeps the details of an error from before the signing', async () => {
    const { client, vault } = started
    const missing = await toFailure(signAndSend(client, { to: bob, value: 1n, wallet: vault }))
    expect(missing).toMatchObject({ details: '1 missing', retryable: undefined })
    const refused = await toFailure(signAndSend(client, { to: alice, value: '6', wallet: vault }))
    expect(refused.details).not.toContain('signed')
  })

  test('the service rejects what a schedule forbids, with the same code and a status', async () => {
    const { client } = started
    const vault = await createVault(client, {
      version: 1,
      log: null,
      approvers: [],
      schedule: { startsAtMs: Date.now() + 86_400_000, everyS: 60, count: 1 },
      time: [{ kind: 'satellite', key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' }],
      rules: [rule],
    })
    const error = await toFailure(signAndSend(client, { to: alice, value: 1n, wallet: vault }))
    expect(error).toMatchObject({ code: 'policy_refused', status: 403 })
    expect(error.details).toContain('schedule')
  })

  test('rejects another user’s vault', async () => {
    const { client, vault, service } = started
    const wallet = { ...vault, address: bob }
    expect((await toFailure(signAndSend(client, { to: alice, wallet }))).code).toBe('vault_not_found')
    service.signOut()
    expect((await toFailure(signAndSend(client, { to: alice, wallet: vault }))).status).toBe(401)
  })

  test('rejects a signature of another key', async () => {
    const { client, vault } = started
    const answer = globalThis.fetch
    globalThis.fetch = (input, init) => {
      if (!String(input).endsWith('/sign/digest')) return answer(input, init)
      // As a service that signs with the user's own wallet.
      const { wallet: _wallet, rule: _rule, ...body } = JSON.parse(String(init?.body))
      return answer(input, { ...init, body: JSON.stringify(body) })
    }
    const error = await toFailure(signAndSend(client, { to: alice, value: 1n, wallet: vault }))
    expect(error.code).toBe('signature_mismatch')
  })
})

describe('toVaultClient', () => {
  test('rejects messages and typed data with the missing approvals, and every authorization', async () => {
    const vaultClient = toVaultClient(started.client, started.vault)
    const before = countSigned()
    const message = await toFailure(vaultClient.signMessage({ message: 'hello' }))
    expect(message).toMatchObject({ code: 'approvals_missing', details: '2 missing' })
    const types = { Order: [{ name: 'a', type: 'bool' }] }
    const order = { domain: { name: 'Shop' }, types, primaryType: 'Order', message: { a: true } }
    expect((await toFailure(vaultClient.signTypedData(order))).code).toBe('approvals_missing')
    const foreign = { ...order, types: { Permit: types.Order }, primaryType: 'Permit' }
    expect((await toFailure(vaultClient.signTypedData(foreign))).code).toBe('policy_refused')
    expect((await toFailure(vaultClient.signAuthorization({ address: alice, nonce: 0 }))).code).toBe('policy_refused')
    expect(countSigned()).toBe(before)
  })

  test('checks that the vault exists without parsing the rules of all vaults', async () => {
    const { client, vault } = started
    const answer = globalThis.fetch
    globalThis.fetch = async (input, init) => {
      const { vaults } = await (await answer(input, init)).json()
      return Response.json({ vaults: vaults.map((one: object) => ({ ...one, policy: {} })) })
    }
    expect(await toVaultClient(client, vault).api.getWallet()).toMatchObject({ address: vault.address })
  })

  test('works as a viem account', async () => {
    const { client, service, vault } = started
    const vaultClient = toVaultClient(client, vault)
    const wallet = await vaultClient.api.getWallet()
    if (wallet === null) throw new Error('no wallet')
    const account = toServiceAccount(vaultClient, wallet)
    const { chain } = client.publicClient
    const walletClient = createWalletClient({ account, chain, transport: http(client.config.rpcUrl) })
    const hash = await walletClient.sendTransaction({ to: alice, value: parseEther('0.01'), chain: chain ?? null })
    expect(service.transactions.at(-1)).toMatchObject({ hash, from: vault.address })
  })

  test('works as an EIP-1193 provider, and rejects payments that need approval', async () => {
    const { client, service, vault } = started
    const provider = createEip1193Provider(toVaultClient(client, vault))
    const accounts = await provider.request({ method: 'eth_requestAccounts' })
    expect(accounts.map((account) => account.toLowerCase())).toEqual([vault.address])
    const pay = (value: bigint) => {
      const transaction = { from: vault.address, to: alice, value: `0x${value.toString(16)}` } as const
      return provider.request({ method: 'eth_sendTransaction', params: [transaction] })
    }
    expect(service.transactions.at(-1)?.hash).not.toBe(await pay(parseEther('0.01')))
    expect(service.transactions.at(-1)?.from).toBe(vault.address)
    const refusal = await pay(parseEther('1')).catch((error: { cause?: unknown }) => error)
    expect(refusal).toMatchObject({ cause: { code: 'approvals_missing' } })
  })
})
