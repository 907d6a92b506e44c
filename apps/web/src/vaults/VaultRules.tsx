import { describePolicy, type Policy } from '@countersign/policy'
import { nameChain } from '@countersign/protocol'
import { toPolicyFile, type Vault } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { useConfig } from '../config.ts'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { toChainName } from '../words/format.ts'

export function VaultRules({ policy }: { policy: Policy }) {
  const { summary, rules, notes } = useMemo(() => describePolicy(policy), [policy])
  return (
    <div className="vault-rules stack">
      <p className="fact-strong">{summary}.</p>
      <h4>{rules.length === 1 ? 'Rule' : 'Rules'}</h4>
      <ol>
        {rules.map((rule) => (
          <li key={rule}>{rule}</li>
        ))}
      </ol>
      <p>Everything else is rejected.</p>
      <h4>Limits and risks</h4>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </div>
  )
}

/**
 * Lists what locks a vault's funds permanently, in addition to the policy's own notes. It's shown before there is an address, because
 * nothing can be fixed later.
 */
export function describeLocks(
  { approvers, rules, schedule }: Policy,
  page: { chainId: number; chainName: string },
): string[] {
  const locks = [
    'The vault belongs to the account you sign in with. If you lose that account, or this service drops its sign-in provider, the funds are locked permanently. A passkey can’t replace the account.',
    'The key is derived from the rules. The service stores them and pins them to IPFS. Keep the file too: if every copy is lost, the key is lost.',
    'Only this service’s enclaves can derive the key. If the service shuts down and its root secret is lost, the key is lost.',
  ]
  // Typed data can be a permit.
  if (
    !rules.some((rule) => rule.kind === 'typed-data' || (rule.kind === 'transaction' && rule.selectors !== undefined))
  )
    locks.push('Tokens sent to this vault can never leave it, because no rule allows token transfers.')
  // The rules' chains, because another app's vault can be for other chains.
  const chains = rules.flatMap<number | 'any'>((rule) => (rule.kind === 'transaction' ? rule.chainIds : []))
  if (chains.length === 0)
    locks.push('Coins sent to this vault can never leave it, because no rule allows transactions.')
  else if (!chains.includes('any')) {
    const names = [...new Set(chains)].map((id) => (id === page.chainId ? page.chainName : nameChain(Number(id))))
    locks.push(`Coins sent to this address on a chain other than ${names.join(' or ')} can never leave it.`)
  }
  const hasFreeRulesOnly = rules.every(({ approvals }) => approvals === 0)
  if (hasFreeRulesOnly) locks.push('While network fees are above the limit, nothing can leave this vault.')
  if (schedule !== undefined)
    locks.push(
      'The schedule applies to every payment. When a period is used up, moving funds to the second vault also waits for the next period.',
    )
  if (approvers.length > 0)
    locks.push('If you lose too many passkeys, payments that need approval are locked permanently.')
  return locks
}

export function Locks({ policy }: { policy: Policy }) {
  const config = useConfig()
  const { chainId } = config
  const locks = useMemo(
    () => describeLocks(policy, { chainId, chainName: toChainName(config) }),
    [policy, chainId, config],
  )
  return (
    <div className="vault-rules stack">
      <h4>What can lock funds permanently</h4>
      <ul>
        {locks.map((lock) => (
          <li key={lock}>{lock}</li>
        ))}
      </ul>
    </div>
  )
}

/** The exact bytes of the rules. Without them, the key can't be derived again. */
export function PolicyFile({ vault }: { vault: Vault }) {
  const { name, bytes } = useMemo(() => toPolicyFile(vault), [vault])
  return (
    <div className="stack">
      <p>
        Download the rules and keep the file. The key is derived from these exact bytes. If the service and IPFS lose
        them, only this file can restore the vault. It contains no secrets.
      </p>
      <div className="actions">
        <DownloadLink bytes={bytes} name={name}>
          Download rules
        </DownloadLink>
      </div>
    </div>
  )
}
