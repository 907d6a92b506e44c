import type { AttestationReceiptV1 } from '@countersign/protocol'
import { expectTypeOf } from 'vitest'
import type { z } from 'zod'
import type { receiptSchema } from './schema.ts'

/* Only for the type checker. The protocol declares the type for readers without zod, and the schema must have exactly that type. */

expectTypeOf<z.infer<typeof receiptSchema>>().toEqualTypeOf<AttestationReceiptV1>()
expectTypeOf<z.input<typeof receiptSchema>>().toEqualTypeOf<AttestationReceiptV1>()
