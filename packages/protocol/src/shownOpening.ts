import { approval } from './approval.ts'
import type { Opening } from './opening.ts'
import { toContentHalf } from './openingContent.ts'
import { ethereum, hex, object, type Schema } from './schema.ts'

/** An opening with both halves, as the service returns it. */
export const shownOpening = object({
  content: toContentHalf(approval),
  signature: object({ salt: hex(32), signature: ethereum(65) }),
}) as Schema as Schema<Opening>
