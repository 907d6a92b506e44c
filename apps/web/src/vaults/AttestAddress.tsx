import { useService } from '@countersign/sdk'
import { attestVault, type Vault } from '@countersign/sdk/vaults'
import { useState } from 'react'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { useAction } from '../ui/useAction.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

/** Has the enclave state, in public, that this address is that of these rules. */
export function AttestAddress({ vault }: { vault: Vault }) {
  const { client } = useService()
  const [slug, setSlug] = useState<string | null>(null)
  const { run, isRunning, failure } = useAction()
  const ask = () => run(async () => setSlug((await attestVault(client, vault)).attestationSlug))

  return (
    <div className="stack">
      <p>
        Before the first coin, have the enclave state that this address belongs to these rules: until then you have the
        service’s word for it. The proof is public, like that of a payment.
      </p>
      <VaultErrorNotice error={failure} />
      <div className="actions">
        {slug === null ? (
          <Button look="quiet" onClick={ask} isBusy={isRunning}>
            {isRunning ? 'Asking the enclave …' : 'Attest the address'}
          </Button>
        ) : (
          <Link to={`/proof/${slug}`} className="button button-quiet">
            See the proof of the address
          </Link>
        )}
      </div>
      <p role="status">
        {slug === null ? '' : 'The proof must be verified, and be of this address and of these rules: compare both.'}
      </p>
    </div>
  )
}
