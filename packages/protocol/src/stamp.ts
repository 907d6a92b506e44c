import { fromHex, type Hex } from './hex.ts'
import { type Kind, kinds } from './kinds.ts'
import * as preimages from './preimages.ts'
import { checked, hex, type Infer, natural, object } from './schema.ts'
import { toPreimage } from './tags.ts'

/** A browser's signature over one request: ECDSA P-256 with SHA-256 over `toStampBytes`, r ‖ s. Both values of s are valid. */
export const stamp = object({
  /** Milliseconds since 1970. */
  issuedMs: natural,
  signature: hex(64),
})
export type Stamp = Infer<typeof stamp>

/** How old a stamp may be. It can be used again within this time: it yields the same content by the same key. */
export const MAX_STAMP_AGE_MS = 300_000
/** How far a stamp may be ahead of the enclave's time. */
export const STAMP_TOLERANCE_MS = 60_000
/** Rules of a policy. In stamps, the next number stands for no rule. */
export const MAX_RULES = 255
/** A rule by its index in the policy. */
export const ruleIndex = checked(natural, (index) => index < MAX_RULES)

export type StampedRequest = {
  /** The address that signs. */
  address: Hex
  /** The vault's policy hash, and the index of the rule that is to allow the request. Null for a wallet. */
  vault: { policy: string; rule: number | null } | null
  kind: Kind
  /** 32 bytes: the signed digest. Null for an address. */
  digest: Uint8Array | null
  issuedMs: number
}

/** What a stamp signs. */
export function toStampBytes({ address, vault, kind, digest, issuedMs }: StampedRequest): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.stamp, {
    address: fromHex(address.slice(2)),
    policyHash: vault === null ? new Uint8Array(32) : fromHex(vault.policy),
    rule: vault?.rule ?? MAX_RULES,
    kind: kinds[kind].number,
    digest: digest ?? new Uint8Array(32),
    issuedMs,
  })
}
