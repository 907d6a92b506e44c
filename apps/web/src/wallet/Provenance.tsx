import type { WalletInfo } from '@countersign/sdk'
import { CopyButton } from '../ui/CopyButton.tsx'
import { toDateTime } from '../words/format.ts'

/** The witness of the wallet's making. */
export function Provenance({ wallet }: { wallet: WalletInfo }) {
  const { createdAt, provenance } = wallet
  return (
    <details className="provenance">
      <summary>How this wallet was made</summary>
      <p>
        When it was made, a satellite’s signed random sample was recorded as a witness. It never changes. The key does
        not come from it and has never left the enclave.
      </p>
      <dl className="facts">
        <dt>Made</dt>
        <dd>{toDateTime(createdAt)}</dd>
        <dt>Source</dt>
        <dd>{provenance.satelliteSource}</dd>
        <dt>Sample’s hash</dt>
        <dd>
          <span className="mono">{provenance.entropyHash}</span>{' '}
          <CopyButton text={provenance.entropyHash} what="the hash of the sample" />
        </dd>
        <dt>Its signature</dt>
        <dd>
          <span className="mono">{provenance.entropySig}</span>{' '}
          <CopyButton text={provenance.entropySig} what="the signature of the sample" />
        </dd>
      </dl>
    </details>
  )
}
