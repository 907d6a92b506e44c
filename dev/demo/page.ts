import { ServiceClient } from '@countersign/sdk/client'
import { createEip1193Provider } from '@countersign/sdk/eip1193'
import { boundSession } from '@countersign/sdk/session'
import { getAddress, stringToHex } from 'viem'
import { createSiweMessage } from 'viem/siwe'
import type { DemoConfig } from './createDemoApp.ts'
import type { SignedIn } from './relyingParty.ts'

const SIGN_IN_MS = 5 * 60_000
/** Stored for the tab while the visitor signs in to the wallet. */
const AWAY = 'demo-away'

const find = (id: string) => document.getElementById(id) as HTMLElement
const config = await ask<DemoConfig>('GET', '/config')
// The session of the wallet's own page has a key of that page's origin, so this site signs the visitor in with another key.
const session = boundSession()
const client = new ServiceClient({ ...config, session })
let slug: string | undefined
const provider = createEip1193Provider(client, {
  // The wallet's own sign-in, which returns the visitor here.
  onLogin: async () => {
    window.sessionStorage.setItem(AWAY, 'yes')
    const url = client.loginUrl({ returnTo: `${config.origin}/#sign-in` })
    return leaveTo(await session.startLogin(client.config, url))
  },
  onSigned: (signed) => {
    slug = signed.slug
  },
})

/** The usual flow of a site: number, message, signature, and a check on the server. */
async function signIn() {
  const [account] = await provider.request({ method: 'eth_requestAccounts' })
  if (account === undefined) throw new Error('The wallet has no account.')
  const { nonce } = await ask<{ nonce: string }>('POST', '/nonce')
  const message = createSiweMessage({
    address: getAddress(account),
    domain: window.location.host,
    uri: config.origin,
    version: '1',
    chainId: config.chainId,
    nonce,
    issuedAt: new Date(),
    expirationTime: new Date(Date.now() + SIGN_IN_MS),
    statement: 'Sign in to Harbour.',
  })
  const signature = await provider.request({ method: 'personal_sign', params: [stringToHex(message), account] })
  show(await ask<SignedIn>('POST', '/sign-in', { message, signature, slug }))
}

function show(signedIn: SignedIn | null) {
  find('state').textContent =
    signedIn === null
      ? 'You are not signed in.'
      : `Signed in as ${signedIn.address} at ${new Date(signedIn.signedInAt).toLocaleString()}.`
  find('actions').replaceChildren(
    signedIn === null
      ? createButton('Sign in with Ethereum', signIn)
      : createButton('Sign out', async () => show(await ask<null>('POST', '/sign-out'))),
  )
  find('links').replaceChildren(
    signedIn?.slug === undefined
      ? createLink('Open the wallet', config.webUrl)
      : createLink('View proof of the signature', `${config.webUrl}/proof/${signedIn.slug}`),
  )
}

function createButton(text: string, act: () => Promise<void>): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = text
  button.addEventListener('click', () => void run(act, button))
  return button
}

function createLink(text: string, href: string): HTMLAnchorElement {
  const link = document.createElement('a')
  link.textContent = text
  link.href = href
  return link
}

async function run(act: () => Promise<void>, button?: HTMLButtonElement) {
  if (button) button.disabled = true
  find('error').hidden = true
  try {
    await act()
  } catch (error) {
    find('error').textContent = error instanceof Error ? error.message : 'It failed.'
    find('error').hidden = false
  } finally {
    if (button) button.disabled = false
  }
}

/** The page is unloading: the request that waits for the account must stop. */
function leaveTo(url: string): Promise<never> {
  window.location.assign(url)
  return new Promise(() => {})
}

async function ask<Answer>(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error)
  return answer as Answer
}

show(await ask<SignedIn | null>('GET', '/me'))
// The visitor is back from the wallet's sign-in. Only this page can have set the mark: a link from another page must sign nothing. A
// cancelled sign-in must not start again.
const { hash, search } = window.location
if (hash === '#sign-in') {
  window.history.replaceState(null, '', '/')
  const isBack = window.sessionStorage.getItem(AWAY) !== null
  window.sessionStorage.removeItem(AWAY)
  if (new URLSearchParams(search).get('sign_in') === 'cancelled') find('state').textContent = 'You did not sign in.'
  else if (isBack) await run(signIn)
}
