import type { ServiceError } from '@countersign/sdk'
import { Notice } from '../ui/Notice.tsx'

/** Why no rule allows a payment: what the nearest one says against it. */
export function RefusalNotice({ error }: { error: Pick<ServiceError, 'details'> }) {
  return (
    <Notice tone="danger" title="The rules of this vault refuse this" isAlert>
      {error.details === undefined ? null : <p>{error.details}</p>}
      <p>Nobody can allow more than the rules say. Nothing was signed. All of them are under “Rules of this vault”.</p>
    </Notice>
  )
}
