/** Where the one address of a staging leads: the app's files, the API, the chain's node, or the IPFS node. */
export type Route = 'web' | 'api' | 'chain' | 'ipfs'

/** The API alone has these. */
const API = /^\/(?:auth|docs|log|proofs|staging|wallet)(?:\/|$)|^\/health\/|^\/openapi\.json$/
/** The app has pages of these names, and the API calls: what asks for a page gets a page. */
const SHARED = /^\/(?:proof|sign|vaults)(?:\/|$)/

export function toRoute({ path, accept }: { path: string; accept: string | undefined }): Route {
  if (/^\/rpc(?:\/|$)/.test(path)) return 'chain'
  if (path.startsWith('/ipfs/')) return 'ipfs'
  if (API.test(path)) return 'api'
  return SHARED.test(path) && !(accept ?? '').includes('text/html') ? 'api' : 'web'
}
