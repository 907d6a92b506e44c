import { type AgentKey, createAgentKey } from '@countersign/sdk/agent'
import type { ReactNode } from 'react'
import { useCoin, useTokens } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { Field, type FieldProps } from '../ui/Field.tsx'
import { useAction } from '../ui/useAction.ts'
import type { VaultFields } from './parseVaultFields.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type AgentFieldsProps = {
  text: (name: keyof VaultFields) => Pick<FieldProps, 'value' | 'error' | 'onChange'>
  /** The key that this page created, if any. */
  keyPair: AgentKey | null
  onKeyPair: (keyPair: AgentKey) => void
  /** The limit. */
  children: ReactNode
}

/** What the agent spends, and its key. */
export function AgentFields({ text, keyPair, onKeyPair, children }: AgentFieldsProps) {
  const coin = useCoin()
  const tokens = useTokens()
  const { run, isRunning, failure } = useAction()
  const key = text('agentKey')
  const isOurs = keyPair !== null && key.value === keyPair.publicKey
  const create = () => run(async () => onKeyPair(await createAgentKey()))
  return (
    <>
      <div className="vault-rate">
        <Field id="vault-asset" label="Asset" {...text('asset')}>
          <option value="">{coin}</option>
          {tokens.map(({ address, symbol, name }) => (
            <option key={address} value={address}>
              {symbol} ({name})
            </option>
          ))}
        </Field>
        <Field id="vault-period" label="Period" {...text('periodS')}>
          <option value="3600">each hour</option>
          <option value="86400">each day, in UTC</option>
          <option value="604800">each week, from Thursday in UTC</option>
          <option value="0">in total</option>
        </Field>
      </div>
      {children}
      <Field
        id="vault-agent-key"
        label="Agent’s public key"
        hint={
          isOurs
            ? 'Created in this browser. The page shows its secret once, after the vault is created.'
            : 'An Ed25519 key. Create it here, or enter the public key of your program.'
        }
        {...key}
        isMono
      />
      <VaultErrorNotice error={failure} />
      {isOurs ? null : (
        <div className="actions">
          <Button look="quiet" onClick={create} isBusy={isRunning}>
            Create agent key
          </Button>
        </div>
      )}
    </>
  )
}
