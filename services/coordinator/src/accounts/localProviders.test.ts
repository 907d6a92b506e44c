import { createTestBrowser, startOidcProvider } from '@countersign/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFakeClock } from '../../test/ports.ts'
import { createProviders } from './providers.ts'

/* Two real providers over HTTP, each with a user of the same name. */

const API = 'http://localhost:1'
type Local = Awaited<ReturnType<typeof startOidcProvider>>
let locals: { one: Local; two: Local }

beforeAll(async () => {
  const [one, two] = await Promise.all(
    ['one', 'two'].map((id) => startOidcProvider({ redirectUris: [`${API}/auth/${id}/callback`] })),
  )
  if (one === undefined || two === undefined) throw new Error('not started')
  locals = { one, two }
})

afterAll(() => Promise.all(Object.values(locals).map(({ stop }) => stop())))

function getProvider(id: 'one' | 'two', changes: Partial<Local> = {}) {
  const { issuer, clientId, clientSecret } = { ...locals[id], ...changes }
  const config = { id, issuer, clientId, clientSecret, name: id, icon: 'data:,' }
  const provider = createProviders([config], { publicUrl: API, clock: createFakeClock() }).get(id)
  if (provider === undefined || 'direct' in provider) throw new Error('no provider')
  return provider
}

const secrets = { state: 's'.repeat(43), nonce: 'n'.repeat(43), codeVerifier: 'v'.repeat(43) }

/** Runs a sign-in from start to callback with the user's choice on the provider's page. Returns undefined if the provider shows no page. */
async function signIn(
  id: 'one' | 'two',
  answer: string | undefined,
  { browser = createTestBrowser(), mustChoose = false } = {},
) {
  const start = await getProvider(id).start({ ...secrets, mustChoose })
  if (answer === undefined) return browser.navigateUntil(start, API)
  const page = await browser.navigate(start)
  expect([page.response.status, await page.response.text()]).toEqual([200, expect.stringContaining('Who are you?')])
  return browser.navigateUntil(new URL(answer, page.url), API)
}

const finish = (id: 'one' | 'two', callbackUrl: URL) => getProvider(id).finish({ callbackUrl, ...secrets })
const failed = { code: 'oauth_exchange_failed' }

test('treats users of the same name at two providers as two users, by issuer and subject', async () => {
  const users = [
    await finish('one', await signIn('one', '?as=alice')),
    await finish('two', await signIn('two', '?as=alice')),
  ]
  expect(users).toMatchObject([
    { issuer: locals.one.issuer, subject: 'alice', email: 'alice@example.com' },
    { issuer: locals.two.issuer, subject: 'alice', email: 'alice@example.com' },
  ])
})

test('a provider with a session shows no page unless it must', async () => {
  const browser = createTestBrowser()
  await signIn('one', '?as=alice', { browser })
  expect(await finish('one', await signIn('one', undefined, { browser }))).toMatchObject({ subject: 'alice' })
  const chosen = await signIn('one', '?as=bob', { browser, mustChoose: true })
  expect(await finish('one', chosen)).toMatchObject({ subject: 'bob' })
})

test('cancelling is not a failure', async () => {
  const callback = await signIn('one', '?cancel=1')
  expect([callback.searchParams.get('error'), await finish('one', callback)]).toEqual(['access_denied', 'cancelled'])
})

test('a provider rejects the code of another one, even with a matching iss (mix-up)', async () => {
  const callback = await signIn('one', '?as=alice')
  await expect(finish('two', callback)).rejects.toMatchObject(failed)
  callback.searchParams.set('iss', locals.two.issuer)
  await expect(finish('two', callback)).rejects.toMatchObject(failed)
  callback.searchParams.delete('iss')
  await expect(finish('two', callback)).rejects.toMatchObject(failed)
})

test('rejects a forged iss before the code is used', async () => {
  const callback = await signIn('one', '?as=alice')
  const forged = new URL(callback)
  forged.searchParams.set('iss', locals.two.issuer)
  await expect(finish('one', forged)).rejects.toMatchObject(failed)
  expect(await finish('one', callback)).toMatchObject({ subject: 'alice' })
  await expect(finish('one', callback)).rejects.toMatchObject(failed)
})
