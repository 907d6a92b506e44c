import { useMemo } from 'react'
import type { WebConfig } from '../config.ts'
import { toGateways } from '../verification/toGateways.ts'
import type { Trust } from '../verification/trust.ts'
import type { VerificationRequest } from '../verification/verifySubject.ts'
import type { Asked } from './asked.ts'

/** One verification for each thing asked and each set of anchors. */
export function useRequest(
  asked: Asked | undefined,
  { trust, config }: { trust: Trust; config: WebConfig },
): VerificationRequest | undefined {
  return useMemo(() => {
    if (asked === undefined) return undefined
    const { subject, proof, apiBaseUrl } = asked
    return {
      subject,
      trust,
      gateways: toGateways({ ...config, apiBaseUrl, ipfsUrl: proof?.ipfsUrl ?? null }),
      isEventDue: proof === undefined || proof.status === 'complete',
      ...(proof === undefined ? {} : { statedReceipt: proof.receipt }),
    }
  }, [asked, trust, config])
}
