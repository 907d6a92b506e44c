import { ServiceError } from '@countersign/protocol'
import { ATTESTATION_V2, encodeReceiptCar } from '@countersign/receipt'
import type { Outcome } from '@countersign/verify'
import { useMemo } from 'react'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { Fold } from '../ui/Fold.tsx'

/** Offers the verified bytes as downloads. */
export function EvidenceDownloads({ outcome }: { outcome: Outcome }) {
  const { bytes, cid, collateral, receipt, view } = outcome
  const car = useMemo(() => (receipt?.version === ATTESTATION_V2 ? toCar(outcome) : undefined), [outcome, receipt])
  if (receipt === undefined) return null
  return (
    <Fold title="Download the evidence">
      <p>
        With {car === undefined ? 'these two files' : 'this file'}, you can repeat the checks offline at any time. Only
        the signing time needs the chain.
      </p>
      <p className="actions">
        {car === undefined ? (
          <DownloadLink bytes={bytes} name={`${cid}.json`}>
            Download the receipt
          </DownloadLink>
        ) : (
          <DownloadLink bytes={car} name={`${cid}.car`} type="application/vnd.ipld.car">
            Download the receipt with its blocks
          </DownloadLink>
        )}
        {car !== undefined || collateral === undefined || view === undefined ? null : (
          <DownloadLink bytes={collateral.bytes} name={`${view.signer.collateral}.json`}>
            Download the collateral
          </DownloadLink>
        )}
      </p>
    </Fold>
  )
}

/** Packs all blocks into one file. Returns undefined for a receipt with repeated or oversized blocks, so that its verdict still appears. */
export function toCar({
  bytes,
  blocks,
  collateral,
}: Pick<Outcome, 'bytes' | 'blocks' | 'collateral'>): Uint8Array<ArrayBuffer> | undefined {
  try {
    return encodeReceiptCar({ bytes, blocks, ...(collateral && { collateral: collateral.bytes }) })
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
