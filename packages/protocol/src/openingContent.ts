import { messageContent } from './contents.ts'
import { either, ethereum, hex, list, literal, object, optional, type Schema } from './schema.ts'
import { typedData } from './typedData.ts'

/** What was signed. `approvals` are a vault's, where its policy asked for some. */
// @__NO_SIDE_EFFECTS__
export function toContentHalf<Item>(approvals: Schema<Item>) {
  const shared = {
    /** 32 random bytes. Without them a reader of the commitment could try every likely message. */
    salt: hex(32),
    /** The digest that `content` hashes to, and that was signed. */
    digest: ethereum(32),
    approvals: optional(list(approvals)),
  }
  return either(
    // In the spelling that was signed, of either case: the commitment is to that spelling.
    object({ ...shared, kind: literal('message'), content: messageContent }),
    object({ ...shared, kind: literal('typed-data'), content: typedData }),
  )
}
