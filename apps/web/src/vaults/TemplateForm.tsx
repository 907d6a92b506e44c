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
  /** Where an agent's funds can be moved to: vaults without a schedule. Null until they were read. */
  refuges: readonly Vault[] | null
  /** Whether there is something that tells the time. */
  canSchedule: boolean
  onChange: (change: Partial<VaultFields>) => void
}

/** Which template, and what it leaves open. */
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
        <legend>What kind of vault?</legend>
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
        <Notice tone="bad" title="A schedule needs a clock that this page does not know">
          <p>
            The host of this app must name the key of the satellite, as “entropyKeys” of “trust” in its config.json.
          </p>
        </Notice>
      ) : null}
      <Field
        id="vault-limit"
        label={`${templateWords[template].limitLabel}, in ${coin}`}
        hint={template === 'list' ? 'Left empty, any amount.' : undefined}
        {...text('limit')}
        inputMode="decimal"
        placeholder="0.05"
      />
      {isListed ? (
        <Field
          id="vault-recipients"
          label="Addresses that can be paid"
          hint={template === 'agent' ? 'One on a line. Left empty, any.' : 'One on a line. None can be added later.'}
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
            <Field id="vault-every" label="How often" {...text('everyS')}>
              <option value="3600">each hour</option>
              <option value="86400">each day</option>
              <option value="604800">each week</option>
            </Field>
          </div>
          <Refuge refuges={refuges} text={text('refuge')} />
        </>
      ) : null}
      <Field
        id="vault-fee"
        label={`Highest network fee of a payment without approval, in ${coin}`}
        hint="Above it nothing is signed without approval. Too low a limit locks the funds while fees are high."
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

/** Among the recipients from the beginning, because none can be added later. */
function Refuge({ refuges, text }: RefugeProps) {
  if (refuges === null) return <p role="status">Reading your vaults …</p>
  if (refuges.length === 0) {
    return (
      <Notice tone="warning" title="First make a second vault">
        <p>
          An agent’s vault names another one that everything can be moved to, if the agent must be stopped. You have
          none without a schedule yet: make one with “{templateWords.approval.title}” and come back.
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
      label="Second vault, as a refuge"
      hint="If the agent must be stopped, a passkey moves everything there, when the schedule allows the next payment. Choose one that you made yourself, and whose address is attested."
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

/** The templates as people choose among them. */
const templateWords: Readonly<Record<TemplateName, TemplateWords>> = {
  approval: {
    title: 'Approval above an amount',
    text: 'Small payments go at once. Whatever is more, to whomever, needs a passkey.',
    limitLabel: 'Without approval up to',
    approvalsLabel: 'More than that needs',
  },
  limit: {
    title: 'A limit for each payment',
    text: 'No payment is ever above the limit. There is no passkey, and no way around it.',
    limitLabel: 'Each payment at most',
    approvalsLabel: '',
  },
  list: {
    title: 'Only to a list of addresses',
    text: 'Payments go to the addresses that you name now, and to no other, ever.',
    limitLabel: 'Each payment at most',
    approvalsLabel: 'Each payment needs',
  },
  agent: {
    title: 'An agent with a schedule',
    text: 'A program pays by itself, so many times in each period. A passkey can move all to a second vault.',
    limitLabel: 'Each payment at most',
    approvalsLabel: 'To move everything to the second vault needs',
  },
}
