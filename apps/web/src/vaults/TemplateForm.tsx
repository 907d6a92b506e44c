import type { Vault } from '@countersign/sdk/vaults'
import { useCoin } from '../config.ts'
import { Link } from '../router.tsx'
import { Field, type FieldProps } from '../ui/Field.tsx'
import { Notice } from '../ui/Notice.tsx'
import { toShortAddress } from '../words/format.ts'
import type { VaultFieldErrors, VaultFields } from './parseVaultFields.ts'
import type { TemplateName } from './template.ts'
import { readVaultNotes } from './vaultNotes.ts'

type TemplateFormProps = {
  fields: VaultFields
  errors: VaultFieldErrors
  /** Vaults without a schedule, as destinations for an agent's funds. Null until loaded. */
  refuges: readonly Vault[] | null
  /** Whether there is a time source. */
  canSchedule: boolean
  onChange: (change: Partial<VaultFields>) => void
}

export function TemplateForm({ fields, errors, refuges, canSchedule, onChange }: TemplateFormProps) {
  const { template } = fields
  const coin = useCoin()
  const text = (name: keyof VaultFields) => ({
    value: fields[name],
    error: errors[name],
    onChange: (value: string) => onChange({ [name]: value }),
  })
  const isListed = template === 'list' || template === 'agent'
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
      {template === 'agent' && !canSchedule ? (
        <Notice tone="bad" title="No time source configured">
          <p>Schedules need one. The host of this app must set “entropyKeys” under “trust” in config.json.</p>
        </Notice>
      ) : null}
      <Field
        id="vault-limit"
        label={`${templateWords[template].limitLabel}, in ${coin}`}
        hint={template === 'list' ? 'Leave empty for any amount.' : undefined}
        {...text('limit')}
        inputMode="decimal"
        placeholder="0.05"
      />
      {isListed ? (
        <Field
          id="vault-recipients"
          label="Allowed recipients"
          hint={
            template === 'agent'
              ? 'One address per line. Leave empty for any.'
              : 'One address per line. You can’t add more later.'
          }
          {...text('recipients')}
          placeholder="0x…"
          rows={3}
          isMono
        />
      ) : null}
      {template === 'agent' ? (
        <>
          <div className="vault-rate">
            <Field id="vault-count" label="Payments" {...text('count')} inputMode="numeric" placeholder="10" />
            <Field id="vault-every" label="Period" {...text('everyS')}>
              <option value="3600">per hour</option>
              <option value="86400">per day</option>
              <option value="604800">per week</option>
            </Field>
          </div>
          <Refuge refuges={refuges} text={text('refuge')} />
        </>
      ) : null}
      <Field
        id="vault-fee"
        label={`Maximum network fee without approval, in ${coin}`}
        hint="Payments with a higher fee need approval or are rejected. If the limit is too low, funds are locked while fees are high."
        {...text('fee')}
        inputMode="decimal"
      />
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

type RefugeProps = Pick<TemplateFormProps, 'refuges'> & { text: Pick<FieldProps, 'value' | 'onChange' | 'error'> }

/** Included in the recipients, because none can be added later. */
function Refuge({ refuges, text }: RefugeProps) {
  if (refuges === null) return <p role="status">Loading your vaults…</p>
  if (refuges.length === 0) {
    return (
      <Notice tone="warning" title="Create a second vault first">
        <p>
          An agent’s vault needs a second vault, so that you can move everything there if you stop the agent. You don’t
          have one without a schedule yet. Create one with “{templateWords.approval.title}” and come back.
        </p>
        {text.error === undefined ? null : <p className="field-error">{text.error}</p>}
        <p>
          <Link to="/vaults">Your vaults</Link>
        </p>
      </Notice>
    )
  }
  return (
    <Field
      id="vault-refuge"
      label="Second vault"
      hint="To stop the agent, a passkey moves everything there at the next scheduled payment. Choose a vault that you created yourself and whose address is attested."
      {...text}
    >
      <option value="">Choose a vault</option>
      {refuges.map(({ address }) => (
        <option key={address} value={address}>
          {readVaultNotes(address).name} {toShortAddress(address)}
        </option>
      ))}
    </Field>
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
  agent: {
    title: 'Agent with a schedule',
    text: 'A program makes a limited number of payments per period. A passkey can move everything to a second vault.',
    limitLabel: 'Maximum per payment',
    approvalsLabel: 'Moving everything to the second vault needs',
  },
}
