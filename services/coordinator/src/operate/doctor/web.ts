import { isIP } from 'node:net'
import { isLoopbackUrl } from '@countersign/protocol'
import { createTrustedProxies } from '@countersign/service'
import type { Config } from '../../config.ts'
import { checkCertificate } from './certificate.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'

/** What browsers meet: certificate, cookie, origins, and the proxies between. */
export function createWebChecks({ subject, clock }: Context): Check[] {
  const { isProduction } = subject
  const { app } = subject.coordinator as Config
  const { publicUrl, allowedOrigins, cookieSameSite, trustedProxies } = app
  return [
    {
      name: 'tls',
      settings: /^PUBLIC_URL$/,
      async run({ signal }) {
        if (!publicUrl.startsWith('https://')) return skipped('PUBLIC_URL is http')
        return checkCertificate(new URL(publicUrl), { now: clock.now(), isProduction, signal })
      },
    },
    {
      name: 'cookies',
      settings: /^(PUBLIC_URL|ALLOWED_ORIGINS|COOKIE_SAMESITE)$/,
      run: async () => judgeCookies({ publicUrl, allowedOrigins, sameSite: cookieSameSite }),
    },
    {
      name: 'origins',
      settings: /^(PUBLIC_URL|ALLOWED_ORIGINS)$/,
      run: async () => judgeOrigins(allowedOrigins, { isProduction }),
    },
    {
      name: 'proxies',
      settings: /^(PUBLIC_URL|TRUSTED_PROXIES)$/,
      run: async () => judgeProxies(trustedProxies, { isBehind: publicUrl.startsWith('https://') }),
    },
  ]
}

export function judgeCookies(parameters: {
  publicUrl: string
  allowedOrigins: readonly string[]
  sameSite: 'none' | 'lax' | 'strict'
}): Finding[] {
  const { publicUrl, allowedOrigins, sameSite } = parameters
  const site = toSite(publicUrl)
  const foreign = allowedOrigins.filter((origin) => toSite(origin) !== site)
  if (foreign.length === 0) return [ok(`SameSite=${sameSite}; pages and API are on one site, ${site}`)]
  return foreign.map((origin) =>
    sameSite === 'none'
      ? warning(
          `${origin} is on another site than PUBLIC_URL: many browsers keep such cookies back`,
          'Put page and API under one domain, as app.example.com and api.example.com.',
        )
      : fault(
          `${origin} is on another site than PUBLIC_URL: with SameSite=${sameSite} nobody stays signed in there`,
          'Put page and API under one domain, or set COOKIE_SAMESITE=none.',
        ),
  )
}

export function judgeOrigins(origins: readonly string[], { isProduction }: { isProduction: boolean }): Finding[] {
  const found: Finding[] = []
  for (const origin of origins) {
    const isLocal = isLoopbackUrl(origin)
    if (!isLocal && origin.startsWith('http:')) {
      found.push(
        fault(
          `${origin} is plain http: anybody on the way can sign as its users`,
          'Serve that page by https, and name it so.',
        ),
      )
    }
    if (isProduction && isLocal) {
      found.push(
        warning(
          `${origin} is the visitor’s own machine`,
          'Take it out of ALLOWED_ORIGINS: any program there could be that page.',
        ),
      )
    }
  }
  return found.length > 0 ? found : [ok(`${origins.length} page(s); sign-in returns to ${origins[0]}`)]
}

export function judgeProxies(entries: readonly string[], { isBehind }: { isBehind: boolean }): Finding[] {
  const mend = 'List the addresses of your own proxies in TRUSTED_PROXIES, as 10.1.2.3 or 10.1.2.0/24.'
  if (entries.length === 0) {
    return isBehind
      ? [
          warning(
            'none is trusted, though PUBLIC_URL is https: all users share the limits of the proxy’s address',
            mend,
          ),
        ]
      : [ok('none')]
  }
  try {
    createTrustedProxies(entries)
  } catch (error) {
    return [fault(`TRUSTED_PROXIES: ${error instanceof Error ? error.message : 'cannot be read'}`, mend)]
  }
  const wide = entries.filter((entry) => {
    const bits = Number(entry.split('/')[1] ?? Number.POSITIVE_INFINITY)
    return bits < (entry.includes(':') ? 16 : 8)
  })
  if (wide.length === 0) return [ok(`${entries.length} entry(s)`)]
  return wide.map((entry) => fault(`${entry} lets nearly anybody choose the address that is counted`, mend))
}

/** Suffixes under which strangers have names. Browsers have the whole list; these are the ones that people deploy to. */
const SHARED =
  /(^|\.)((co|com|org|net|gov|edu|ac)\.[a-z]{2}|github\.io|gitlab\.io|vercel\.app|netlify\.app|pages\.dev|workers\.dev|fly\.dev|onrender\.com|herokuapp\.com|web\.app|azurewebsites\.net|cloudfront\.net)$/

/** Scheme and registrable domain, as browsers compare them; a guess where the suffix is a rare one. */
function toSite(url: string): string {
  const { protocol, hostname } = new URL(url)
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) return `${protocol}//${hostname}`
  const labels = hostname.split('.')
  const count = SHARED.test(labels.slice(-2).join('.')) ? 3 : 2
  return `${protocol}//${labels.slice(-count).join('.')}`
}
