import { type Tag, tags } from '../src/index.ts'

/** The tags in the vectors of version 1, in the file's order. The order of `tags` depends on what loads the module. */
export const version1Tags: readonly Tag[] = [
  tags.login,
  tags.tdxReport,
  tags.enclaveAttest,
  tags.snpReport,
  tags.release,
  tags.healthNonce,
  tags.caller,
  tags.grant,
  tags.keyTransfer,
  tags.rootBackup,
  tags.rootShare,
  tags.rootShareHash,
  tags.rootCommitment,
  tags.rootRecovery,
  tags.rootSubmission,
  tags.entropy,
  tags.signing,
  tags.wallet,
  tags.keyId,
]
