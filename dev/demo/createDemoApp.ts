import { isPlainObject } from '@countersign/protocol'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { type RelyingParty, SignInError } from './relyingParty.ts'

/** The page's settings. */
export type DemoConfig = { origin: string; webUrl: string; apiBaseUrl: string; chainId: number; rpcUrl: string }

export type DemoApp = {
  config: DemoConfig
  party: RelyingParty
  /** A file of the page by its path, or undefined. */
  getFile(path: string): Promise<{ type: string; body: string } | undefined>
}

/** Browsers send cookies of `localhost` to all ports, so the names include the site's. */
const NONCE = 'demo_nonce'
const SESSION = 'demo_session'
const OWN = { httpOnly: true, sameSite: 'Strict', path: '/' } as const
const MAX_BYTES = 8 * 1024

const refuseLong = bodyLimit({
  maxSize: MAX_BYTES,
  onError: (c) => c.json({ error: 'The request is too long.' }, 413),
})

/** The server of the site. It does not listen. */
export function createDemoApp({ config, party, getFile }: DemoApp): Hono {
  const app = new Hono()
  app.onError((error, c) => {
    if (error instanceof SignInError) return c.json({ error: error.message }, 401)
    return c.json({ error: 'The site failed.' }, 500)
  })
  // A page of another site must not sign a visitor in or out.
  app.post('*', refuseLong, async (c, next) => {
    if (c.req.header('origin') !== config.origin) return c.json({ error: 'Only pages of this site may call.' }, 403)
    return next()
  })

  app.get('/config', (c) => c.json(config))
  app.get('/me', (c) => c.json(party.getSignedIn(getCookie(c, SESSION)) ?? null))
  app.post('/nonce', (c) => {
    const nonce = party.createNonce()
    setCookie(c, NONCE, nonce, OWN)
    return c.json({ nonce })
  })
  app.post('/sign-in', async (c) => {
    const body = await readJson(c)
    const { message, signature, slug } = isPlainObject(body) ? body : {}
    const nonce = getCookie(c, NONCE)
    deleteCookie(c, NONCE, OWN)
    const session = await party.signIn({ message, signature, slug }, nonce)
    setCookie(c, SESSION, session, OWN)
    return c.json(party.getSignedIn(session))
  })
  app.post('/sign-out', (c) => {
    party.signOut(getCookie(c, SESSION))
    deleteCookie(c, SESSION, OWN)
    return c.json(null)
  })
  app.get('*', async (c) => {
    const file = await getFile(c.req.path === '/' ? '/index.html' : c.req.path)
    if (file === undefined) return c.notFound()
    // In a frame of another site a visitor would not see what a click signs.
    return c.body(file.body, 200, { 'content-type': file.type, 'x-frame-options': 'DENY' })
  })
  return app
}

async function readJson(c: Context): Promise<unknown> {
  return c.req.json().catch(() => undefined)
}
