import { isPlainObject } from '@countersign/protocol'

/** What the service says about itself and its evidence; undefined where it says nothing. Whether that is true, only a proof tells. */
export async function fetchAttestation(
  apiBaseUrl: string,
  init: RequestInit,
): Promise<Record<string, unknown> | undefined> {
  const url = `${apiBaseUrl.replace(/\/+$/, '')}/health/attestation`
  const response = await globalThis.fetch(url, init)
  const body: unknown = response.ok ? await response.json() : undefined
  return isPlainObject(body) ? body : undefined
}
