import { isPublicPath } from './origin.ts'

/** On every answer that did not set its own. */
export function toSecurityHeaders({ path, isHttps }: { path: string; isHttps: boolean }): Record<string, string> {
  return {
    'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'cross-origin-resource-policy': isPublicPath(path) ? 'cross-origin' : 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
}
