import type { ServiceClient } from '../client/ServiceClient.ts'

/** The address that starts a sign-in which returns to this page. */
export async function toLoginUrl(client: ServiceClient): Promise<string> {
  const url = client.loginUrl({ returnTo: globalThis.location?.href })
  const { session } = client.config
  return session === undefined ? url : session.startLogin(client.config, url)
}
