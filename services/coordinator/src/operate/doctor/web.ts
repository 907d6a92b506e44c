import { isIP } from 'node:net'
import { checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { isLoopbackUrl } from '@countersign/protocol'
import { createTrustedProxies } from '@countersign/service'
import type { Config } from '../../config.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'
import { explain, findCode } from './reasons.ts'

/** Checks what browsers depend on: certificate, cookie, origins and proxies. */
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
      run: async () => evaluateCookies({ publicUrl, allowedOrigins, sameSite: cookieSameSite }),
    },
    {
      name: 'origins',
      settings: /^(PUBLIC_URL|ALLOWED_ORIGINS)$/,
      run: async () => evaluateOrigins(allowedOrigins, { isProduction }),
    },
    {
      name: 'proxies',
      settings: /^(PUBLIC_URL|TRUSTED_PROXIES)$/,
      run: async () => evaluateProxies(trustedProxies, { isBehind: publicUrl.startsWith('https://') }),
    },
  ]
}

export function evaluateCookies(parameters: {
  publicUrl: string
  allowedOrigins: readonly string[]
  sameSite: 'none' | 'lax' | 'strict'
}): Finding[] {
  const { publicUrl, allowedOrigins, sameSite } = parameters
  const site = toSite(publicUrl)
  const foreign = allowedOrigins.filter((origin) => toSite(origin) !== site)
  if (foreign.length === 0) return [ok(`SameSite=${sameSite}; pages and API share the site ${site}`)]
  return foreign.map((origin) =>
    sameSite === 'none'
      ? warning(
          `${origin} is on another site than PUBLIC_URL: many browsers block its cookies`,
          'Put page and API under one domain, such as app.example.com and api.example.com.',
        )
      : fault(
          `${origin} is on another site than PUBLIC_URL: with SameSite=${sameSite} users don’t stay signed in there`,
          'Put page and API under one domain, or set COOKIE_SAMESITE=none.',
        ),
  )
}

export function evaluateOrigins(origins: readonly string[], { isProduction }: { isProduction: boolean }): Finding[] {
  const found: Finding[] = []
  for (const origin of origins) {
    const isLocal = isLoopbackUrl(origin)
    if (!isLocal && origin.startsWith('http:')) {
      found.push(
        fault(
          `${origin} is plain http: anyone on the network path can sign as its users`,
          'Serve that page over https, and list its https address.',
        ),
      )
    }
    if (isProduction && isLocal) {
      found.push(
        warning(
          `${origin} is the visitor’s own machine`,
          'Remove it from ALLOWED_ORIGINS: any program there could act as that page.',
        ),
      )
    }
  }
  return found.length > 0 ? found : [ok(`${origins.length} page(s); sign-in returns to ${origins[0]}`)]
}

export function evaluateProxies(entries: readonly string[], { isBehind }: { isBehind: boolean }): Finding[] {
  const fix = 'List the addresses of your own proxies in TRUSTED_PROXIES, such as 10.1.2.3 or 10.1.2.0/24.'
  if (entries.length === 0) {
    return isBehind
      ? [warning('none, but PUBLIC_URL is https: all users share the rate limits of the proxy’s address', fix)]
      : [ok('none')]
  }
  try {
    createTrustedProxies(entries)
  } catch (error) {
    return [fault(`TRUSTED_PROXIES: ${error instanceof Error ? error.message : 'cannot be read'}`, fix)]
  }
  const wide = entries.filter((entry) => {
    const bits = Number(entry.split('/')[1] ?? Number.POSITIVE_INFINITY)
    return bits < (entry.includes(':') ? 16 : 8)
  })
  if (wide.length === 0) return [ok(`${entries.length} address(es) or range(s)`)]
  return wide.map((entry) => fault(`${entry} lets nearly anyone choose the address that rate limits use`, fix))
}

/** Common public suffixes. Browsers have the whole list; these are the ones that people deploy to. */
const SHARED =
  /(^|\.)((co|com|org|net|gov|edu|ac)\.[a-z]{2}|github\.io|gitlab\.io|vercel\.app|netlify\.app|pages\.dev|workers\.dev|fly\.dev|onrender\.com|herokuapp\.com|web\.app|azurewebsites\.net|cloudfront\.net)$/

/** Scheme and registrable domain, as browsers compare them. For rare suffixes this is a guess. */
function toSite(url: string): string {
  const { protocol, hostname } = new URL(url)
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) return `${protocol}//${hostname}`
  const labels = hostname.split('.')
  const count = SHARED.test(labels.slice(-2).join('.')) ? 3 : 2
  return `${protocol}//${labels.slice(-count).join('.')}`
}

const DAY_MS = 86_400_000
const SOON_MS = 14 * DAY_MS

type Seen = { certificate: PeerCertificate; authorizationError: string | undefined }

/** Checks the certificate like a browser. */
async function checkCertificate(
  url: URL,
  { now, isProduction, signal }: { now: number; isProduction: boolean; signal: AbortSignal },
): Promise<Finding> {
  let seen: Seen
  try {
    seen = await getCertificate(url, signal)
  } catch (error) {
    const known = explain(findCode(error))
    // A warning, because the proxy may start after the coordinator.
    return warning(
      `${url.host}: ${known?.text ?? 'no TLS'}`,
      `${known?.fix ?? 'Turn on TLS at the proxy'}. Before the proxy's first start, ignore this.`,
    )
  }
  const { certificate, authorizationError } = seen
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const ends = Date.parse(certificate.valid_to)
  const day = Number.isFinite(ends) ? new Date(ends).toISOString().slice(0, 10) : 'unknown date'
  if (!(ends > now)) return fault(`${url.host}: the certificate expired on ${day}`, 'Renew it and reload the proxy.')
  if (checkServerIdentity(host, certificate) !== undefined) {
    return fault(`${url.host}: the certificate is for another name`, `Get one for ${host}, or correct PUBLIC_URL.`)
  }
  if (authorizationError !== undefined) {
    const text = `${url.host}: browsers don’t trust the certificate (${authorizationError})`
    const fix = 'Use a certificate from a trusted authority, and send its full chain from the proxy.'
    return isProduction ? fault(text, fix) : warning(text, fix)
  }
  if (ends - now < SOON_MS)
    return warning(`${url.host}: the certificate expires on ${day}`, 'Renew it and reload the proxy.')
  return ok(`${url.host}: valid until ${day}`)
}

function getCertificate(url: URL, signal: AbortSignal): Promise<Seen> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(url.port || 443),
      // RFC 6066 §3: names only, no addresses.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // Accepts any certificate, because it sends no data.
      rejectUnauthorized: false,
    })
    const abort = () => socket.destroy(new DOMException('timed out', 'TimeoutError'))
    signal.addEventListener('abort', abort, { once: true })
    socket.once('secureConnect', () => {
      const error: unknown = socket.authorizationError
      const code = typeof error === 'string' ? error : findCode(error)
      // The caller checks name and date.
      const isOther = code === undefined || code === 'CERT_HAS_EXPIRED' || code === 'ERR_TLS_CERT_ALTNAME_INVALID'
      resolve({
        certificate: socket.getPeerCertificate(),
        authorizationError: socket.authorized || isOther ? undefined : code,
      })
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
  })
}
