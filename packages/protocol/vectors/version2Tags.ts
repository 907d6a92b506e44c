import { type Tag, tags } from '../src/index.ts'

/** The tags that came with receipts of version 2, with logs and with webhooks: the file of version 1 stays as it is. */
export const version2Tags: readonly Tag[] = [
  tags.signingV2,
  tags.subject,
  tags.snpReportV2,
  tags.releaseV2,
  tags.openingContent,
  tags.openingSignature,
  tags.opening,
  tags.log,
  tags.witnessStatement,
  tags.webhookKey,
]
