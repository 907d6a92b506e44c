import type { Policy } from '@countersign/policy'
import { type ProofPayload, type ServiceError, type TransactionSummary, useService } from '@countersign/sdk'
import { useEffect, useState } from 'react'
import { useConfig } from '../config.ts'
import { describeSigned } from '../history/describeSigned.ts'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { toServiceError } from '../words/explainError.ts'
import { toAgo, toShortHex } from '../words/format.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type AgentPaymentsProps = { policy: Policy; transactions: readonly TransactionSummary[] }

type AgentPayment = { transaction: TransactionSummary; agents: readonly string[] }

/** The vault's loaded signatures that needed no session. Their proofs are read when this opens, because the list doesn't say who approved. */
export function AgentPayments({ policy, transactions }: AgentPaymentsProps) {
  const { client } = useService()
  const config = useConfig()
  const [isOpen, setIsOpen] = useState(false)
  const [payments, setPayments] = useState<readonly AgentPayment[] | null>(null)
  const [error, setError] = useState<ServiceError | null>(null)
  const [turn, setTurn] = useState(0)

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn reads again
  useEffect(() => {
    if (!isOpen) return
    const controller = new AbortController()
    const { signal } = controller
    async function read() {
      const published = transactions.filter(({ kind, status }) => isPayment(kind) && status !== 'pending_pin')
      const proofs = await Promise.all(published.map(({ slug }) => client.api.getProof(slug, { signal })))
      return published.flatMap((transaction, index) => {
        const agents = findAgents(policy, proofs[index]?.receipt ?? null)
        return agents === undefined ? [] : [{ transaction, agents }]
      })
    }
    setError(null)
    read().then(
      (found) => !signal.aborted && setPayments(found),
      (caught: unknown) => !signal.aborted && setError(toServiceError(caught)),
    )
    return () => controller.abort()
  }, [client, policy, transactions, isOpen, turn])

  return (
    <details className="provenance" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>Payments by agents</summary>
      <VaultErrorNotice error={error}>
        <Button look="small" onClick={() => setTurn((before) => before + 1)}>
          Reload payments
        </Button>
      </VaultErrorNotice>
      {payments === null && error === null ? <p role="status">Loading payments…</p> : null}
      {payments?.length === 0 ? <p>No payments by agents in the loaded history.</p> : null}
      <ul className="agents">
        {payments?.map(({ transaction, agents }) => {
          const { what, amount } = describeSigned(transaction, {
            from: transaction.walletAddress ?? '0x',
            page: config,
          })
          return (
            <li key={transaction.slug}>
              <span>
                {transaction.kind === 'off-chain' ? 'Signed payment, amount private' : `${what} ${amount ?? ''}`}
                <span className="fine-print">
                  {toAgo(transaction.createdAt, Date.now())}, by {agents.map(toShortHex).join(' and ')}
                </span>
              </span>
              <Link to={`/proof/${transaction.slug}`}>View proof</Link>
            </li>
          )
        })}
      </ul>
    </details>
  )
}

const isPayment = (kind: TransactionSummary['kind']) => kind === undefined || kind === 'off-chain'

/**
 * The keys that may have approved: of a transaction those whose approvals the receipt has, otherwise those that the rule lists. Undefined if
 * a session was needed.
 */
function findAgents({ approvers, rules }: Policy, receipt: ProofPayload['receipt']): readonly string[] | undefined {
  if (receipt === null || !('kind' in receipt) || receipt.signer.statement.session !== 'none') return undefined
  const { rule } = receipt.signer.statement
  const listed = rule === null ? undefined : rules[rule]?.approvers
  const given = receipt.approvals?.map(({ approver }) => approver) ?? listed ?? []
  return given === 'any' ? [] : given.flatMap((index) => approvers[index]?.publicKey ?? [])
}
