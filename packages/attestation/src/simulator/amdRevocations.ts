import { encodeCrl } from '../x509/encodeCertificate.ts'
import { type AmdPki, amdName, amdSerials } from './amdPki.ts'

/** One thing each that is wrong with an otherwise genuine revocation list. */
export type SimulatedRevocationFaults = {
  expired?: boolean
  notYetValid?: boolean
  noNextUpdate?: boolean
  /** Signed by a key that is not the root's, under the root's name. */
  wrongSigner?: boolean
  /** The list of another product, under its name and by its root's key. */
  otherProduct?: boolean
}

export type SimulatedRevocationOptions = {
  /** What it lists; nothing by default. */
  revoked?: readonly (keyof typeof amdSerials)[]
  faults?: SimulatedRevocationFaults
}

const DAY_MS = 86_400_000

/** AMD's revocation list (57230), issued a day ago for a month. */
export function createRevocations(
  { pki, at }: { pki: AmdPki; at: Date },
  { revoked = [], faults = {} }: SimulatedRevocationOptions = {},
): Uint8Array {
  const offsetDays = faults.expired ? -60 : faults.notYetValid ? 2 : -1
  const thisUpdate = at.getTime() + offsetDays * DAY_MS
  const key = faults.wrongSigner || faults.otherProduct ? pki.foreignKey() : pki.arkKey()
  return encodeCrl(
    {
      issuer: amdName(faults.otherProduct ? 'ARK-Genoa' : 'ARK-Milan'),
      thisUpdate: new Date(thisUpdate),
      nextUpdate: faults.noNextUpdate ? undefined : new Date(thisUpdate + 30 * DAY_MS),
      revoked: revoked.map((name) => amdSerials[name]),
    },
    key,
  )
}
