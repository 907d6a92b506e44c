import { describePolicy, type Policy } from '@countersign/policy'
import { nameChain } from '@countersign/protocol'
import { toPolicyFile, type Vault } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { useConfig } from '../config.ts'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { toChainName } from '../words/format.ts'

/** What a vault allows, in words. */
export function RulesInWords({ policy }: { policy: Policy }) {
  const { summary, rules, notes } = useMemo(() => describePolicy(policy), [policy])
  return (
    <div className="vault-rules stack">
      <p className="fact-strong">{summary}.</p>
      <h4>{rules.length === 1 ? 'The rule' : 'The rules'}</h4>
      <ol>
        {rules.map((rule) => (
          <li key={rule}>{rule}</li>
        ))}
      </ol>
      <p>Whatever no rule allows is refused.</p>
      <h4>What that means</h4>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </div>
  )
}

/**
 * What locks the funds of a vault for ever, beside what the policy's own notes say: said before there is an address, because
 * nothing can be mended afterwards.
 */
export function describeLocks(
  { approvers, rules, schedule }: Policy,
  page: { chainId: number; chainName: string },
): string[] {
  const locks = [
    'The key belongs to the account that you sign in with. If you lose that account, or this service no longer takes its provider, nothing can ever leave this vault: no passkey takes its place.',
    'The rules themselves are a part of the key. The service keeps them and pins them to IPFS; keep the file too. If nobody has them any more, nobody has the key.',
    'The key is derived inside the enclaves of this service. If the service ends and its root secret is lost, so is every key of it.',
  ]
  // Typed data can be a permit.
  if (
    !rules.some((rule) => rule.kind === 'typed-data' || (rule.kind === 'transaction' && rule.selectors !== undefined))
  )
    locks.push('Tokens that are sent to this vault can never leave it: no rule is for tokens.')
  // Not of the page: a vault that another app has made can be for other chains.
  const chains = rules.flatMap<number | 'any'>((rule) => (rule.kind === 'transaction' ? rule.chainIds : []))
  if (chains.length === 0)
    locks.push('Coins that are sent to this vault can never leave it: no rule is for transactions.')
  else if (!chains.includes('any')) {
    const names = [...new Set(chains)].map((id) => (id === page.chainId ? page.chainName : nameChain(Number(id))))
    locks.push(`Coins that are sent to its address on any other chain than ${names.join(' or ')} can never leave it.`)
  }
  const hasFreeRulesOnly = rules.every(({ approvals }) => approvals === 0)
  if (hasFreeRulesOnly)
    locks.push('If the network fee of a payment stays above its limit, nothing can leave until it falls again.')
  if (schedule !== undefined)
    locks.push(
      'The schedule holds for whatever leaves: when a period is used up, the move to the second vault waits for the next one too.',
    )
  if (approvers.length > 0)
    locks.push('If too few of its passkeys are left, what needs an approval can never be approved again.')
  return locks
}

/** `describeLocks`, as a list. */
export function Locks({ policy }: { policy: Policy }) {
  const config = useConfig()
  const { chainId } = config
  const locks = useMemo(
    () => describeLocks(policy, { chainId, chainName: toChainName(config) }),
    [policy, chainId, config],
  )
  return (
    <div className="vault-rules stack">
      <h4>What locks the funds for ever</h4>
      <ul>
        {locks.map((lock) => (
          <li key={lock}>{lock}</li>
        ))}
      </ul>
    </div>
  )
}

/** The rules as a file, to the byte: without them nobody can make the key again. */
export function PolicyFile({ vault }: { vault: Vault }) {
  const { name, bytes } = useMemo(() => toPolicyFile(vault), [vault])
  return (
    <div className="stack">
      <p>
        Keep the rules as a file. The key is made from these very bytes: if the service and IPFS lost them, only the
        file could bring the vault back. It holds no secret.
      </p>
      <div className="actions">
        <DownloadLink bytes={bytes} name={name}>
          Save the rules
        </DownloadLink>
      </div>
    </div>
  )
}
