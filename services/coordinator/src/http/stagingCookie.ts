import { STAGING_COOKIE } from '@countersign/service'

const MAX_AGE_S = 7 * 86_400

/** Whether all are one host, ports aside. What several have in common can be anybody's (`co.uk`), so a cookie is for one. */
export function isOneHost(urls: readonly string[]): boolean {
  const hosts = urls.filter((url) => URL.canParse(url)).map((url) => new URL(url).hostname)
  return new Set(hosts).size <= 1
}

/** `None` under https: a provider may post its answer from its own page (Sign in with Apple), and that has to get in too. */
export function writeStagingCookie(value: string, { isHttps }: { isHttps: boolean }): string {
  const policy = isHttps ? ['SameSite=None', 'Secure'] : ['SameSite=Lax']
  return [`${STAGING_COOKIE}=${value}`, `Max-Age=${MAX_AGE_S}`, 'Path=/', 'HttpOnly', ...policy].join('; ')
}
