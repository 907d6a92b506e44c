import { LOGIN_TTL_MS } from '../accounts/signIn.ts'

/** How cookies are written; both follow from the configuration. */
export type CookieRules = { isHttps: boolean; sameSite: 'none' | 'lax' | 'strict' }

const SESSION = 'countersign-session'
const LOGIN = 'countersign-login-'
const CHOICE = 'countersign-choice'
const CHOICE_TTL_MS = 30 * 86_400_000

/** `__Host-` keeps sibling domains from planting a cookie of that name; browsers allow it with `Secure` only. */
const prefix = ({ isHttps }: CookieRules) => (isHttps ? '__Host-' : '')

export const toSessionCookieName = (rules: CookieRules) => `${prefix(rules)}${SESSION}`
export const toLoginCookieName = (rules: CookieRules, id: string) => `${prefix(rules)}${LOGIN}${id}`

/** The session secret that a request carries, if it is of the right form. */
export function readSessionCookie(rules: CookieRules, header: string | undefined): string | undefined {
  return readSecret(header, toSessionCookieName(rules))
}

export function readLoginCookie(rules: CookieRules, header: string | undefined, id: string): string | undefined {
  return readSecret(header, toLoginCookieName(rules, id))
}

/** Names of all sign-ins that this browser has under way. */
export function listLoginCookies(rules: CookieRules, header: string | undefined): string[] {
  const start = `${prefix(rules)}${LOGIN}`
  return parseCookies(header)
    .map(([name]) => name)
    .filter((name) => name.startsWith(start) && /^[0-9a-f]{16}$/.test(name.slice(start.length)))
}

/** Two cookies of one name mean that one was planted: neither is used. */
function readSecret(header: string | undefined, name: string): string | undefined {
  const values = parseCookies(header)
    .filter((cookie) => cookie[0] === name)
    .map(([, value]) => value)
  const [value] = values
  return values.length === 1 && value !== undefined && /^[0-9a-f]{64}$/.test(value) ? value : undefined
}

function parseCookies(header: string | undefined): [name: string, value: string][] {
  return (header ?? '').split(';').flatMap((part): [string, string][] => {
    const at = part.indexOf('=')
    return at < 0 ? [] : [[strip(part.slice(0, at)), strip(part.slice(at + 1))]]
  })
}

/**
 * RFC 6265 §5.2 knows two kinds of white space. `trim` knows more, and a no-break space before the name could let a sibling
 * domain plant a cookie that a browser does not take for one with the prefix, while we would.
 */
function strip(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '')
}

export function writeSessionCookie(rules: CookieRules, sid: string, ttlMs: number): string {
  return write(rules, { name: toSessionCookieName(rules), value: sid, ttlMs, sameSite: rules.sameSite })
}

export function clearSessionCookie(rules: CookieRules): string {
  return write(rules, { name: toSessionCookieName(rules), value: '', ttlMs: 0, sameSite: rules.sameSite })
}

/** Lax whatever the rules: the provider's redirect is a top-level navigation, and nothing else needs this cookie. */
export function writeLoginCookie(rules: CookieRules, id: string, loginSecret: string): string {
  const name = toLoginCookieName(rules, id)
  return write(rules, { name, value: loginSecret, ttlMs: LOGIN_TTL_MS, sameSite: 'lax' })
}

export function clearLoginCookie(rules: CookieRules, name: string): string {
  return write(rules, { name, value: '', ttlMs: 0, sameSite: 'lax' })
}

/**
 * Left by a sign-out: the next sign-in asks who it is. Set by a call of the app, so that it goes where the session's cookie goes;
 * and with navigations from other sites too, such as a link that starts a sign-in, where that one does not.
 */
export function writeChoiceCookie(rules: CookieRules): string {
  return write(rules, { ...toChoiceCookie(rules), value: 'select-account', ttlMs: CHOICE_TTL_MS })
}

export function clearChoiceCookie(rules: CookieRules): string {
  return write(rules, { ...toChoiceCookie(rules), value: '', ttlMs: 0 })
}

/** Whoever plants it makes a user choose, no more. */
export function hasChoiceCookie(rules: CookieRules, header: string | undefined): boolean {
  return parseCookies(header).some(([name]) => name === toChoiceCookie(rules).name)
}

function toChoiceCookie(rules: CookieRules): Pick<Cookie, 'name' | 'sameSite'> {
  return { name: `${prefix(rules)}${CHOICE}`, sameSite: rules.sameSite === 'strict' ? 'lax' : rules.sameSite }
}

type Cookie = { name: string; value: string; ttlMs: number; sameSite: CookieRules['sameSite'] }

function write({ isHttps }: CookieRules, { name, value, ttlMs, sameSite }: Cookie): string {
  const sameSiteText = { none: 'None', lax: 'Lax', strict: 'Strict' }[sameSite]
  const seconds = Math.max(0, Math.floor(ttlMs / 1000))
  const parts = [`${name}=${value}`, `Max-Age=${seconds}`, 'Path=/', 'HttpOnly', `SameSite=${sameSiteText}`]
  return [...parts, ...(isHttps ? ['Secure'] : [])].join('; ')
}
