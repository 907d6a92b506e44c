import { testChainIds } from '@countersign/service'
import { expect, test } from 'vitest'
import { createTestApp, toDigest, txMetadata } from '../../test/http/testApp.ts'

const config = { isMock: true, isChainRequired: true, allowedChainIds: testChainIds }

async function setUp() {
  const app = createTestApp({ config })
  const user = app.browser()
  await user.signIn()
  await user.post('/wallet/provision')
  return { ...app, user }
}

const transaction = (chainId: number) => ({
  digest: toDigest({ ...txMetadata, chainId }),
  txMetadata: { ...txMetadata, chainId },
})

const typedData = (chainId: string | number | undefined) => ({
  domain: { name: 'x', ...(chainId === undefined ? {} : { chainId }) },
  types: {
    EIP712Domain: [
      { name: 'name', type: 'string' },
      ...(chainId === undefined ? [] : [{ name: 'chainId', type: 'uint256' }]),
    ],
    Note: [{ name: 'text', type: 'string' }],
  },
  primaryType: 'Note',
  message: { text: 'hello' },
})

const authorization = (chainId: number) => ({ chainId, address: `0x${'77'.repeat(20)}`, nonce: 0 })

test.each<[string, string, object, string]>([
  ['a transaction on mainnet', '/sign/digest', transaction(1), 'chain_not_allowed'],
  ['typed data for Base', '/sign/typed-data', typedData(8453), 'chain_not_allowed'],
  ['typed data for a chain in hex', '/sign/typed-data', typedData('0x1'), 'chain_not_allowed'],
  ['typed data without a chain', '/sign/typed-data', typedData(undefined), 'chain_not_allowed'],
  ['an authorization on mainnet', '/sign/authorization', authorization(1), 'chain_not_allowed'],
  ['an authorization for every chain', '/sign/authorization', authorization(0), 'authorization_not_allowed'],
  ['a message that is a hash', '/sign/message', { message: `0x${'ab'.repeat(32)}` }, 'chain_not_allowed'],
])('staging refuses to sign %s', async (_, path, body, code) => {
  const { user, signings } = await setUp()
  const response = await user.post(path, body)
  expect([response.status, await response.json()]).toEqual([422, expect.objectContaining({ code })])
  expect(signings).toEqual([])
})

test('staging signs for test networks, and messages that are not a hash', async () => {
  const { user, signings } = await setUp()
  expect((await user.post('/sign/digest', transaction(11155111))).status).toBe(200)
  expect((await user.post('/sign/typed-data', typedData(31337))).status).toBe(200)
  for (const length of [0, 31, 33]) await user.post('/sign/message', { message: `0x${'ab'.repeat(length)}` })
  expect(signings).toHaveLength(5)
})

test.each([true, false])('with simulated hardware %s, every response and page is marked', async (isMock) => {
  const { request, answer } = createTestApp({ config: { isMock } })
  const mark = isMock ? 'MOCK' : null
  const preflight = { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } }
  const answers = [
    await request('/docs', { headers: { accept: 'text/html' } }),
    await request('/auth/nobody', { headers: { accept: 'text/html' } }),
    await request('/health'),
    await answer('/sign/digest', preflight),
    await answer('*', preflight),
  ]
  expect(answers.map(({ headers }) => headers.get('countersign-silicon'))).toEqual(answers.map(() => mark))
  for (const page of answers.slice(0, 2)) expect((await page.text()).includes('<p role="note">')).toBe(isMock)
})
