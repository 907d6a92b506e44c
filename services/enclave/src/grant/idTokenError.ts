import { EnclaveError } from '../errors.ts'

/** The check that an ID token failed: short, stable, and without any content of the token. */
export type IdTokenFault =
  /** The login secret that came with the token is not 32 bytes. */
  | 'login_secret'
  /** Longer than any ID token. */
  | 'size'
  /** Not a compact JWS of three canonical base64url parts around two JSON objects. */
  | 'malformed'
  /** A member name occurs twice, so two parsers could read two different tokens. */
  | 'duplicate'
  /** A header member that names a key or changes how the token is parsed. */
  | 'header'
  | 'typ'
  /** Not a listed asymmetric algorithm, or not one of the key that `kid` names. */
  | 'alg'
  /** No `kid`, or the issuer doesn't have exactly one usable key with it. */
  | 'kid'
  | 'iss'
  | 'signature'
  | 'aud'
  | 'azp'
  | 'exp'
  | 'iat'
  | 'nbf'
  | 'nonce'
  | 'sub'

/** The only rejection of an ID token. It has no cause, because parser errors quote their input. */
export function idTokenInvalid(fault: IdTokenFault): EnclaveError {
  return new EnclaveError('id_token_invalid', 'the ID token was refused', { details: fault })
}
