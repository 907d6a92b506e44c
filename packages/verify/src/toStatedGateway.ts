/** `https://gateway.example/ipfs/bafkrei…` is of the gateway `https://gateway.example`. Undefined for anything but a web address. */
export function toStatedGateway(ipfsUrl: unknown): string | undefined {
  const href = parseHttpUrl(ipfsUrl)
  if (href === undefined) return undefined
  const { origin, pathname } = new URL(href)
  const end = pathname.lastIndexOf('/ipfs/')
  return end < 0 ? origin : `${origin}${pathname.slice(0, end)}`
}

/** An address on the web, without credentials, that may be asked or shown as a link. */
export function parseHttpUrl(value: unknown): string | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return url.username === '' && url.password === '' ? url.href : undefined
}
