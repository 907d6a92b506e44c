import type { AgentKey } from '@countersign/sdk/agent'
import type { Vault } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { useConfig } from '../config.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toAgentSettings } from './toAgentSettings.ts'

/** What the program needs to pay from the vault, with its secret key if this page created it. Shown only here. */
export function AgentSettings({ vault, keyPair }: { vault: Vault; keyPair: AgentKey | null }) {
  const { apiBaseUrl } = useConfig()
  const isOurs = vault.policy.approvers.some(({ publicKey }) => publicKey === keyPair?.publicKey)
  const key = isOurs ? keyPair?.key : undefined
  const text = toAgentSettings(vault, { apiBaseUrl, key })
  const bytes = useMemo(() => new TextEncoder().encode(`${text}\n`), [text])
  return (
    <section className="stack" aria-labelledby="agent-settings-heading">
      <h3 id="agent-settings-heading">Settings of the agent</h3>
      {key === undefined ? (
        <p>Give this text to your program, and add the secret key as “key”.</p>
      ) : (
        <Notice tone="warning" title="Save the secret key now">
          <p>
            This text contains the agent’s secret key. It isn’t stored anywhere, and this page won’t show it again.
            Anyone with it can spend the budget. You can revoke the key on the vault’s page.
          </p>
        </Notice>
      )}
      <textarea className="mono agent-settings" readOnly rows={6} value={text} aria-label="Settings of the agent" />
      <div className="actions">
        <DownloadLink bytes={bytes} name={`agent-${vault.address}.json`}>
          Download settings
        </DownloadLink>
        <CopyButton text={text} what="the settings of the agent" />
      </div>
    </section>
  )
}
