import type { Vault } from '@countersign/sdk/vaults'
import { useCoin } from '../config.ts'
import { Link } from '../router.tsx'
import { Field } from '../ui/Field.tsx'
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

const PERIODS = [
  ['3600', 'each hour'],
  ['86400', 'each day'],
  ['604800', 'each week'],
] as const

/** Which template, and what it leaves open. */
export function TemplateForm({ fields, errors, refuges, canSchedule, onChange }: TemplateFormProps) {
  const { template } = fields
  const coin = useCoin()
  const text = (name: keyof VaultFields) => ({
    value: fields[name],
    onChange: (event: { target: { value: string } }) => onChange({ [name]: event.target.value }),
    autoComplete: 'off',
    spellCheck: false,
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
        <Notice tone="danger" title="A schedule needs a clock that this page does not know">
          <p>
            The host of this app must name the key of the satellite, as “entropyKeys” of “trust” in its config.json.
          </p>
        </Notice>
      ) : null}
      <Field
        id="vault-limit"
        label={`${templateWords[template].limitLabel}, in ${coin}`}
        hint={template === 'list' ? 'Left empty, any amount.' : undefined}
        error={errors.limit}
      >
        {(control) => <input {...control} {...text('limit')} inputMode="decimal" placeholder="0.05" />}
      </Field>
      {isListed ? (
        <Field
          id="vault-recipients"
          label="Addresses that can be paid"
          hint={template === 'agent' ? 'One on a line. Left empty, any.' : 'One on a line. None can be added later.'}
          error={errors.recipients}
        >
          {(control) => <textarea {...control} {...text('recipients')} className="mono" rows={3} placeholder="0x…" />}
        </Field>
      ) : null}
      {template === 'agent' ? (
        <>
          <div className="vault-rate">
            <Field id="vault-count" label="Payments" error={errors.count}>
              {(control) => <input {...control} {...text('count')} inputMode="numeric" placeholder="10" />}
            </Field>
            <Field id="vault-every" label="How often">
              {(control) => (
                <select {...control} {...text('everyS')}>
                  {PERIODS.map(([value, label]) => (
                    <option key={value} value={value}>
                      {label}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          </div>
          <Refuge {...{ refuges, errors }} input={text('refuge')} />
        </>
      ) : null}
      <Field
        id="vault-fee"
        label={`Highest network fee of a payment without approval, in ${coin}`}
        hint="Above it nothing is signed without approval. Too low a limit locks the funds while fees are high."
        error={errors.fee}
      >
        {(control) => <input {...control} {...text('fee')} inputMode="decimal" />}
      </Field>
      {template === 'limit' ? null : (
        <Field id="vault-approvals" label={toApprovalsLabel(template)}>
          {(control) => (
            <select {...control} {...text('approvals')}>
              {template === 'list' ? <option value="0">no passkey</option> : null}
              <option value="1">one passkey</option>
              <option value="2">two passkeys</option>
              <option value="3">three passkeys</option>
            </select>
          )}
        </Field>
      )}
    </>
  )
}

function toApprovalsLabel(template: TemplateName): string {
  if (template === 'approval') return 'More than that needs'
  return template === 'list' ? 'Each payment needs' : 'To move everything to the second vault needs'
}

type RefugeProps = Pick<TemplateFormProps, 'refuges' | 'errors'> & { input: object }

/** Among the recipients from the beginning, because none can be added later. */
function Refuge({ refuges, errors, input }: RefugeProps) {
  if (refuges === null) return <p role="status">Reading your vaults …</p>
  if (refuges.length === 0) {
    return (
      <Notice tone="warning" title="First make a second vault">
        <p>
          An agent’s vault names another one that everything can be moved to, if the agent must be stopped. You have
          none without a schedule yet: make one with “{templateWords.approval.title}” and come back.
        </p>
        {errors.refuge === undefined ? null : <p className="field-error">{errors.refuge}</p>}
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
      error={errors.refuge}
    >
      {(control) => (
        <select {...control} {...input}>
          <option value="">Choose a vault</option>
          {refuges.map(({ address }) => (
            <option key={address} value={address}>
              {readVaultNotes(address).name} {toShortAddress(address)}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

type TemplateWords = { title: string; text: string; limitLabel: string }

/** The templates as people choose among them. */
const templateWords: Readonly<Record<TemplateName, TemplateWords>> = {
  approval: {
    title: 'Approval above an amount',
    text: 'Small payments go at once. Whatever is more, to whomever, needs a passkey.',
    limitLabel: 'Without approval up to',
  },
  limit: {
    title: 'A limit for each payment',
    text: 'No payment is ever above the limit. There is no passkey, and no way around it.',
    limitLabel: 'Each payment at most',
  },
  list: {
    title: 'Only to a list of addresses',
    text: 'Payments go to the addresses that you name now, and to no other, ever.',
    limitLabel: 'Each payment at most',
  },
  agent: {
    title: 'An agent with a schedule',
    text: 'A program pays by itself, so many times in each period. A passkey can move all to a second vault.',
    limitLabel: 'Each payment at most',
  },
}
