import { isPlainObject, parseJson, ServiceError } from '@countersign/protocol'
import type { FetchBytes } from './fetchBytes.ts'
import { MAX_MANIFEST_BYTES } from './parseManifest.ts'
import { parseHttpUrl } from './toStatedGateway.ts'

/** A manifest may be in it. */
const MAX_CONFIG_BYTES = 2 * MAX_MANIFEST_BYTES

/**
 * The service behind the origin of a proof link. A web app names it in its `config.json`; an origin without one is taken for the
 * service itself. Nothing else in that file is used: it is the word of the party that is judged.
 */
export async function findApi({ fetchBytes }: { fetchBytes: FetchBytes }, origin: string): Promise<string> {
  try {
    const url = `${origin}/config.json`
    const config = parseJson(await fetchBytes({ url, maxBytes: MAX_CONFIG_BYTES, accept: 'application/json' }))
    return parseHttpUrl(isPlainObject(config) ? config.apiBaseUrl : undefined) ?? origin
  } catch (error) {
    if (error instanceof ServiceError) return origin
    throw error
  }
}
