import type { Budget } from '@countersign/policy'
import type { ServiceError, TransactionSummary } from '@countersign/sdk'
import { useService } from '@countersign/sdk'
import { getBudget, type Vault } from '@countersign/sdk/vaults'
import { type CheckedBudget, checkVaultBudget } from '@countersign/verify'
import { useCallback, useEffect, useState } from 'react'
import { useConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { Notice } from '../ui/Notice.tsx'
import { readCheckedOwner } from '../wallet/checkedOwner.ts'
import { toServiceError } from '../words/explainError.ts'
import { AgentList } from './AgentList.tsx'
import { AgentPayments } from './AgentPayments.tsx'
import { describeAmount, describeLimit, toUtc } from './budgetWords.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type BudgetCardProps = {
  vault: Vault
  /** The vault's signatures that have been loaded. */
  transactions: readonly TransactionSummary[]
  /** Called after a revocation. */
  onChanged: () => void
  onSessionLost: () => void
}

/** `checked` is null if the service has no proof, because nothing has been counted. `isOwn`: its state is of this vault's key. */
type BudgetState = { checked: CheckedBudget | null; isOwn: boolean } | { error: ServiceError }

/** Budgets, agents and their payments. Shows only amounts that the vault's witnesses have cosigned. */
export function BudgetCard({ vault, transactions, onChanged, onSessionLost }: BudgetCardProps) {
  const { budgets = [] } = vault.policy
  const { state, reload } = useVaultBudget(vault, onSessionLost)
  const checked = state !== null && 'checked' in state ? state.checked : null
  const error = state !== null && 'error' in state ? state.error : null
  return (
    <section className="card" aria-labelledby="budget-heading" aria-busy={state === null}>
      <h2 id="budget-heading">{budgets.length === 1 ? 'Budget' : 'Budgets'}</h2>
      {state === null ? <p role="status">Checking what has been spent…</p> : null}
      <VaultErrorNotice error={error}>
        <Button look="small" onClick={reload}>
          Reload budget
        </Button>
      </VaultErrorNotice>
      {state === null || 'error' in state ? null : (
        <>
          <ul className="budgets">
            {budgets.map((budget, index) => (
              <BudgetBar
                key={describeLimit(budget, [])}
                id={`budget-${index}`}
                budget={budget}
                counted={checked?.budgets[index]}
              />
            ))}
          </ul>
          <BudgetNote checked={checked} isOwn={state.isOwn} />
        </>
      )}
      <AgentList
        vault={vault}
        revoked={checked?.revoked ?? []}
        onRevoked={() => {
          reload()
          onChanged()
        }}
      />
      <AgentPayments policy={vault.policy} transactions={transactions} />
    </section>
  )
}

function useVaultBudget(vault: Vault, onSessionLost: () => void) {
  const { client, user } = useService()
  const { apiBaseUrl } = useConfig()
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<BudgetState | null>(null)
  const email = user?.email ?? ''

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn reads again
  useEffect(() => {
    let isCurrent = true
    async function read(): Promise<BudgetState> {
      // Known once this browser has verified whose the address is.
      const { keyId } = readCheckedOwner({ apiBaseUrl, deposit: vault, email }) ?? {}
      const checked = checkVaultBudget(vault.policy, await getBudget(client, vault), { keyId })
      return { checked, isOwn: keyId !== undefined }
    }
    read()
      .catch((caught: unknown) => ({ error: toServiceError(caught) }))
      .then((next) => {
        if (!isCurrent) return
        if ('error' in next && next.error.status === 401) onSessionLost()
        setState(next)
      })
    return () => {
      isCurrent = false
    }
  }, [client, vault, apiBaseUrl, email, turn, onSessionLost])

  const reload = useCallback(() => setTurn((before) => before + 1), [])
  return { state, reload }
}

type BudgetBarProps = { id: string; budget: Budget; counted: CheckedBudget['budgets'][number] | undefined }

function BudgetBar({ id, budget, counted }: BudgetBarProps) {
  const { tokens = [] } = useConfig()
  const limit = BigInt(budget.limit)
  const { spent, left, endsS } = counted ?? { spent: 0n, left: limit, endsS: null }
  const percent = limit === 0n ? 100 : Number((spent * 1000n) / limit) / 10
  const amounts = `${describeAmount(spent, budget, tokens)} spent, ${describeAmount(left, budget, tokens)} left`
  return (
    <li>
      <p id={id} className="fact-strong">
        {describeLimit(budget, tokens)}
      </p>
      <meter
        className="visually-hidden"
        aria-labelledby={id}
        aria-valuetext={amounts}
        min={0}
        max={100}
        value={percent}
      />
      <div className={left === 0n ? 'budget-bar budget-spent' : 'budget-bar'} aria-hidden="true">
        <div style={{ inlineSize: `${percent}%` }} />
      </div>
      <p>{amounts}.</p>
      {endsS === null ? null : <p className="fine-print">The next period starts on {toUtc(endsS)}.</p>}
    </li>
  )
}

/** The coordinator refreshes cosignatures every minute. */
const OLD_MS = 10 * 60_000

function BudgetNote({ checked, isOwn }: { checked: CheckedBudget | null; isOwn: boolean }) {
  if (checked === null) return <p className="fine-print">According to the service, nothing has been counted yet.</p>
  const { timeS } = checked
  if (Date.now() - timeS * 1000 > OLD_MS) {
    return (
      <Notice tone="warning" title="These amounts may be old">
        <p>The witnesses cosigned them on {toUtc(timeS)}. More may have been spent since.</p>
      </Notice>
    )
  }
  return (
    <p className="fine-print">
      Your browser checked these amounts: the vault’s witnesses cosigned them on {toUtc(timeS)}. Signed payments count,
      used or not.
      {isOwn
        ? null
        : ' You rely on the service for which vault they belong to, because this browser hasn’t checked the vault’s address.'}
    </p>
  )
}
