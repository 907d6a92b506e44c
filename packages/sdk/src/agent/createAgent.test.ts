import { createPolicy, X402_SPENDERS } from '@countersign/policy'
import { toCanonicalJson } from '@countersign/protocol'
import {
  createWalletClient,
  encodeFunctionData,
  erc20Abi,
  http,
  type LocalAccount,
  recoverTypedDataAddress,
} from 'viem'
import { hardhat } from 'viem/chains'
import { describe, expect, test, vi } from 'vitest'
import { createConfig } from 'wagmi'
import { signTypedData } from 'wagmi/actions'
import { startAgent, token, toPayment, toPermit } from '../../test/vaults/agents.ts'
import { alice, bob, toFailure } from '../../test/vaults/vaults.ts'
import { getBudget, revokeKey } from '../vaults/vaultCalls.ts'
import { createAgentKey, importAgentKey } from './agentKey.ts'
import { createAgent } from './createAgent.ts'

const ROUTE = 'POST /vaults/:address/sign'
const transaction = {
  chainId: 31337,
  nonce: 0,
  to: alice,
  value: 1n,
  gas: 21_000n,
  maxFeePerGas: 2_000_000_000n,
  maxPriorityFeePerGas: 1_000_000_000n,
} as const
const toTransfer = (to: typeof alice, amount: bigint) => {
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] })
  return { ...transaction, to: token, value: 0n, gas: 60_000n, data }
}
const countTries = ({ service }: Awaited<ReturnType<typeof startAgent>>) =>
  service.requests.filter((name) => name === ROUTE).length

describe('createAgent', () => {
  test('pays by EIP-3009 without a session, until the budget ends', async () => {
    const { agent, vault, service, client, proofs } = await startAgent()
    service.signOut()
    for (const nonce of [1, 2, 3]) {
      const payment = toPayment(vault.address, 30n, { nonce })
      const signature = await agent.signTypedData(payment)
      expect((await recoverTypedDataAddress({ ...payment, signature })).toLowerCase()).toBe(vault.address)
    }
    const error = await toFailure(agent.signTypedData(toPayment(vault.address, 30n, { nonce: 4 })))
    expect(error).toMatchObject({ code: 'budget_exceeded', status: 403, left: '10' })
    expect(proofs.map(({ url }) => url)).toEqual(
      service.proofs.slice(-3).map(({ slug }) => `https://service.test/proof/${slug}`),
    )
    const [first] = proofs
    expect(first?.opening?.content).toMatchObject({ budget: { sequence: 1, items: [{ before: '0', after: '30' }] } })
    await client.verifyOpening(await client.api.getProof(first?.slug ?? ''), first?.opening as never)
  })

  test('works as the account of a viem wallet client: coins and tokens, with the fees counted', async () => {
    const { agent, vault, client, service } = await startAgent()
    await client.signAndSend({ to: vault.address, value: '1' })
    const wallet = createWalletClient({ account: agent, chain: hardhat, transport: http(client.config.rpcUrl) })
    const hash = await wallet.sendTransaction({ to: alice, value: 5n })
    expect(service.transactions.at(-1)).toMatchObject({ hash, from: vault.address, to: alice })
    await agent.signTransaction(toTransfer(alice, 40n))
    const { budgets } = await getBudget(client, vault)
    const tokens = vault.policy.budgets?.findIndex((budget) => budget.token === token) ?? -1
    expect(budgets[tokens]).toMatchObject({ spent: '40', left: '60' })
    expect(BigInt(budgets[1 - tokens]?.spent ?? 0)).toBeGreaterThan(5n + 120_000_000_000_000n)
  })

  test('works as the account of a wagmi action', async () => {
    const { agent, vault, client } = await startAgent()
    const config = createConfig({ chains: [hardhat], transports: { [hardhat.id]: http(client.config.rpcUrl) } })
    const payment = toPayment(vault.address, 1n)
    const signature = await signTypedData(config, { account: agent, ...payment })
    expect((await recoverTypedDataAddress({ ...payment, signature })).toLowerCase()).toBe(vault.address)
  })

  test('pays by x402’s Permit2 permit, for the rule’s spenders only', async () => {
    const spenders = [X402_SPENDERS[0] as typeof alice]
    const { agent, vault, client } = await startAgent({ rule: { forms: ['x402-permit2'], spenders } })
    await agent.signTypedData(toPermit(25n))
    expect((await toFailure(agent.signTypedData(toPermit(25n, { spender: bob })))).code).toBe('policy_refused')
    expect((await toFailure(agent.signTypedData(toPermit(25n, { to: bob })))).code).toBe('policy_refused')
    expect((await getBudget(client, vault)).budgets.map(({ spent }) => spent).toSorted()).toEqual(['0', '25'])
  })

  test('sends a request again if its answer was lost, and is counted once', async () => {
    const { agent, vault, client, service, proofs } = await startAgent()
    const answer = globalThis.fetch
    let lost = 0
    globalThis.fetch = async (input, init) => {
      const response = await answer(input, init)
      if (!String(input).endsWith('/sign') || lost++ > 0) return response
      throw new TypeError('Failed to fetch')
    }
    await agent.signTypedData(toPayment(vault.address, 60n))
    expect(lost).toBe(2)
    const tokens = vault.policy.budgets?.findIndex((budget) => budget.token === token) ?? -1
    expect((await getBudget(client, vault)).budgets[tokens]?.spent).toBe('60')
    expect(proofs[0]?.opening?.content).toMatchObject({ budget: { isRepeated: true } })
    service.failNext(ROUTE, 'network')
    await agent.signTransaction({ ...transaction, to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' })
  })

  test('an approval expires after a minute', async () => {
    const { agent, vault } = await startAgent()
    const bodies: string[] = []
    const answer = globalThis.fetch
    globalThis.fetch = async (input, init) => {
      bodies.push(String(init?.body))
      return answer(input, init)
    }
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      await agent.signTypedData(toPayment(vault.address, 1n))
      expect(JSON.parse(bodies[0] ?? '').approvals).toMatchObject([{ expiresMs: Date.now() + 60_000 }])
    } finally {
      vi.useRealTimers()
    }
  })

  type Sign = (agent: LocalAccount, address: typeof alice) => Promise<unknown>
  test.each<[string, Sign]>([
    ['another payee', (agent, from) => agent.signTypedData(toPayment(from, 1n, { to: bob }))],
    ['another chain', (agent, from) => agent.signTypedData(toPayment(from, 1n, { chainId: 1 }))],
    ['another payer', (agent) => agent.signTypedData(toPayment(bob, 1n))],
    [
      'other typed data',
      (agent, from) => {
        const { domain, types, message } = toPayment(from, 1n)
        const renamed = { Transfer: types.TransferWithAuthorization }
        return agent.signTypedData({ domain, types: renamed, primaryType: 'Transfer', message })
      },
    ],
    [
      'a domain without a chain',
      (agent, from) => {
        const {
          domain: { chainId: _, ...domain },
          ...rest
        } = toPayment(from, 1n)
        return agent.signTypedData({ ...rest, domain })
      },
    ],
    ['1 wei of value in a token transfer', (agent) => agent.signTransaction({ ...toTransfer(alice, 1n), value: 1n })],
    ['a call', (agent) => agent.signTransaction({ ...transaction, data: '0x12345678' })],
  ])('rejects %s with policy_refused before sending', async (_name, sign) => {
    const started = await startAgent()
    expect((await toFailure(sign(started.agent, started.vault.address))).code).toBe('policy_refused')
    expect(countTries(started)).toBe(0)
  })

  test.each([
    ['needs a session', { session: true }],
    ['needs two approvals', { approvals: 2, approvers: [0, 1] }],
    ['lists only passkeys', { approvers: [1] }],
    ['has another form', { forms: ['transfer'] as const }],
  ])('uses no rule that %s', async (_name, rule) => {
    const started = await startAgent({ rule })
    const error = await toFailure(started.agent.signTypedData(toPayment(started.vault.address, 1n)))
    expect(error.code).toBe('policy_refused')
    expect(countTries(started)).toBe(0)
  })

  test('uses the first rule that allows the payment', async () => {
    const { agent, vault, service } = await startAgent({
      toRules: (spend) => [{ ...spend, payees: [bob] }, spend, { ...spend, forms: ['eip3009'] }],
    })
    await agent.signTypedData(toPayment(vault.address, 1n))
    await agent.signTypedData(toPayment(vault.address, 1n, { to: bob }))
    const used = service.proofs.slice(-2).map(({ slug }) => {
      const { receipt } = service.advanceProof(slug)
      return (receipt as { signer: { statement: { rule: number } } }).signer.statement.rule
    })
    const { rules } = vault.policy
    const indexOf = (payee: string) =>
      rules.findIndex((rule) => rule.kind === 'spend' && rule.payees.includes(payee as never))
    expect(used).toEqual([indexOf(alice), indexOf(bob)])
  })

  test('rejects messages, bare hashes and authorizations', async () => {
    const { agent } = await startAgent()
    for (const sign of [
      () => agent.signMessage({ message: 'hello' }),
      () => agent.sign?.({ hash: `0x${'00'.repeat(32)}` }),
      () => agent.signAuthorization?.({ chainId: 31337, address: alice, nonce: 0 }),
    ]) {
      expect((await toFailure(Promise.resolve(sign()))).code).toBe('unsupported_method')
    }
  })

  test('rejects a revoked key, a key of another vault and another policy', async () => {
    const { agent, vault, client, publicKey, parameters } = await startAgent()
    const wrong = createAgent({ ...parameters, key: (await createAgentKey()).key })
    expect((await toFailure(wrong.signTypedData(toPayment(vault.address, 1n)))).code).toBe('policy_refused')
    const changed = createPolicy({
      ...vault.policy,
      rules: vault.policy.rules.map((rule) => ({ ...rule, payees: 'any' }) as never),
    })
    const policy = new TextDecoder().decode(toCanonicalJson(changed))
    const misled = createAgent({ ...parameters, vault: { ...parameters.vault, policy } })
    expect(await toFailure(misled.signTypedData(toPayment(vault.address, 1n)))).toMatchObject({ status: 403 })
    await revokeKey(client, vault, publicKey)
    const error = await toFailure(agent.signTypedData(toPayment(vault.address, 1n)))
    expect(error).toMatchObject({ code: 'approval_invalid', status: 403 })
  })

  test.each(['budget_time', 'budget_unavailable'] as const)('keeps the service’s %s', async (code) => {
    const { agent, vault, service } = await startAgent()
    service.failNext(ROUTE, { code })
    const error = await toFailure(agent.signTypedData(toPayment(vault.address, 1n)))
    expect(error).toMatchObject({ code, status: 503, retryable: true })
  })

  test('rejects a signature over something else', async () => {
    const { agent, vault } = await startAgent()
    const answer = globalThis.fetch
    globalThis.fetch = async (input, init) => {
      const body = JSON.parse(String(init?.body))
      const response = await answer(input, init)
      const { opening, ...rest } = await response.json()
      opening.content.budget.items[0].after = '0'
      expect(body.kind).toBe('typed-data')
      return Response.json({ ...rest, opening, signature: `0x${'11'.repeat(64)}1b` })
    }
    expect((await toFailure(agent.signTypedData(toPayment(vault.address, 1n)))).code).toBe('signature_mismatch')
  })

  test.each([
    ['an address', { address: '0x12' }, 'invalid_request'],
    ['the policy’s JSON', { policy: '{"version": 1}' }, 'json_not_canonical'],
    ['a policy', { policy: '{}' }, 'invalid_request'],
  ])('rejects a vault without %s', async (_name, change, code) => {
    const { parameters } = await startAgent()
    const create = () => createAgent({ ...parameters, vault: { ...parameters.vault, ...change } as never })
    expect(create).toThrow(expect.objectContaining({ code }))
  })

  test('derives the public key of RFC 8032’s first key, and rejects others that are not keys', async () => {
    const { publicKey } = await importAgentKey('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60')
    expect(publicKey).toBe('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a')
    for (const key of ['', '9d', 'Z'.repeat(64), `0x${'11'.repeat(32)}`]) {
      expect((await toFailure(importAgentKey(key))).code).toBe('invalid_request')
    }
  })
})
