const HOSTS: readonly string[] = ['127.0.0.1', '::1', 'localhost']

/** Whether a host to listen on, or to connect to, is this machine itself. An IPv6 address stands without brackets. */
export function isLoopbackHost(host: string): boolean {
  return HOSTS.includes(host)
}

/** Whether a URL is of this machine itself, where plain http is safe. What is not a URL is not. */
export function isLoopbackUrl(url: string | URL): boolean {
  if (typeof url === 'string') return URL.canParse(url) && isLoopbackUrl(new URL(url))
  const { hostname } = url
  return isLoopbackHost(hostname.startsWith('[') ? hostname.slice(1, -1) : hostname)
}

/**
 * Whether nobody on the way can read or change what goes to a URL: https, or http on this machine itself. What is not a URL is not. A
 * text must begin with its scheme in small letters: others tell by that whether it is https.
 */
export function isSafeUrl(url: string | URL): boolean {
  if (typeof url === 'string') return /^https?:/.test(url) && URL.canParse(url) && isSafeUrl(new URL(url))
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackUrl(url))
}
