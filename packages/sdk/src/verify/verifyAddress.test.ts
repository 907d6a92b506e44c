import { afterEach, expect, expectTypeOf, test, vi } from 'vitest'
import { goldenVaults } from '../../../receipt/test/vaults.ts'
import { issueGoldenV2, slug, toManifest, toProof } from '../../../verify/test/issues.ts'
import { apiBaseUrl, createFakeNetwork, json, rpcUrl } from '../../../verify/test/network.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { DirectSession } from '../session/session.ts'
import { type VerifyAddressParameters, verifyAddress } from './verifyAddress.ts'

const wallet = await issueGoldenV2(goldenVaults['wallet-address'])
const vault = await issueGoldenV2(goldenVaults.address)
const alice = { issuer: 'https://idp.example', subject: 'alice', email: 'alice@example.com' }
type Issue = Awaited<ReturnType<typeof issueGoldenV2>>

const client = new ServiceClient({ apiBaseUrl, chainId: 31337 })

const toSubject = ({ receipt, owner }: Issue) => {
  if (receipt.kind !== 'address' || owner === undefined) throw new Error('not an address')
  return { address: receipt.subject.address, policyHash: receipt.subject.policy ?? undefined, opening: owner }
}

type Changes = Partial<VerifyAddressParameters> & { proof?: Record<string, unknown> }

function check(issue: Issue, { proof, ...changes }: Changes = {}) {
  const network = createFakeNetwork(issue)
  if (proof) network.routes.push([`${apiBaseUrl}/proof/`, () => json(toProof(issue, proof))])
  vi.stubGlobal('fetch', network.fetch)
  const { address, policyHash, opening } = toSubject(issue)
  const attested = { attestationSlug: slug, owner: opening }
  const trust = { manifests: [toManifest(issue)], rpc: rpcUrl, allowMock: true }
  return verifyAddress(client, { address, policyHash, attested, owner: alice, trust, timeoutMs: 0, ...changes })
}

afterEach(() => void vi.unstubAllGlobals())

test('returns the owner of a wallet and of a vault', async () => {
  expect(await check(wallet)).toEqual(alice)
  expect(await check(vault, { owner: { email: alice.email } })).toEqual(alice)
})

test('needs no event on the chain, which confirms only the time', async () => {
  const pending = { status: 'pending_onchain', onchainTxHash: null, onchainBlockNumber: null }
  const trust = { manifests: [toManifest(wallet)], allowMock: true }
  expect(await check(wallet, { proof: pending, trust })).toEqual(alice)
})

test.each<[string, Issue, Changes]>([
  ['the twin vault of another user', vault, { owner: { ...alice, subject: 'bob' } }],
  ['a subject of another issuer', wallet, { owner: { ...alice, issuer: 'https://evil.example' } }],
  ['another e-mail address', wallet, { owner: { email: 'bob@example.com' } }],
  ['no user', wallet, { owner: null }],
  ['another address', wallet, { address: `0x${'ab'.repeat(20)}` }],
  ['a vault in place of the wallet', vault, { policyHash: undefined }],
  ['a vault with other rules', vault, { policyHash: '00'.repeat(32) }],
])('rejects %s', async (_, issue, changes) => {
  await expect(check(issue, changes)).rejects.toMatchObject({ code: 'owner_mismatch' })
})

const { opening } = toSubject(wallet)
const attest = (owner: typeof opening) => ({ attested: { attestationSlug: slug, owner } })

test.each<[string, boolean, Changes]>([
  ['an opening with another salt', false, attest({ ...opening, salt: '00'.repeat(32) })],
  ['an opening that names another user', false, attest({ ...opening, identity: { ...alice, subject: 'bob' } })],
  ['simulated evidence, unless it is allowed', false, { trust: { manifests: [toManifest(wallet)] } }],
  ['code that no anchor names', false, { trust: { manifests: [], allowMock: true } }],
  [
    'a proof that is not published yet',
    true,
    {
      proof: {
        status: 'pending_pin',
        ipfsCid: null,
        receipt: null,
        onchainTxHash: null,
        onchainBlockNumber: null,
        kmsQuoteVerified: false,
      },
    },
  ],
  ['a verifier that fails', true, { verify: () => Promise.reject(new Error('gone')) }],
])('rejects %s', async (_, retryable, changes) => {
  await expect(check(wallet, changes)).rejects.toMatchObject({ code: 'address_not_verified', retryable })
})

test('rejects the receipt of another kind', async () => {
  const transaction = await issueGoldenV2()
  const verify = async () => ({ conclusion: 'accepted', steps: [], receipt: transaction.receipt }) as never
  await expect(check(wallet, { verify })).rejects.toMatchObject({ code: 'owner_mismatch' })
})

test('takes the identity of a direct session', () => {
  type Identity = Awaited<ReturnType<DirectSession['readIdentity']>>
  expectTypeOf<Identity>().toExtend<VerifyAddressParameters['owner']>()
})
