import './vaults.css'
import { describePolicy } from '@countersign/policy'
import type { WalletInfo } from '@countersign/sdk'
import { type UseVaultsReturnType, useVaults, type Vault } from '@countersign/sdk/vaults'
import { useEffect, useMemo } from 'react'
import { Link } from '../router.tsx'
import { SignedInPage } from '../wallet/SignedInPage.tsx'
import { useBalance } from '../wallet/useBalance.ts'
import { toShortAddress, toShortEther } from '../words/format.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'
import { readVaultNotes } from './vaultNotes.ts'

/** `/vaults`: what a vault is, and those that the user has. */
export function VaultsPage() {
  return <SignedInPage title="Vaults">{(signedIn) => <VaultsCard {...signedIn} />}</SignedInPage>
}

function VaultsCard({ onSessionLost }: { wallet: WalletInfo; onSessionLost: () => void }) {
  const { vaults, error, refresh } = useOwnVaults({ onSessionLost })
  return (
    <section className="card vault-card" aria-labelledby="vaults-heading" aria-busy={vaults === null}>
      <h2 id="vaults-heading">Your vaults</h2>
      <p>
        A vault is a wallet with rules that nobody can change: not you, not the operator, not a thief. Its key is made
        from them, inside the enclave, and other rules are another address.
      </p>
      {error === null ? null : (
        <VaultErrorNotice error={error}>
          <button type="button" className="button button-small" onClick={refresh}>
            Read the vaults again
          </button>
        </VaultErrorNotice>
      )}
      {vaults === null ? (
        error === null ? (
          <VaultsSkeleton />
        ) : null
      ) : vaults.length === 0 ? (
        <p className="empty">You have no vault yet.</p>
      ) : (
        <ul className="vault-list">
          {vaults.map((vault) => (
            <VaultRow key={vault.address} vault={vault} />
          ))}
        </ul>
      )}
      <div className="actions">
        <Link to="/vaults/new" className="button">
          Make a vault
        </Link>
      </div>
    </section>
  )
}

function VaultRow({ vault: { address, policy } }: { vault: Vault }) {
  const { wei, isLoading } = useBalance(address)
  const { name } = readVaultNotes(address)
  const { summary } = useMemo(() => describePolicy(policy), [policy])
  return (
    <li>
      <Link to={`/vaults/${address}`} className="vault-row">
        <span className="vault-row-head">
          <span>
            {name === '' ? null : `${name} `}
            <span className="mono">{toShortAddress(address)}</span>
          </span>
          <span>{wei === null ? (isLoading ? 'Reading …' : 'Not known') : `${toShortEther(wei)} ETH`}</span>
        </span>
        <span className="fine-print">{summary}.</span>
      </Link>
    </li>
  )
}

function VaultsSkeleton() {
  return (
    <div role="status">
      <span className="visually-hidden">Reading your vaults</span>
      <div className="skeleton skeleton-row" />
      <div className="skeleton skeleton-row" />
    </div>
  )
}

/** The vaults of the user; who is no longer signed in is sent to the sign-in, and where somebody else is, the page becomes theirs. */
export function useOwnVaults({ onSessionLost }: { onSessionLost: () => void }): UseVaultsReturnType {
  const vaults = useVaults()
  const isLost = vaults.error?.status === 401 || vaults.error?.code === 'wallet_changed'
  useEffect(() => {
    if (isLost) onSessionLost()
  }, [isLost, onSessionLost])
  return vaults
}
