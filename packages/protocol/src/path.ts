import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import type { Endpoint } from './http.ts'

/* An app's first page loads this file. The table of endpoints would add the parsers of all requests to it. */

/** The values for the `:names` in the path of an endpoint. */
export type PathParameters<Name extends string> = Name extends `${string}/:${infer Parameter}/${infer Rest}`
  ? { [Key in Parameter]: string } & PathParameters<`/${Rest}`>
  : Name extends `${string}/:${infer Parameter}`
    ? { [Key in Parameter]: string }
    : unknown

/** The same as arguments: none for a path without `:names`. */
export type PathArguments<Name extends string> =
  unknown extends PathParameters<Name> ? [] : [parameters: PathParameters<Name>]

/**
 * Returns the method of an endpoint, and its path with the parameters filled in.
 *
 * @example
 * toMethodAndPath('GET /proof/:slug', { slug }) // { method: 'GET', path: '/proof/…' }
 */
export function toMethodAndPath<Name extends Endpoint>(
  endpoint: Name,
  ...[parameters]: PathArguments<Name>
): { method: 'GET' | 'POST'; path: string } {
  const filled = endpoint.replace(/:(\w+)/g, (_, name: string) => {
    const value = (parameters as Record<string, string> | undefined)?.[name] as string
    // Slugs and addresses match this. Other text could change the path.
    if (!/^[\w-]+$/.test(value)) throw new ServiceError<ProtocolErrorCode>('invalid_request', `not a ${name}`)
    return value
  })
  const [method, path] = filled.split(' ') as ['GET' | 'POST', string]
  return { method, path }
}

/** The longest URL to return to after a sign-in, in characters. */
export const MAX_RETURN_TO_LENGTH = 2048

/**
 * Whether a text has the form of a proof's slug: 16 bytes in base64url. The last character has only two bits of data, so other values are
 * rejected: one proof has one slug.
 */
export function isSlug(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z0-9_-]{21}[AQgw]$/.test(text)
}
