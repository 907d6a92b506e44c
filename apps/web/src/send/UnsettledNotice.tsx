import type { SignResult } from '@countersign/sdk'
import { Notice } from '../ui/Notice.tsx'
import { TransactionHash } from './SendResult.tsx'

/** Until somebody has looked: the next payment could be a second one. */
export function UnsettledNotice({ signed, onLooked }: { signed: SignResult; onLooked: () => void }) {
  return (
    <Notice tone="warning" title="A payment that was signed before may still go through">
      <p>A new payment would be a second one. Look for the earlier transaction first.</p>
      <TransactionHash txHash={signed.txHash} />
      <div className="actions">
        <button type="button" className="button button-small" onClick={onLooked}>
          I have looked
        </button>
      </div>
    </Notice>
  )
}
