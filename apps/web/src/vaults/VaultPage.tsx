import { assertPolicy, describePolicy } from '@countersign/policy'
import { type Hex, ServiceError, type TransactionSummary, type WalletInfo } from '@countersign/sdk'
import type { Vault } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { HistoryCard } from '../history/HistoryCard.tsx'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { createLazyPart } from '../ui/createLazyPart.tsx'
import { Notice } from '../ui/Notice.tsx'
import { AccountCard } from '../wallet/AccountCard.tsx'
import { SignedInPage, WalletSkeleton } from '../wallet/SignedInPage.tsx'
import { useAccount } from '../wallet/useAccount.ts'
import type { Balance } from '../wallet/useBalance.ts'
import { toServiceError } from '../words/explainError.ts'
import { toDateTime } from '../words/format.ts'
import { AttestAddress } from './AttestAddress.tsx'
import { PayCard } from './PayCard.tsx'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'
import { Locks, PolicyFile, VaultRules } from './VaultRules.tsx'
import { useOwnVaults } from './VaultsPage.tsx'
import { isMadeHere, readVaultNotes } from './vaultNotes.ts'

/** Includes the part of the verifier that checks budgets. */
const BudgetCard = createLazyPart(
  () => import('./BudgetCard.tsx').then((module) => module.BudgetCard),
  <div className="card skeleton skeleton-block" />,
)

export function VaultPage({ address }: { address: Hex }) {
  const { name } = readVaultNotes(address)
  return (
    <SignedInPage title={name === '' ? 'Vault' : name}>
      {(signedIn) => <FoundVault {...signedIn} address={address} />}
    </SignedInPage>
  )
}

const NONE: readonly TransactionSummary[] = []

type SignedIn = { wallet: WalletInfo; onSessionLost: () => void }

function FoundVault({ address, ...signedIn }: SignedIn & { address: Hex }) {
  const { vaults, error, refresh } = useOwnVaults(signedIn)
  const vault = vaults?.find((one) => one.address === address)
  const fault = useMemo(() => (vault === undefined ? null : findFault(vault)), [vault])
  if (vault !== undefined && fault === null) return <OpenVault {...signedIn} vault={vault} />
  const failure = fault ?? error
  if (failure !== null) {
    return (
      <VaultErrorNotice error={failure}>
        <Button look="small" onClick={refresh}>
          Reload vaults
        </Button>
      </VaultErrorNotice>
    )
  }
  if (vaults === null) return <WalletSkeleton label="Loading your vaults…" />
  return (
    <Notice tone="warning" title="Vault not found">
      <p>It may belong to another account. You only see the vaults of the account you’re signed in with.</p>
      <p>
        <Link to="/vaults">Your vaults</Link>
      </p>
    </Notice>
  )
}

/** The list checks only the format of the rules. This page checks them like the enclave. */
function findFault({ policy }: Vault): ServiceError | null {
  try {
    assertPolicy(policy)
    return null
  } catch (cause) {
    const { details } = toServiceError(cause)
    return new ServiceError('response_invalid', 'invalid vault rules', { details, cause })
  }
}

function OpenVault({ vault, wallet, onSessionLost }: SignedIn & { vault: Vault }) {
  const { address } = vault
  const account = useAccount({ address, wallet: wallet.address, onSessionLost })
  const { balance, history, incoming, onChanged, onFunded } = account
  const { known } = history
  const own = useMemo(
    () => known && { ...known, transactions: known.transactions.filter((one) => one.walletAddress === address) },
    [known, address],
  )
  return (
    <div className="wallet-grid">
      <div className="area-account">
        <VaultCard vault={vault} balance={balance} onFunded={onFunded} />
        {vault.policy.budgets === undefined ? null : (
          <BudgetCard
            vault={vault}
            transactions={own?.transactions ?? NONE}
            onChanged={onChanged}
            onSessionLost={onSessionLost}
          />
        )}
      </div>
      <div className="area-send">
        <PayCard vault={vault} onChanged={onChanged} onSessionLost={onSessionLost} />
      </div>
      <div className="area-history">
        <HistoryCard address={address} history={{ ...history, known: own }} incoming={incoming} />
      </div>
    </div>
  )
}

function VaultCard({ vault, balance, onFunded }: { vault: Vault; balance: Balance; onFunded: () => void }) {
  const { address, policy, createdAt } = vault
  return (
    <AccountCard deposit={vault} balance={balance} onFunded={onFunded} title="Vault address">
      {isMadeHere(address) ? null : (
        <p className="fine-print">
          This vault wasn’t created in this browser. Before you send anything to it, compare the address with your own
          record. Anyone who had access to your session could have created a vault with the same description and their
          own passkeys.
        </p>
      )}
      <p>{describePolicy(policy).summary}.</p>
      <details className="provenance">
        <summary>Vault rules</summary>
        <VaultRules policy={policy} />
        <Locks policy={policy} />
      </details>
      <details className="provenance">
        <summary>Download rules and attest address</summary>
        <p>Created on {toDateTime(createdAt)}.</p>
        <PolicyFile vault={vault} />
        <AttestAddress vault={vault} />
      </details>
    </AccountCard>
  )
}
