import { contentSchemas, type OffChainContent, offChainKinds } from './contents.ts'
import { either, ethereum, hex, type Infer, list, literal, object, optional, type Schema } from './schema.ts'
import { vaultBudget } from './vaultBudget.ts'

/** The half of an opening with the signed content. `approvals` are present if the vault's policy required some. */
// @__NO_SIDE_EFFECTS__
export function toContentHalf<Item>(approvals: Schema<Item>) {
  const shared = object({
    /** 32 random bytes. Without them, anyone could find a likely message by hashing guesses. */
    salt: hex(32),
    /** The signed digest, which is the hash of `content`. */
    digest: ethereum(32),
    approvals: optional(list(approvals)),
    /** Present if a rule of kind `spend` allowed it. */
    budget: optional(vaultBudget),
  })
  return either(
    // Hex keeps the case in which it was signed, because the commitment covers that spelling.
    ...offChainKinds.map((kind) => object({ ...shared.members, kind: literal(kind), content: contentSchemas[kind] })),
  ) as Schema as Schema<Infer<typeof shared> & OffChainContent>
}
