import { contentSchemas, type OffChainContent, offChainKinds } from './contents.ts'
import { either, ethereum, hex, type Infer, list, literal, object, optional, type Schema } from './schema.ts'

/** What was signed. `approvals` are a vault's, where its policy asked for some. */
// @__NO_SIDE_EFFECTS__
export function toContentHalf<Item>(approvals: Schema<Item>) {
  const shared = object({
    /** 32 random bytes. Without them a reader of the commitment could try every likely message. */
    salt: hex(32),
    /** The digest that `content` hashes to, and that was signed. */
    digest: ethereum(32),
    approvals: optional(list(approvals)),
  })
  return either(
    // In the spelling that was signed, of either case: the commitment is to that spelling.
    ...offChainKinds.map((kind) => object({ ...shared.members, kind: literal(kind), content: contentSchemas[kind] })),
  ) as Schema as Schema<Infer<typeof shared> & OffChainContent>
}
