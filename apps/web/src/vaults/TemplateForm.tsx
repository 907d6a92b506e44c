import type { AgentKey } from '@countersign/sdk/agent'
import { useCoin, useTokens } from '../config.ts'
import { Field } from '../ui/Field.tsx'
import { Notice } from '../ui/Notice.tsx'
import { AgentFields } from './AgentFields.tsx'
import type { VaultFieldErrors, VaultFields } from './parseVaultFields.ts'
import type { TemplateName } from './template.ts'

type TemplateFormProps = {
  fields: VaultFields
  errors: VaultFieldErrors
  /** Whether the service has a log that can count a budget. */
  canCount: boolean
  keyPair: AgentKey | null
  onKeyPair: (keyPair: AgentKey) => void
  onChange: (change: Partial<VaultFields>) => void
}

export function TemplateForm({ fields, errors, canCount, onChange, ...agent }: TemplateFormProps) {
  const { template } = fields
  const coin = useCoin()
  const token = useTokens().find(({ address }) => address === fields.asset)
  const isAgent = template === 'budget'
  const text = (name: keyof VaultFields) => ({
    value: fields[name],
    error: errors[name],
    onChange: (value: string) => onChange({ [name]: value }),
  })
  const limit = (
    <Field
      id="vault-limit"
      label={`${templateWords[template].limitLabel}, in ${(isAgent ? token?.symbol : undefined) ?? coin}`}
      hint={
        template === 'list'
          ? 'Leave empty for any amount.'
          : isAgent && token === undefined
            ? 'Includes the network fees of the agent’s payments.'
            : undefined
      }
      {...text('limit')}
      inputMode="decimal"
      placeholder="0.05"
    />
  )
  return (
    <>
      <fieldset className="templates">
        <legend>Vault type</legend>
        {(Object.keys(templateWords) as TemplateName[]).map((name) => (
          <label key={name} className="template">
            <input
              type="radio"
              name="template"
              checked={template === name}
              onChange={() => onChange({ template: name, approvals: name === 'list' ? '0' : '1' })}
            />
            <span>
              <span className="fact-strong">{templateWords[name].title}</span>
              <span className="field-hint">{templateWords[name].text}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {isAgent && !canCount ? (
        <Notice tone="bad" title="This service can’t count budgets">
          <p>
            A budget is counted in a public log that at least three witnesses cosign. This service has none, or the host
            of this app hasn’t set “log” under “trust” in config.json.
          </p>
        </Notice>
      ) : null}
      {isAgent ? (
        <AgentFields text={text} {...agent}>
          {limit}
        </AgentFields>
      ) : (
        limit
      )}
      {template === 'list' || isAgent ? (
        <Field
          id="vault-recipients"
          label="Allowed recipients"
          hint={
            isAgent
              ? 'For the agent. One address per line. Leave empty for any.'
              : 'One address per line. You can’t add more later.'
          }
          {...text('recipients')}
          placeholder="0x…"
          rows={3}
          isMono
        />
      ) : null}
      {isAgent ? null : (
        <Field
          id="vault-fee"
          label={`Maximum network fee without approval, in ${coin}`}
          hint="Payments with a higher fee need approval or are rejected. If the limit is too low, funds are locked while fees are high."
          {...text('fee')}
          inputMode="decimal"
        />
      )}
      {template === 'limit' ? null : (
        <Field id="vault-approvals" label={templateWords[template].approvalsLabel} {...text('approvals')}>
          {template === 'list' ? <option value="0">no passkey</option> : null}
          <option value="1">one passkey</option>
          <option value="2">two passkeys</option>
          <option value="3">three passkeys</option>
        </Field>
      )}
    </>
  )
}

type TemplateWords = { title: string; text: string; limitLabel: string; approvalsLabel: string }

const templateWords: Readonly<Record<TemplateName, TemplateWords>> = {
  approval: {
    title: 'Approval above an amount',
    text: 'Small payments are sent immediately. Larger payments need a passkey.',
    limitLabel: 'Maximum without approval',
    approvalsLabel: 'Larger payments need',
  },
  limit: {
    title: 'Limit per payment',
    text: 'No payment can exceed the limit. There are no passkeys and no exceptions.',
    limitLabel: 'Maximum per payment',
    approvalsLabel: '',
  },
  list: {
    title: 'List of addresses',
    text: 'Payments can only go to the addresses you list now.',
    limitLabel: 'Maximum per payment',
    approvalsLabel: 'Each payment needs',
  },
  budget: {
    title: 'An agent with a budget',
    text: 'A program spends up to a limit per period with its own key. Everything else needs a passkey.',
    limitLabel: 'Limit',
    approvalsLabel: 'Everything else needs',
  },
}
