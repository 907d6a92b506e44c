import { createHash } from 'node:crypto'

/** An account of the local identity provider. */
export type OidcAccount = { sub: string; email: string; name: string }

const MAX_NAME_LENGTH = 60
const MAX_REMEMBERED = 5
const COOKIE = 'local-people'

export type LocalAccounts = ReturnType<typeof createLocalAccounts>

/** The given accounts, and an account for any other name. */
export function createLocalAccounts(accounts: readonly OidcAccount[]) {
  const bySub = new Map(accounts.map((account) => [account.sub, account]))
  return {
    find: (sub: string) => bySub.get(sub),
    /** Returns the account for a name, creating it if needed; undefined for an invalid name. */
    findByName(text: string): OidcAccount | undefined {
      const name = toName(text)
      if (name === '') return undefined
      const known = accounts.find((account) => account.name.toLowerCase() === name.toLowerCase())
      if (known !== undefined) return known
      const sub = toSubject(name)
      const account = bySub.get(sub) ?? { sub, email: `${sub}@example.com`, name }
      bySub.set(sub, account)
      return account
    },
  }
}

function toName(text: string): string {
  const line = text.normalize('NFC').replace(/\p{C}/gu, ' ').replace(/\s+/g, ' ').trim()
  return [...line].slice(0, MAX_NAME_LENGTH).join('').trim()
}

/** Maps a name to the same subject after every restart. Subjects are ASCII; a hash represents characters outside it. */
function toSubject(name: string): string {
  const lower = name.toLowerCase()
  const plain = lower
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  if (plain === lower.replaceAll(' ', '-')) return plain
  const rest = createHash('sha256').update(lower).digest('hex').slice(0, 8)
  return plain === '' ? rest : `${plain}-${rest}`
}

/** Names used in this browser, newest first. Cookies ignore ports, so other local stacks share them. */
export function readRemembered(cookies: string | undefined): string[] {
  const value = new RegExp(`(?:^|; )${COOKIE}=([^;]*)`).exec(cookies ?? '')?.[1]
  try {
    const names: unknown = JSON.parse(decodeURIComponent(value ?? '[]'))
    return Array.isArray(names) ? names.map((name) => toName(String(name))).filter((name) => name !== '') : []
  } catch {
    return []
  }
}

/** The Set-Cookie header that adds a name. */
export function writeRemembered(cookies: string | undefined, name: string): string {
  const names = [...new Set([name, ...readRemembered(cookies)])].slice(0, MAX_REMEMBERED)
  return `${COOKIE}=${encodeURIComponent(JSON.stringify(names))}; Max-Age=31536000; Path=/; HttpOnly; SameSite=Lax`
}
