import type { VerifyRequest } from '@countersign/verify'
import { useMemo } from 'react'
import { toVerifyRequest } from '../anchors/toVerifyRequest.ts'
import type { Trust } from '../anchors/trust.ts'
import type { WebConfig } from '../config.ts'
import type { Asked } from './asked.ts'

/** One verification for each thing asked and each set of anchors. */
export function useRequest(
  asked: Asked | undefined,
  { trust, config }: { trust: Trust; config: WebConfig },
): VerifyRequest | undefined {
  return useMemo(() => asked && toVerifyRequest(asked, { trust, config }), [asked, trust, config])
}
