import { useService } from '@countersign/sdk'
import { attestVault, type Vault } from '@countersign/sdk/vaults'
import { useState } from 'react'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { useAction } from '../ui/useAction.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

/** Lets the enclave attest publicly that the address belongs to the rules. */
export function AttestAddress({ vault }: { vault: Vault }) {
  const { client } = useService()
  const [slug, setSlug] = useState<string | null>(null)
  const { run, isRunning, failure } = useAction()
  const ask = () => run(async () => setSlug((await attestVault(client, vault)).attestationSlug))

  return (
    <div className="stack">
      <p>
        Before you send funds, let the enclave attest that this address belongs to these rules. Until then, you rely on
        the service for that. The proof is public, like that of a payment.
      </p>
      <VaultErrorNotice error={failure} />
      <div className="actions">
        {slug === null ? (
          <Button look="quiet" onClick={ask} isBusy={isRunning}>
            {isRunning ? 'Attesting…' : 'Attest address'}
          </Button>
        ) : (
          <Link to={`/proof/${slug}`} className="button button-quiet">
            View proof of the address
          </Link>
        )}
      </div>
      <p role="status">
        {slug === null
          ? ''
          : 'Address attested. Check that the proof is verified and shows this address and these rules.'}
      </p>
    </div>
  )
}
