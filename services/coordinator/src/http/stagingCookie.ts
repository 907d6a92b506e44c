import { STAGING_COOKIE } from '@countersign/service'

const MAX_AGE_S = 7 * 86_400

/**
 * The domain that a staging's cookie is for, so that one password opens the app and the API: what the hosts have in common, of two labels or
 * more. Empty where all are one host, and undefined where they have too little in common.
 */
export function toStagingDomain(urls: readonly string[]): string | undefined {
  const [first = [], ...rest] = urls
    .filter((url) => URL.canParse(url))
    .map((url) => new URL(url).hostname.split('.').reverse())
  if (rest.every((labels) => labels.join('.') === first.join('.'))) return ''
  let count = 0
  while (count < first.length && rest.every((labels) => labels[count] === first[count])) count += 1
  return count < 2 ? undefined : first.slice(0, count).reverse().join('.')
}

export type StagingCookieRules = { isHttps: boolean; domain: string }

/** `None` under https: a provider may post its answer from its own page (Sign in with Apple), and that has to get in too. */
export function writeStagingCookie(value: string, { isHttps, domain }: StagingCookieRules): string {
  const scope = domain === '' ? [] : [`Domain=${domain}`]
  const policy = isHttps ? ['SameSite=None', 'Secure'] : ['SameSite=Lax']
  return [`${STAGING_COOKIE}=${value}`, `Max-Age=${MAX_AGE_S}`, 'Path=/', 'HttpOnly', ...scope, ...policy].join('; ')
}
