const HOSTS: readonly string[] = ['127.0.0.1', '::1', 'localhost']

/** Whether a host is this machine. An IPv6 address has no brackets. */
export function isLoopbackHost(host: string): boolean {
  return HOSTS.includes(host)
}

/** Whether a URL's host is this machine, where plain http is safe. False if it is not a URL. */
export function isLoopbackUrl(url: string | URL): boolean {
  if (typeof url === 'string') return URL.canParse(url) && isLoopbackUrl(new URL(url))
  const { hostname } = url
  return isLoopbackHost(hostname.startsWith('[') ? hostname.slice(1, -1) : hostname)
}

/**
 * Whether the connection to a URL is private: https, or http to this machine. False if it is not a URL. The scheme must be in lower case,
 * because other code compares it as text.
 */
export function isSafeUrl(url: string | URL): boolean {
  if (typeof url === 'string') return /^https?:/.test(url) && URL.canParse(url) && isSafeUrl(new URL(url))
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackUrl(url))
}
