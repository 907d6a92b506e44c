import { afterEach, describe, expect, test, vi } from 'vitest'
import { amount, confirm, recipient, review, to } from '../../test/send/sendForm.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'

type Screen = Awaited<ReturnType<typeof openWallet>>['screen']

afterEach(() => {
  closeWallet()
  vi.restoreAllMocks()
})

async function signPayment(screen: Screen) {
  await to(screen).fill(recipient)
  await amount(screen).fill('0.01')
  await review(screen).click()
  await confirm(screen).click()
  await expect.element(screen.getByText('Sent 0.01 ETH').first()).toBeVisible()
}

const times = { createdAt: '2026-01-01T00:00:00.000Z', expiresAt: '2026-01-01T12:00:00.000Z' }

/** The service's answer about a session that this browser has no key of. */
const answerSession = (kind: 'cookie' | 'bound') => (url: string) => {
  if (!url.endsWith('/auth/session')) return undefined
  const clientKey = kind === 'bound' ? `04${'00'.repeat(64)}` : null
  return Promise.resolve(Response.json({ kind, clientKey, ...times, time: new Date().toISOString() }))
}

describe('a session with a browser key', () => {
  test('signs with the key, also after a reload', async () => {
    const { screen, service, reload } = await openWallet({ session: 'bound' })
    await signPayment(screen)
    await signPayment(await reload())
    expect(service.transactions).toHaveLength(2)
  })

  test('is required: without the key, the user signs in again', async () => {
    const { screen } = await openWallet({ session: 'bound', intercept: answerSession('bound') })
    await expect.element(screen.getByText('Please sign in again')).toBeVisible()
    await expect.element(screen.getByRole('button', { name: 'Sign in' })).toBeVisible()
    expect(screen.getByRole('button', { name: 'Continue without a key' }).query()).toBeNull()
    await expectAccessible()
  })
})

describe('a cookie session', () => {
  test('continues only if the user chooses so, for this tab', async () => {
    const { screen, reload } = await openWallet({ session: 'bound', intercept: answerSession('cookie') })
    await expect.element(screen.getByText('Your session has no browser key')).toBeVisible()
    await expectAccessible()
    await screen.getByRole('button', { name: 'Continue without a key' }).click()
    await expect.element(screen.getByText('Test User')).toBeVisible()
    await expect.element((await reload()).getByText('Test User')).toBeVisible()
  })

  test('ends the choice with the session', async () => {
    const { screen, reload } = await openWallet()
    await screen.getByRole('button', { name: 'Sign out' }).click()
    await expect.element(screen.getByText('You’re signed out')).toBeVisible()
    expect(screen.getByText('You’ll sign in without a browser key').query()).toBeNull()
    await expect.element((await reload()).getByRole('button', { name: 'Sign in' })).toBeVisible()
    expect(sessionStorage).toHaveLength(0)
  })

  test('is offered with its risk if the browser can’t store a key', async () => {
    vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
      throw new DOMException('no', 'DataCloneError')
    })
    const { screen } = await openWallet({ session: 'none', signedIn: false })
    await screen.getByRole('button', { name: 'Sign in' }).click()
    await expect.element(screen.getByText(/Anyone with a copy of the session’s cookie/)).toBeVisible()
    await expectAccessible()
    await screen.getByRole('button', { name: 'Use a cookie only' }).click()
    await expect.element(screen.getByText('You’ll sign in without a browser key')).toBeVisible()
    await expectAccessible()
    await screen.getByRole('button', { name: 'Use a browser key' }).click()
    expect(screen.getByText('You’ll sign in without a browser key').query()).toBeNull()
  })

  test('that the service rejects leads to another browser', async () => {
    const { screen } = await openWallet({ signedIn: false, path: '/?sign_in=failed' })
    await expect.element(screen.getByText('The sign-in without a browser key failed')).toBeVisible()
    expect(screen.getByText(/cookie_blocked/).query()).toBeNull()
  })
})

describe('open sessions', () => {
  const other = { id: '0123456789abcdef', kind: 'bound', ...times, lastSeenAt: times.createdAt, isCurrent: false }
  const bodies: unknown[] = []
  const intercept = (url: string, pass: () => Promise<Response>, init?: RequestInit) => {
    if (url.endsWith('/auth/logout')) bodies.push(init?.body)
    if (!url.endsWith('/auth/sessions')) return undefined
    return pass().then(async (answer) => {
      const { sessions } = (await answer.json()) as { sessions: object[] }
      return Response.json({ sessions: bodies.length === 0 ? [...sessions, other] : sessions })
    })
  }

  test('are listed, and end one by one or all together', async () => {
    bodies.length = 0
    const { screen } = await openWallet({ session: 'bound', intercept })
    await screen.getByText('Open sessions').click()
    await expect.element(screen.getByText('Browser key, this browser')).toBeVisible()
    await expectAccessible()
    await screen.getByRole('button', { name: 'Sign out', exact: true }).nth(1).click()
    await expect.poll(() => screen.getByRole('listitem').filter({ hasText: 'Browser key' }).elements()).toHaveLength(1)
    await screen.getByRole('button', { name: 'Sign out everywhere' }).click()
    await expect.element(screen.getByText('You’re signed out')).toBeVisible()
    expect(bodies.slice(0, 2)).toEqual([JSON.stringify({ session: other.id }), JSON.stringify({ all: true })])
  })
})
