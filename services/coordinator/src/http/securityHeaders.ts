import { isPublicPath } from './origin.ts'

/** The default response headers of a path. Each call returns a new object. */
export function createSecurityHeaders({ isHttps }: { isHttps: boolean }): (path: string) => Record<string, string> {
  const shared = {
    'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
  const publicOnes = { ...shared, 'cross-origin-resource-policy': 'cross-origin' }
  const others = { ...shared, 'cross-origin-resource-policy': 'same-origin' }
  return (path) => ({ ...(isPublicPath(path) ? publicOnes : others) })
}
