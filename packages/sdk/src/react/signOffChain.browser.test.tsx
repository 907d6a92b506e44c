import { computeCommitment, toHex } from '@countersign/protocol'
import type { ReactNode } from 'react'
import { verifyMessage, verifyTypedData } from 'viem'
import { beforeEach, describe, expect, test } from 'vitest'
import { renderHook } from 'vitest-browser-react'
import { configure } from 'vitest-browser-react/pure'
import {
  chainId,
  config,
  createGate,
  createProof,
  type FakeNetwork,
  installFakeNetwork,
  json,
  problem,
  user,
  wallet,
} from '../../test/client/network.ts'
import {
  ServiceProvider,
  type SignOffChainResult,
  useAttestation,
  useSignMessage,
  useSignTypedData,
  useWallet,
} from '../index.ts'

configure({ reactStrictMode: true })

const other = { ...wallet, address: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8' } as const
const message = 'I agree.'
const typedData = {
  domain: { name: 'App', chainId },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: 5n },
} as const

let network: FakeNetwork

beforeEach(() => {
  network = installFakeNetwork()
})

const Provided = ({ children }: { children: ReactNode }) => (
  <ServiceProvider config={config}>{children}</ServiceProvider>
)
const useAll = () => ({ message: useSignMessage(), typedData: useSignTypedData(), wallet: useWallet() })

async function renderReady() {
  const hook = await renderHook(useAll, { wrapper: Provided })
  await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
  return hook
}

describe('useSignMessage and useSignTypedData', () => {
  test('sign with the shown wallet; each hook has its own result and opening', async () => {
    const hook = await renderReady()
    const { signMessage } = hook.result.current.message
    const { signTypedData } = hook.result.current.typedData
    await hook.act(async () => {
      await signMessage({ message })
    })
    const { lastResult } = hook.result.current.message
    expect(hook.result.current.message).toEqual({ signMessage, pending: false, error: null, lastResult })
    expect(hook.result.current.typedData).toEqual({ signTypedData, pending: false, error: null, lastResult: null })
    const signature = lastResult?.signature ?? '0x'
    expect(await verifyMessage({ address: wallet.address, message, signature })).toBe(true)
    expect(lastResult?.opening).toMatchObject({ content: { kind: 'message' }, signature: { signature } })
    await hook.act(async () => {
      await signTypedData(typedData)
    })
    const second = hook.result.current.typedData.lastResult?.signature ?? '0x'
    expect(await verifyTypedData({ ...typedData, address: wallet.address, signature: second })).toBe(true)
    expect(network.paths().slice(2)).toEqual([
      'GET /wallet/me',
      'POST /sign/message',
      'GET /wallet/me',
      'POST /sign/typed-data',
    ])
  })

  test('a sign-out during the call hides the result, but the caller gets it', async () => {
    const gate = createGate()
    const honest = network.routes['POST /sign/message']
    network.routes['POST /sign/message'] = async (call) => {
      await gate.opened
      return honest?.(call) ?? json(null)
    }
    const hook = await renderReady()
    let signing: Promise<{ signature: string }> | undefined
    await hook.act(() => {
      signing = hook.result.current.message.signMessage({ message })
    })
    await hook.act(() => hook.result.current.wallet.logout())
    gate.open()
    expect((await signing)?.signature).toMatch(/^0x/)
    await expect.poll(() => hook.result.current.message.pending).toBe(false)
    expect(hook.result.current.message.lastResult).toBeNull()
  })

  test('hides a signature when another user’s wallet is shown', async () => {
    const hook = await renderReady()
    await hook.act(async () => {
      await hook.result.current.message.signMessage({ message })
    })
    expect(hook.result.current.message.lastResult).not.toBeNull()
    network.routes['GET /auth/me'] = () => json({ ...user, id: 'b' })
    network.routes['GET /wallet/me'] = () => json(other)
    await hook.act(() => hook.result.current.wallet.refresh())
    expect(hook.result.current.message.lastResult).toBeNull()
  })

  test('uses a wallet that arrived after the last render', async () => {
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    const hook = await renderReady()
    network.routes['GET /auth/me'] = () => json(user)
    const { message: sign, wallet: before } = hook.result.current
    await hook.act(async () => {
      await before.refresh()
      await sign.signMessage({ message })
    })
    expect(hook.result.current.message.lastResult).not.toBeNull()
  })
})

test('useAttestation with an opening shows only a matching proof', async () => {
  const hook = await renderReady()
  await hook.act(() => hook.result.current.message.signMessage({ message }))
  const { attestationSlug: slug, opening } = hook.result.current.message.lastResult as SignOffChainResult
  const proof = { ...createProof(slug, 'pin_failed'), kind: 'off-chain' as const }
  const txHash = `0x${toHex(computeCommitment(opening))}` as const
  for (const [answer, shown] of [
    [proof, { proof: null, error: expect.objectContaining({ code: 'opening_mismatch' }) }],
    [
      { ...proof, txHash },
      { proof: { ...proof, txHash }, error: null },
    ],
  ] as const) {
    network.routes[`GET /proof/${slug}`] = () => json(answer)
    const follow = await renderHook(() => useAttestation(slug, { opening }), { wrapper: Provided })
    await expect.poll(() => follow.result.current).toEqual({ loading: false, ...shown })
    await follow.unmount()
  }
})

test('useAttestation requests a final proof once, even if each render has a new copy of the opening', async () => {
  const hook = await renderReady()
  await hook.act(() => hook.result.current.message.signMessage({ message }))
  const { attestationSlug: slug, opening } = hook.result.current.message.lastResult as SignOffChainResult
  const txHash = `0x${toHex(computeCommitment(opening))}` as const
  const proof = { ...createProof(slug, 'pin_failed'), kind: 'off-chain' as const, txHash }
  network.routes[`GET /proof/${slug}`] = () => json(proof)
  const follow = await renderHook(() => useAttestation(slug, { opening: structuredClone(opening) }), {
    wrapper: Provided,
  })
  await expect.poll(() => follow.result.current).toEqual({ loading: false, proof, error: null })
  await follow.rerender()
  expect(follow.result.current).toEqual({ loading: false, proof, error: null })
  expect(network.paths().filter((path) => path === `GET /proof/${slug}`)).toHaveLength(1)
})
