import { X509Certificate } from 'node:crypto'
import { isZero, ServiceError, toHex } from '@countersign/protocol'
import { describeError } from '@countersign/verify'

type Bytes = Uint8Array<ArrayBuffer>

/** A heading, or a name with its value. */
export type Line = string | [name: string, value: string | number | boolean]

/** Hex, or a note that all bytes are zero. */
export function hexOrZero(bytes: Uint8Array): string {
  return isZero(bytes) ? `all zero (${bytes.length} bytes)` : toHex(bytes)
}

export function toSeconds(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z')
}

/** Several values under one name. */
export function list(name: string, values: readonly string[]): Line[] {
  return values.length === 0 ? [[name, 'none']] : values.map((value, index) => [index === 0 ? name : '', value])
}

/** The flags that are set. Always prints debug, because it makes the others meaningless. */
export function describeFlags<Flags extends Readonly<Record<string, boolean>> & { debug: boolean }>(
  flags: Flags,
  words: Readonly<Record<Exclude<keyof Flags & string, 'debug'>, string>>,
): Line[] {
  const set = Object.entries<string>(words).filter(([name]) => flags[name] === true)
  return [
    ['debug', flags.debug ? 'YES: the host can read and change it' : 'no'],
    ...list(
      'other flags',
      set.map(([, text]) => text),
    ),
  ]
}

/** Prints the rest even if one part is unreadable. */
export function describeOr(heading: string, describe: () => Line[]): Line[] {
  try {
    return describe()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [heading, ['unreadable', describeError(error).message]]
  }
}

export function describeCertificates(certificates: readonly (readonly [name: string, der: Bytes])[]): Line[] {
  return certificates.map(([name, der]): Line => {
    try {
      const { subject, validFromDate, validToDate } = new X509Certificate(der)
      const commonName = /^CN=(.*)$/m.exec(subject)?.[1] ?? 'no name'
      return [name, `${commonName}, ${toSeconds(validFromDate)} to ${toSeconds(validToDate)}`]
    } catch {
      return [name, `${der.length} bytes, not a certificate`]
    }
  })
}
