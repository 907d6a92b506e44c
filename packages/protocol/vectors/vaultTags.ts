import { type Tag, tags } from '../src/index.ts'

/** The tags of vaults: their vectors are a file of their own. */
export const vaultTags: readonly Tag[] = [tags.vault, tags.vaultKeyId, tags.approval]
