import { type Tag, tags } from '../src/index.ts'

/** The tags of sign-in, stamps and owners: their vectors are in a separate file. */
export const sessionTags: readonly Tag[] = [tags.loginV2, tags.stamp, tags.session, tags.owner, tags.ownerSalt]
