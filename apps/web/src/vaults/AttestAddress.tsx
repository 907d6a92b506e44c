import { useService } from '@countersign/sdk'
import { type AttestAddressResult, attestVault, type Vault } from '@countersign/sdk/vaults'
import { describeOwner } from '@countersign/verify'
import { useMemo, useState } from 'react'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { useAction } from '../ui/useAction.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

/** Lets the enclave attest publicly that the address belongs to the rules, and privately whose it is. */
export function AttestAddress({ vault }: { vault: Vault }) {
  const { client } = useService()
  const [attested, setAttested] = useState<AttestAddressResult | null>(null)
  const { run, isRunning, failure } = useAction()
  const ask = () => run(async () => setAttested(await attestVault(client, vault)))

  return (
    <div className="stack">
      <p>
        Before you send funds, let the enclave attest that this address belongs to these rules. Until then, you rely on
        the service for that. The proof is public, like that of a payment.
      </p>
      <VaultErrorNotice error={failure} />
      <div className="actions">
        {attested === null ? (
          <Button look="quiet" onClick={ask} isBusy={isRunning}>
            {isRunning ? 'Attesting…' : 'Attest address'}
          </Button>
        ) : (
          <Link to={`/proof/${attested.attestationSlug}`} className="button button-quiet">
            View proof of the address
          </Link>
        )}
      </div>
      <p role="status">
        {attested === null
          ? ''
          : 'Address attested. Check that the proof is verified and shows this address and these rules. Open it with the file below: it must name you as the owner.'}
      </p>
      {attested === null ? null : <OwnerFile vault={vault} owner={attested.owner} />}
    </div>
  )
}

/** The public proof has only a commitment to the owner. */
function OwnerFile({ vault, owner }: { vault: Vault } & Pick<AttestAddressResult, 'owner'>) {
  const bytes = useMemo(() => new TextEncoder().encode(`${JSON.stringify(owner)}\n`), [owner])
  return (
    <>
      <p>
        According to the service, {describeOwner(vault.address, owner.identity)} If that isn’t you, don’t send anything
        to it. The public proof doesn’t name the owner. To show someone that the address is yours, give them this file.
      </p>
      <div className="actions">
        <DownloadLink bytes={bytes} name={`owner-${vault.address}.json`}>
          Save the owner’s opening
        </DownloadLink>
      </div>
    </>
  )
}
