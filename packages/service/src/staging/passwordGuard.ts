import { hash, scryptSync, timingSafeEqual } from 'node:crypto'

/** Of a browser that has given the password. Its value follows from the password alone, so every process of a staging knows it. */
export const STAGING_COOKIE = 'countersign-staging'

/** How a request asks to be let in. `wrong` is a password that was tried, and has to be counted. */
type Admission = 'admitted' | 'wrong' | 'none'

export type PasswordGuard = {
  /** The value of the cookie. */
  cookie: string
  /** Takes as long for any text. */
  isPassword(text: string): boolean
  /** Judges the headers `authorization` (Basic, with any name) and `cookie`. */
  check(headers: { authorization: string | undefined; cookie: string | undefined }): Admission
}

/**
 * Lets in who knows the password of a staging: programs by HTTP Basic, browsers by a cookie. The cookie is derived slowly (scrypt), so that one
 * that leaks does not give the password away.
 */
export function createPasswordGuard(password: string): PasswordGuard {
  const expected = toDigest(password)
  const cookie = scryptSync(password, 'countersign/staging-cookie/v1', 32).toString('hex')
  const expectedCookie = toDigest(cookie)
  const isPassword = (text: string) => timingSafeEqual(toDigest(text), expected)

  return {
    cookie,
    isPassword,
    check({ authorization, cookie: cookies }) {
      const given = readCookie(cookies)
      if (given !== undefined && timingSafeEqual(toDigest(given), expectedCookie)) return 'admitted'
      const [, encoded] = /^basic +([a-z0-9+/=]{1,1024})$/i.exec(authorization ?? '') ?? []
      if (encoded === undefined) return 'none'
      const text = Buffer.from(encoded, 'base64').toString('utf8')
      return isPassword(text.slice(text.indexOf(':') + 1)) ? 'admitted' : 'wrong'
    },
  }
}

/** Of equal length whatever the text, as the comparison needs them. */
function toDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

function readCookie(header = ''): string | undefined {
  const start = `${STAGING_COOKIE}=`
  return header
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(start))
    ?.slice(start.length)
}
