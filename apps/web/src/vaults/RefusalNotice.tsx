import type { ServiceError } from '@countersign/sdk'
import { Notice } from '../ui/Notice.tsx'

/** Why no rule allows a payment: what the nearest one says against it. */
export function RefusalNotice({ error }: { error: Pick<ServiceError, 'details'> }) {
  return (
    <Notice tone="danger" title="The rules of this vault refuse this" isAlert>
      {error.details === undefined ? null : <p>{error.details}</p>}
      <p>No passkey and no operator can allow it. Nothing was signed. All rules are under “Rules of this vault”.</p>
    </Notice>
  )
}
