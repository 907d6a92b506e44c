import { createTestBrowser, startOidcProvider } from '@countersign/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFakeClock } from '../../test/ports.ts'
import { createProviders } from './providers.ts'

/* Real providers, over HTTP: two of them, with a user of the same name each. */

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
  if (provider === undefined) throw new Error('no provider')
  return provider
}

const secrets = { state: 's'.repeat(43), nonce: 'n'.repeat(43), codeVerifier: 'v'.repeat(43) }

/** From the start to the callback, by the answer to the provider's page; undefined where it shows none. */
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

test('one name at two providers is two users: issuer and subject, not the e-mail address', async () => {
  const users = [
    await finish('one', await signIn('one', '?as=alice')),
    await finish('two', await signIn('two', '?as=alice')),
  ]
  expect(users).toMatchObject([
    { issuer: locals.one.issuer, subject: 'alice', email: 'alice@example.com' },
    { issuer: locals.two.issuer, subject: 'alice', email: 'alice@example.com' },
  ])
})

test('a provider that knows the browser asks nothing, until it must', async () => {
  const browser = createTestBrowser()
  await signIn('one', '?as=alice', { browser })
  expect(await finish('one', await signIn('one', undefined, { browser }))).toMatchObject({ subject: 'alice' })
  const chosen = await signIn('one', '?as=bob', { browser, mustChoose: true })
  expect(await finish('one', chosen)).toMatchObject({ subject: 'bob' })
})

test('whoever gives up is no failure', async () => {
  const callback = await signIn('one', '?cancel=1')
  expect([callback.searchParams.get('error'), await finish('one', callback)]).toEqual(['access_denied', 'cancelled'])
})

test('the code of one provider is refused by the other, whatever iss says (mix-up)', async () => {
  const callback = await signIn('one', '?as=alice')
  await expect(finish('two', callback)).rejects.toMatchObject(failed)
  callback.searchParams.set('iss', locals.two.issuer)
  await expect(finish('two', callback)).rejects.toMatchObject(failed)
  callback.searchParams.delete('iss')
  await expect(finish('two', callback)).rejects.toMatchObject(failed)
})

test('a forged iss is refused before the code is spent', async () => {
  const callback = await signIn('one', '?as=alice')
  const forged = new URL(callback)
  forged.searchParams.set('iss', locals.two.issuer)
  await expect(finish('one', forged)).rejects.toMatchObject(failed)
  expect(await finish('one', callback)).toMatchObject({ subject: 'alice' })
  await expect(finish('one', callback)).rejects.toMatchObject(failed)
})
