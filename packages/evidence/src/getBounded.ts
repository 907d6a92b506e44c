import { isBodyTooLarge, isSafeUrl, readBounded, ServiceError, withinTimeLimit } from '@countersign/protocol/core'

/** Why a hardware vendor's service returned nothing usable. */
export type VendorErrorCode =
  /** Retry later: there was no response in time. */
  | 'vendor_unreachable'
  /** Read `details`: the service returned this status. */
  | 'vendor_refused'
  /** Distrust the service, or its version: the response doesn't match its documentation. */
  | 'vendor_answer_malformed'
  /** Fix the deployment: neither the host, nor a file, nor AMD's service provides certificates for this report. */
  | 'certificates_missing'

export class VendorError extends ServiceError<VendorErrorCode> {
  override name = 'VendorError'
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** A vendor's service over https, or one on loopback, without a slash at the end. */
export function toVendorUrl(text: string): string {
  const url = new URL(text)
  if (!isSafeUrl(url)) throw new TypeError('a vendor’s service must be https, or on loopback')
  if (url.search !== '' || url.hash !== '') throw new TypeError('a vendor’s service has no query')
  return url.href.replace(/\/+$/, '')
}

/** Sends a GET with a size limit and a time limit. Rejects redirects: the response must come from the requested host. */
export async function getBounded(
  deps: { fetch: Fetch; timeoutMs: number },
  { url, name, maxBytes }: { url: string; name: string; maxBytes: number },
): Promise<{ headers: Headers; body: Uint8Array<ArrayBuffer> }> {
  try {
    return await withinTimeLimit(deps.timeoutMs, async (signal) => {
      const response = await deps.fetch(url, { redirect: 'error', signal })
      if (response.status !== 200) {
        const details = `${name}: ${response.status}`
        throw new VendorError('vendor_refused', 'a vendor’s service refused', { details })
      }
      return { headers: response.headers, body: await readBounded(response.body, maxBytes) }
    })
  } catch (cause) {
    if (cause instanceof VendorError) throw cause
    if (isBodyTooLarge(cause)) throw malformed(name, 'too large')
    throw new VendorError('vendor_unreachable', 'a vendor’s service did not respond', { details: name, cause })
  }
}

export function malformed(name: string, details: string, cause?: unknown) {
  return new VendorError('vendor_answer_malformed', 'a vendor’s response is malformed', {
    details: `${name}: ${details}`,
    cause,
  })
}
