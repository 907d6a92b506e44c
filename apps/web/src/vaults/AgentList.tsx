import { useService } from '@countersign/sdk'
import { approveRevocation, revokeKey, type Vault } from '@countersign/sdk/vaults'
import { useState } from 'react'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { Step } from '../ui/Step.tsx'
import { useAction } from '../ui/useAction.ts'
import { toShortHex } from '../words/format.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type AgentListProps = {
  vault: Vault
  /** The public keys that the log shows as revoked. */
  revoked: readonly string[]
  onRevoked: () => void
}

/** The agents of a vault, with a button to revoke each. */
export function AgentList({ vault, revoked, onRevoked }: AgentListProps) {
  const [asked, setAsked] = useState<string | null>(null)
  /** The proofs of the revocations on this page, by key. */
  const [proofs, setProofs] = useState<Readonly<Record<string, string>>>({})
  const agents = vault.policy.approvers.filter(({ type }) => type === 'key').map(({ publicKey }) => publicKey)
  return (
    <section className="stack" aria-labelledby="agents-heading">
      <h3 id="agents-heading">{agents.length === 1 ? 'Agent' : 'Agents'}</h3>
      <ul className="agents">
        {agents.map((key) => (
          <li key={key}>
            <span className="mono" title={key}>
              {toShortHex(key)}
            </span>
            {revoked.includes(key) || proofs[key] !== undefined ? (
              <span className="badge badge-bad">Revoked</span>
            ) : (
              <Button look="small" onClick={() => setAsked(key)} aria-expanded={asked === key}>
                Revoke<span className="visually-hidden"> agent {toShortHex(key)}</span>
              </Button>
            )}
          </li>
        ))}
      </ul>
      <p role="status">
        {Object.entries(proofs).map(([key, slug]) => (
          <span key={key}>
            Agent {toShortHex(key)} is revoked. The vault’s witnesses have cosigned it.{' '}
            <Link to={`/proof/${slug}`}>View proof</Link>
          </span>
        ))}
      </p>
      {asked === null ? null : (
        <Revocation
          key={asked}
          vault={vault}
          agent={asked}
          onCancel={() => setAsked(null)}
          onRevoked={(slug) => {
            setProofs((before) => ({ ...before, [asked]: slug }))
            setAsked(null)
            onRevoked()
          }}
        />
      )}
    </section>
  )
}

type RevocationProps = { vault: Vault; agent: string; onCancel: () => void; onRevoked: (slug: string) => void }

function Revocation({ vault, agent, onCancel, onRevoked }: RevocationProps) {
  const { client } = useService()
  const { run, isRunning, failure } = useAction()
  const revoke = (withPasskey: boolean) =>
    run(async () => {
      const approvals = withPasskey ? [await approveRevocation(vault, agent)] : undefined
      onRevoked((await revokeKey(client, vault, agent, approvals)).attestationSlug)
    })
  return (
    <Step id="revocation-heading" title={`Revoke agent ${toShortHex(agent)}?`} className="stack" level={3}>
      <p>
        The vault will never accept this key again, and you can’t undo it. Payments that it has already signed can still
        be used.
      </p>
      <VaultErrorNotice error={failure} />
      {failure === null ? null : <p>The agent may not be revoked yet. Try again.</p>}
      <div className="actions">
        <Button onClick={() => revoke(false)} isBusy={isRunning}>
          {isRunning ? 'Revoking…' : 'Revoke agent'}
        </Button>
        <Button look="quiet" onClick={() => revoke(true)} isBusy={isRunning}>
          Revoke with passkey
        </Button>
        <Button look="quiet" onClick={onCancel} isBusy={isRunning}>
          Cancel
        </Button>
      </div>
    </Step>
  )
}
