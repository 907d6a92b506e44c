import { fromHex, isEd25519Key, isHex, readMembers } from '@countersign/protocol/core'
import { p256 } from '@noble/curves/nist.js'
import type { Approver } from './policy.ts'
import { assertList, malformed } from './policyFields.ts'

/** RFC 1035 §2.3.4. */
const MAX_DOMAIN_LENGTH = 253
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Narrows to an approver whose assertions a browser can create. A typing error here would lock funds permanently. */
export function assertApprover(path: string, value: unknown): asserts value is Approver {
  const fail = (details: string) => malformed(`${path}: ${details}`)
  const type = (value as { type?: unknown } | null)?.type
  if (type === 'key') {
    const { publicKey } = readMembers(value, { required: ['type', 'publicKey'] }, fail)
    if (!isHex(publicKey, 32) || !isEd25519Key(fromHex(publicKey))) throw fail('publicKey is not an Ed25519 key in hex')
    return
  }
  if (type !== 'passkey') throw fail('type is unknown')
  const names = { required: ['type', 'publicKey', 'rpId', 'origins'] } as const
  const { publicKey, rpId, origins } = readMembers(value, names, fail)
  if (!isP256Key(publicKey)) throw malformed(`${path}.publicKey is not an uncompressed P-256 point`)
  if (!isDomain(rpId)) throw malformed(`${path}.rpId is not a domain in lower case`)
  assertList(`${path}.origins`, origins, (one, origin) => assertOrigin(one, origin, rpId))
}

/** SEC 1 §2.3.3: 04, then both coordinates of a point of the curve. */
function isP256Key(value: unknown): value is string {
  return isHex(value, 65) && value.startsWith('04') && p256.utils.isValidPublicKey(fromHex(value), false)
}

/**
 * WebAuthn §5.1.2: a relying party has an ASCII domain as its id, never an IP address. Browsers read a host as IPv4 if its last label is a
 * decimal or hex number (WHATWG URL, "ends in a number checker").
 */
function isDomain(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_DOMAIN_LENGTH) return false
  const labels = value.split('.')
  return labels.every((label) => LABEL.test(label)) && !/^(?:\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '')
}

/**
 * The canonical form of an origin in client data (RFC 6454 §6.2): scheme, host, and any port other than the scheme's default. WebAuthn
 * requires
 * https, except on this machine.
 */
function assertOrigin(path: string, value: unknown, rpId: string): asserts value is string {
  const [, scheme, host, port] =
    /^(https?):\/\/([a-z0-9.-]+)(?::([1-9]\d{0,4}))?$/.exec(typeof value === 'string' ? value : '') ?? []
  if (host === undefined || !isDomain(host)) throw malformed(`${path} is not an origin`)
  const isLocal = host === 'localhost' || host.endsWith('.localhost')
  if (scheme === 'http' && !isLocal) throw malformed(`${path} is not https`)
  const isPort = port === undefined || (Number(port) <= 65_535 && port !== (scheme === 'https' ? '443' : '80'))
  if (!isPort) throw malformed(`${path} has an invalid port`)
  if (host !== rpId && !host.endsWith(`.${rpId}`)) throw malformed(`${path} is not in the domain of rpId`)
}
