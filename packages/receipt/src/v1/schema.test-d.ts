import type { AttestationReceiptV1 } from '@countersign/protocol'
import { expectTypeOf } from 'vitest'
import type { z } from 'zod'
import type { receiptSchema } from './schema.ts'

/* Read by the type checker alone. The type stands in the protocol, for readers without zod; the schema must be of exactly that type. */

expectTypeOf<z.infer<typeof receiptSchema>>().toEqualTypeOf<AttestationReceiptV1>()
expectTypeOf<z.input<typeof receiptSchema>>().toEqualTypeOf<AttestationReceiptV1>()
