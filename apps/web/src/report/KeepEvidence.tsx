import { ATTESTATION_V2 } from '@countersign/receipt'
import type { Outcome } from '@countersign/verify'
import { useMemo } from 'react'
import { DownloadLink } from './DownloadLink.tsx'
import { Fold } from './Fold.tsx'
import { toCar } from './toCar.ts'

/** The bytes that were judged, for later. */
export function KeepEvidence({ outcome }: { outcome: Outcome }) {
  const { bytes, cid, collateral, receipt, view } = outcome
  const car = useMemo(() => (receipt?.version === ATTESTATION_V2 ? toCar(outcome) : undefined), [outcome, receipt])
  if (receipt === undefined) return null
  return (
    <Fold title="Keep the evidence">
      <p>
        With {car === undefined ? 'these two files' : 'this file'}, to the byte, everything can be checked offline at
        any later time, but for when the signature was made: for that, ask the chain.
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
