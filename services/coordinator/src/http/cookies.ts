import { LOGIN_TTL_MS } from '../accounts/signIn.ts'
import type { RequestHead } from './context.ts'

/** Cookie attributes that follow from the configuration. */
export type CookieRules = { isHttps: boolean; sameSite: 'none' | 'lax' | 'strict' }

const SESSION = 'countersign-session'
const LOGIN = 'countersign-login-'
const CHOICE = 'countersign-choice'
const CHOICE_TTL_MS = 30 * 86_400_000

/** `__Host-` keeps sibling domains from setting the cookie. Browsers accept it only with `Secure`. */
const prefix = ({ isHttps }: CookieRules) => (isHttps ? '__Host-' : '')

export const toSessionCookieName = (rules: CookieRules) => `${prefix(rules)}${SESSION}`
export const toLoginCookieName = (rules: CookieRules, id: string) => `${prefix(rules)}${LOGIN}${id}`

/** The session secret, if it is well formed: from the `Authorization` header of a session without a cookie, or from the cookie. */
export function readSessionSecret(rules: CookieRules, head: Pick<RequestHead, 'header'>): string | undefined {
  const authorization = head.header('authorization')
  if (authorization === undefined) return readSessionCookie(rules, head.header('cookie'))
  return /^Session ([0-9a-f]{64})$/.exec(authorization)?.[1]
}

/** The session secret in the cookie, if it is well formed. */
export function readSessionCookie(rules: CookieRules, header: string | undefined): string | undefined {
  return readSecret(header, toSessionCookieName(rules))
}

export function readLoginCookie(rules: CookieRules, header: string | undefined, id: string): string | undefined {
  return readSecret(header, toLoginCookieName(rules, id))
}

/** Names of the login cookies of all unfinished sign-ins. */
export function listLoginCookies(rules: CookieRules, header: string | undefined): string[] {
  const start = `${prefix(rules)}${LOGIN}`
  return parseCookies(header)
    .map(([name]) => name)
    .filter((name) => name.startsWith(start) && /^[0-9a-f]{16}$/.test(name.slice(start.length)))
}

/** If two cookies have the same name, an attacker may have set one of them, so both are ignored. */
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
 * RFC 6265 §5.2 strips only spaces and tabs. `trim` strips more: with a no-break space before the name, a sibling domain could set a cookie
 * that lacks the prefix for the browser but has it for us.
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

/** Always Lax: it is only needed when the provider redirects back, which is a top-level navigation. */
export function writeLoginCookie(rules: CookieRules, id: string, loginSecret: string): string {
  const name = toLoginCookieName(rules, id)
  return write(rules, { name, value: loginSecret, ttlMs: LOGIN_TTL_MS, sameSite: 'lax' })
}

export function clearLoginCookie(rules: CookieRules, name: string): string {
  return write(rules, { name, value: '', ttlMs: 0, sameSite: 'lax' })
}

/**
 * Set on sign-out. The next sign-in then asks the provider to show its account chooser. The cookie must also arrive with navigations from
 * other sites, such as a link that starts a sign-in, so it is Lax where the session's cookie is Strict.
 */
export function writeChoiceCookie(rules: CookieRules): string {
  return write(rules, { ...toChoiceCookie(rules), value: 'select-account', ttlMs: CHOICE_TTL_MS })
}

export function clearChoiceCookie(rules: CookieRules): string {
  return write(rules, { ...toChoiceCookie(rules), value: '', ttlMs: 0 })
}

/** The cookie is not authenticated: forging it only makes the provider show its account chooser. */
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
