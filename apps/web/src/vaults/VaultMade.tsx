import type { Vault } from '@countersign/sdk/vaults'
import { useEffect, useRef } from 'react'
import { getAddress } from 'viem'
import { Link } from '../router.tsx'
import { Address } from '../ui/Address.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { AttestAddress } from './AttestAddress.tsx'
import { PolicyFile } from './PolicyFile.tsx'

/** The address, the file, and the offer to have the address attested. */
export function VaultMade({ vault, onAgain }: { vault: Vault; onAgain: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const address = getAddress(vault.address)
  return (
    <section className="card vault-card" aria-labelledby="made-heading">
      <h2 id="made-heading" ref={heading} tabIndex={-1}>
        The vault is made
      </h2>
      <p className="address-line">
        <Address address={address} /> <CopyButton text={address} what="the address" />
      </p>
      <PolicyFile vault={vault} />
      <AttestAddress vault={vault} />
      <div className="actions">
        <Link to={`/vaults/${vault.address}`} className="button">
          Open the vault
        </Link>
        <button type="button" className="button button-quiet" onClick={onAgain}>
          Make another
        </button>
      </div>
    </section>
  )
}
