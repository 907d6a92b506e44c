import { isPlainObject, parseCanonicalJson, toCanonicalJson, toHex } from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { VerifierError } from '../errors.ts'

/** An IPFS block of this size needs no directory of blocks. */
export const MAX_APP_COMPOSE_BYTES = 262_144

/** What dstack's `app-compose.json` runs. */
export type AppComposeReading = {
  /** Digest of the enclave's image, 32 bytes of hex. */
  digest: string
  /** The registry and the name of the image. */
  image: string
  /** The environment variables. The step `config` covers those that matter to a signature. */
  settings: readonly { name: string; value: string }[]
  /** SHA-256 of the file without registry, digest and environment. Equal for all services of a release. */
  template: string
}

/** The variables that the enclave's launcher passes on. */
export const ENCLAVE_VARIABLES: readonly string[] = [
  'LISTEN HOST PORT QUOTE_SOURCE ROOT_SECRET ROOT_SECRET_POLICY_FILE ROOT_SECRET_FROM',
  'ROOT_SECRET_BACKUP_FILE ROOT_SECRET_NEW_BACKUP_FILE COLLATERAL_URL OIDC_ISSUERS ENTROPY_PUBLIC_KEY',
  'ENTROPY_DRAND ENTROPY_ALLOW_UNSIGNED IMPLEMENTATIONS SESSIONS LOG_ORIGINS LOG_SERVICE_ORIGINS',
  'LOG_WITNESSES LOG_QUORUM CALLER_POLICY_FILE BATCH_LIMIT SESSION_TTL_S',
].flatMap((line) => line.split(' '))

const NAME = 'countersign-enclave'
const IMAGE = new RegExp(`^ {4}image: ((?:[a-z0-9][a-z0-9._:-]*/)(?:[a-z0-9._-]+/)*${NAME})@sha256:([0-9a-f]{64})$`)
const ENVIRONMENT = '    environment:'
const VARIABLE = /^ {6}([A-Z][A-Z0-9_]*):(?: (.*))?$/s
/** A YAML string without quotes: no number, boolean, null, anchor, tag or flow. Compose would interpolate `$`. */
const PLAIN = /^(?:[A-Za-z/][\w.,:=@/+-]*(?<!:)|\d{1,3}(?:\.\d{1,3}){3})$/
const NOT_TEXT = /^(?:null|true|false|yes|no|on|off|y|n)$/i
/** Printable ASCII without `"`, `$` and the backslash. */
const QUOTED = /^"([ !#%-[\]-~]*)"$/

/**
 * Reads the image and the settings of `app-compose.json`, whose author may be malicious. The form has only two kinds of gaps: the image's
 * registry and digest, and the values of known variables. Every other byte counts towards `template`, so a second service, a command, a
 * volume, a script or a comment gives another hash than the release's.
 */
export function readAppCompose(bytes: Uint8Array): AppComposeReading {
  const value = parseCanonicalJson(bytes, { maxBytes: MAX_APP_COMPOSE_BYTES })
  const text = isPlainObject(value) ? value.docker_compose_file : undefined
  if (!isPlainObject(value) || typeof text !== 'string') throw malformed('no docker_compose_file')
  const images: Pick<AppComposeReading, 'image' | 'digest'>[] = []
  const settings = new Map<string, string>()
  const kept: string[] = []
  let isEnvironment = false
  for (const line of text.split('\n')) {
    const [, name, scalar = ''] = (isEnvironment && VARIABLE.exec(line)) || []
    if (name !== undefined) {
      if (!ENCLAVE_VARIABLES.includes(name)) throw malformed(`unknown variable ${name}`)
      if (settings.has(name)) throw malformed(`${name} given twice`)
      settings.set(name, readScalar(name, scalar))
      continue
    }
    isEnvironment = line === ENVIRONMENT
    const [, image, digest] = IMAGE.exec(line) ?? []
    if (image !== undefined && digest !== undefined) images.push({ image, digest })
    kept.push(image === undefined ? line : `    image: ${NAME}`)
  }
  const [found, ...others] = images
  if (found === undefined || others.length > 0) throw malformed(`${images.length} images by digest instead of one`)
  const template = toHex(sha256(toCanonicalJson({ ...value, docker_compose_file: kept.join('\n') })))
  return { ...found, settings: Array.from(settings, ([name, value]) => ({ name, value })), template }
}

function readScalar(name: string, scalar: string): string {
  const quoted = QUOTED.exec(scalar)?.[1]
  if (quoted !== undefined) return quoted
  if (!PLAIN.test(scalar) || NOT_TEXT.test(scalar)) throw malformed(`the value of ${name} is not a simple string`)
  return scalar
}

function malformed(details: string) {
  return new VerifierError('app_compose_rejected', 'app-compose.json differs from every release', { details })
}
