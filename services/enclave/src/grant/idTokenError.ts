import { EnclaveError } from '../errors.ts'

/** Which check an ID token failed: short, stable, and never anything out of the token itself. */
export type IdTokenFault =
  /** The login secret that came with the token is not 32 bytes. */
  | 'login_secret'
  /** Longer than any ID token. */
  | 'size'
  /** Not a compact JWS of three canonical base64url parts around two JSON objects. */
  | 'malformed'
  /** A member name occurs twice: two readers could see two tokens. */
  | 'duplicate'
  /** A header member that names a key, or changes how the token is to be read. */
  | 'header'
  | 'typ'
  /** Not an asymmetric algorithm of the list, or not one of the key that `kid` names. */
  | 'alg'
  /** No `kid`, or not exactly one usable key of the issuer has it. */
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

/** The one refusal of an ID token. It has no cause on purpose: the errors of parsers quote what they were given. */
export function idTokenInvalid(fault: IdTokenFault): EnclaveError {
  return new EnclaveError('id_token_invalid', 'the ID token was refused', { details: fault })
}
