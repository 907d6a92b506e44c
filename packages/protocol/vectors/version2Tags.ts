import { type Tag, tags } from '../src/index.ts'

/** The tags of receipts of version 2, logs and webhooks. They are not in the vectors of version 1, which don't change. */
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
