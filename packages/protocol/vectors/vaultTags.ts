import { type Tag, tags } from '../src/index.ts'

/** The tags of vaults, whose vectors are in a separate file. */
export const vaultTags: readonly Tag[] = [tags.vault, tags.vaultKeyId, tags.approval, tags.agentApproval]
