import { getAddress } from 'viem'
import { afterEach, expect, test } from 'vitest'
import { issueGoldenV2, slug, toManifest } from '../../../../packages/verify/test/issues.ts'
import { createFakeNetwork, gatewayUrl, json, toGatewayProof } from '../../../../packages/verify/test/network.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { closeWallet, type OpenWalletOptions, openWallet } from '../../test/wallet/openWallet.tsx'

afterEach(closeWallet)

const issue = await issueGoldenV2({ signing: { kind: 'address' } })
const { receipt, owner } = issue
const [shown] = receipt.kind === 'address' ? [getAddress(receipt.subject.address)] : []
const user = { id: 'u1', email: 'alice@example.com', name: 'Alice' }
const config = { trust: toManifest(issue), allowMock: true }

type Changes = OpenWalletOptions & { answers?: Record<string, () => Response> }

/** The wallet of a user whose address the enclave attests. */
function openAttested({ answers = {}, ...options }: Changes = {}) {
  const network = createFakeNetwork(issue)
  const attested: string[] = []
  const routes: Record<string, () => Response> = {
    '/wallet/me': () =>
      json({
        address: shown?.toLowerCase(),
        createdAt: '2026-01-01T00:00:00.000Z',
        provenance: { entropyHash: '00'.repeat(32), entropySig: '00'.repeat(64), satelliteSource: 'test' },
      }),
    '/wallet/attest': () => {
      attested.push('wallet')
      return json({ slug, owner })
    },
    [`/proof/${slug}`]: () => json(toGatewayProof(issue)),
    ...answers,
  }
  const intercept: OpenWalletOptions['intercept'] = (url) => {
    const { origin, pathname } = new URL(url, location.href)
    if (origin === 'https://service.test') return routes[pathname] && Promise.resolve(routes[pathname]())
    return origin === gatewayUrl ? network.fetch(url) : undefined
  }
  const opened = openWallet({ user, config, intercept, ...options })
  return opened.then((open) => ({ ...open, attested }))
}

test('shows the address once the proof names the user, and checks it once', async () => {
  const { screen, attested, reload } = await openAttested()
  await expect
    .element(screen.getByText(/This page checked: this address belongs to alice@example\.com\./))
    .toBeVisible()
  await expect.element(screen.getByRole('button', { name: 'Copy your address' })).toBeVisible()
  await expectAccessible()
  const again = await reload()
  await expect.element(again.getByText(/belongs to alice@example\.com/)).toBeVisible()
  expect(attested).toHaveLength(1)
})

test.each<[string, string, Changes]>([
  ['the address of a twin', 'owner_mismatch', { user: { ...user, email: 'bob@example.com' } }],
  [
    'an opening of another user',
    'address_not_verified',
    {
      answers: {
        '/wallet/attest': () => json({ slug, owner: { ...owner, identity: { ...owner?.identity, subject: 'bob' } } }),
      },
    },
  ],
  ['simulated evidence', 'address_not_verified', { config: { ...config, allowMock: false } }],
  [
    'an unavailable log',
    'log_unavailable',
    { answers: { '/wallet/attest': () => json({ code: 'log_unavailable' }, 503) } },
  ],
])('hides %s, and offers another check', async (_, code, changes) => {
  const { screen } = await openAttested(changes)
  await expect.element(screen.getByRole('button', { name: 'Check again' })).toBeVisible()
  expect(screen.getByText(new RegExp(`^${code}`)).query()).not.toBeNull()
  expect(screen.getByRole('button', { name: 'Copy your address' }).query()).toBeNull()
  expect(screen.getByRole('button', { name: 'Receive' }).query()).toBeNull()
  await expectAccessible()
})

test('checks again on request', async () => {
  let isDown = true
  const attest = () => (isDown ? json({ code: 'log_unavailable' }, 503) : json({ slug, owner }))
  const { screen } = await openAttested({ answers: { '/wallet/attest': attest } })
  await expect.element(screen.getByRole('button', { name: 'Check again' })).toBeVisible()
  isDown = false
  await screen.getByRole('button', { name: 'Check again' }).click()
  await expect.element(screen.getByText(/belongs to alice@example\.com/)).toBeVisible()
})

test('says that nothing was checked on a page without anchors', async () => {
  const { screen, attested } = await openAttested({ config: {} })
  await expect.element(screen.getByText(/This page didn’t check who owns this address/)).toBeVisible()
  expect(attested).toEqual([])
})
