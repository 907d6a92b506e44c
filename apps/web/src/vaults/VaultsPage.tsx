import { describePolicy } from '@countersign/policy'
import type { WalletInfo } from '@countersign/sdk'
import { type UseVaultsReturnType, useVaults, type Vault } from '@countersign/sdk/vaults'
import { useEffect, useMemo } from 'react'
import { useCoin } from '../config.ts'
import { Link } from '../router.tsx'
import { ListCard } from '../ui/ListCard.tsx'
import { SignedInPage } from '../wallet/SignedInPage.tsx'
import { useBalance } from '../wallet/useBalance.ts'
import { toShortAddress, toShortAmount } from '../words/format.ts'
import { explainVaultError } from './VaultErrorNotice.tsx'
import { readVaultNotes } from './vaultNotes.ts'

export function VaultsPage() {
  return <SignedInPage title="Vaults">{(signedIn) => <VaultsCard {...signedIn} />}</SignedInPage>
}

function VaultsCard({ onSessionLost }: { wallet: WalletInfo; onSessionLost: () => void }) {
  const { vaults, error, refresh } = useOwnVaults({ onSessionLost })
  return (
    <ListCard
      id="vaults-heading"
      title="Your vaults"
      className="card card-narrow"
      listClassName="vault-list"
      isLoading={vaults === null}
      loading={vaults === null && error === null ? 'Loading your vaults…' : undefined}
      error={error}
      explain={explainVaultError(error)}
      retry={{ label: 'Reload vaults', onRetry: refresh }}
      empty={vaults?.length === 0 ? 'No vaults yet.' : undefined}
      intro={
        <p>
          A vault is a wallet with rules that can’t be changed by you, the operator or an attacker. The enclave derives
          its key from the rules, so different rules give a different address.
        </p>
      }
      items={(vaults ?? []).map((vault) => <VaultRow key={vault.address} vault={vault} />)}
    >
      <div className="actions">
        <Link to="/vaults/new" className="button">
          Create vault
        </Link>
      </div>
    </ListCard>
  )
}

function VaultRow({ vault: { address, policy } }: { vault: Vault }) {
  const { wei, isLoading } = useBalance(address)
  const coin = useCoin()
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
          <span>{wei === null ? (isLoading ? 'Loading…' : 'Unavailable') : `${toShortAmount(wei, 18)} ${coin}`}</span>
        </span>
        <span className="fine-print">{summary}.</span>
      </Link>
    </li>
  )
}

/** The user's vaults. Shows the sign-in if the session has ended, or reloads if a different user is signed in. */
export function useOwnVaults({ onSessionLost }: { onSessionLost: () => void }): UseVaultsReturnType {
  const vaults = useVaults()
  const isLost = vaults.error?.status === 401 || vaults.error?.code === 'wallet_changed'
  useEffect(() => {
    if (isLost) onSessionLost()
  }, [isLost, onSessionLost])
  return vaults
}
