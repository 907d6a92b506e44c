import { toPlatformText } from '@countersign/verify'
import { type FormEvent, useId, useState } from 'react'
import { Button } from '../ui/Button.tsx'
import { Field } from '../ui/Field.tsx'
import { Fold } from '../ui/Fold.tsx'
import { Notice } from '../ui/Notice.tsx'
import { useFieldErrors } from '../ui/useFieldErrors.ts'
import { type AnchorField, type AnchorFields, anchorEntries, parseAnchorForm } from './parseAnchorForm.ts'
import { type Anchors, findContract, hasAnchors, type Trust } from './trust.ts'

const EMPTY = Object.fromEntries(anchorEntries.map(([name]) => [name, ''])) as AnchorFields

/** Whose word on code, settings and contract counts: the operator's, or the visitor's. */
export function AnchorForm({ anchors }: { anchors: Anchors }) {
  const { operator, source } = anchors
  const [isOwn, setOwn] = useState(source === 'visitor')
  const name = useId()

  function takeOperators() {
    setOwn(false)
    anchors.chooseOperators()
  }

  return (
    <Fold
      title="What it is held against"
      note={source === 'operator' ? 'The operator’s anchors' : 'Your anchors'}
      isOpen={operator.fault !== undefined}
    >
      <p>
        Hardware runs anyone’s program. Anchors say which program, settings, entropy source and contract are the right
        ones. They must come from someone other than the receipt.
      </p>
      {operator.fault === undefined ? null : (
        <Notice tone="warning" title="The operator’s anchors cannot be read">
          <p>Nothing of theirs is used. {operator.fault}</p>
        </Notice>
      )}
      <fieldset className="anchor-choice">
        <legend>Anchors</legend>
        <label>
          <input type="radio" name={name} checked={!isOwn} onChange={takeOperators} />
          <span>
            The operator’s, from this site’s <code>config.json</code>
            {hasAnchors(operator.trust) ? '' : ' (there are none)'}
          </span>
        </label>
        <label>
          <input type="radio" name={name} checked={isOwn} onChange={() => setOwn(true)} />
          <span>My own</span>
        </label>
      </fieldset>
      {isOwn ? (
        <OwnAnchors operator={operator.trust} onUse={anchors.chooseOwn} />
      ) : (
        <TrustList trust={operator.trust} />
      )}
    </Fold>
  )
}

function OwnAnchors({ operator, onUse }: { operator: Trust; onUse: (trust: Trust) => void }) {
  const [fields, setFields] = useState(EMPTY)
  const { errors: faults, form, showErrors } = useFieldErrors<AnchorField>()
  const [isUsed, setUsed] = useState(false)
  const prefix = useId()

  function change(name: AnchorField, value: string) {
    setFields((previous) => ({ ...previous, [name]: value }))
    setUsed(false)
  }

  function submit(event: FormEvent) {
    event.preventDefault()
    const result = parseAnchorForm(fields, operator)
    showErrors(result.faults ?? {})
    setUsed(result.trust !== undefined)
    if (result.trust !== undefined) onUse(result.trust)
  }

  return (
    <form ref={form} className="stack" onSubmit={submit} noValidate>
      <p>
        Take them from a published release, or build the code and measure it. Several of a kind go on lines of their
        own. What you leave empty is not judged.
      </p>
      {anchorEntries.map(([name, { label, hint, inputMode }]) => (
        <Field
          key={name}
          id={`${prefix}-${name}`}
          label={label}
          hint={hint(operator.node)}
          error={faults[name]}
          value={fields[name]}
          inputMode={inputMode}
          rows={inputMode === undefined ? 2 : undefined}
          isMono
          onChange={(value) => change(name, value)}
        />
      ))}
      <p className="actions">
        <Button type="submit">Use these anchors</Button>
        <span role="status">{isUsed ? 'These anchors are in use.' : ''}</span>
      </p>
    </form>
  )
}

/** The operator's anchors, for those who look. */
function TrustList({ trust }: { trust: Trust }) {
  return (
    <>
      <p>
        <strong>These are the operator’s own words.</strong> A verdict against them shows that the operator keeps to
        what they say, not that it is good.
      </p>
      <details className="fine-print">
        <summary>Show the operator’s anchors</summary>
        <dl className="anchor-list">
          {toEntries(trust).map(([title, values]) => (
            <AnchorValues key={title} title={title} values={values} />
          ))}
        </dl>
      </details>
    </>
  )
}

type Entry = [title: string, values: readonly string[]]

function toEntries(trust: Trust): Entry[] {
  const { enclave, coordinator, entropyKeys, log, maximumEventDelayS: delay } = trust.manifest
  const contract = findContract(trust)
  const events = Object.entries(enclave.events ?? {}).map(([name, payloads]) => `${name}: ${payloads.join(' or ')}`)
  const { minimumTcbEvaluationDataNumber: evaluation } = enclave
  const minimumTcb = Object.entries(coordinator.minimumTcb ?? {}).map(
    ([product, parts]) =>
      `${product}: ${
        Object.entries(parts)
          .map(([part, level]) => `${part} ${level}`)
          .join(', ') || 'any'
      }`,
  )
  /** What need not be in a manifest is listed only where it is. */
  const optional = (title: string, values: readonly string[] | undefined): Entry[] =>
    values === undefined ? [] : [[title, values]]
  return [
    ['Code of the key enclave', enclave.measurements.map(nameRegisters)],
    ...optional('Run-time events of the key enclave', events.length === 0 ? undefined : events),
    ['Settings of the key enclave', enclave.configHashes],
    ...optional('Oldest evaluation by Intel', evaluation === undefined ? undefined : [String(evaluation)]),
    ...optional('Machines of the key enclave', enclave.platforms?.map(toPlatformText)),
    ['Code of the coordinator', coordinator.measurements],
    ['Settings of the coordinator', coordinator.configHashes],
    ...optional('Patch levels of the coordinator', minimumTcb.length === 0 ? undefined : minimumTcb),
    ...optional('Chips of the coordinator', coordinator.chips),
    ['Entropy source', entropyKeys],
    ...optional(`Witnesses of the log, ${log?.quorum} of which must cosign`, log?.witnesses),
    ['Accepted beside UpToDate', trust.tcbStatuses],
    ['Contract', contract === undefined ? [] : [`${contract.address} on chain ${contract.chainId}`]],
    ...optional('Longest time from signing to event', delay === undefined ? undefined : [`${delay} seconds`]),
    ['Simulated evidence', [trust.allowMock ? 'is accepted, as MOCK' : 'is shown as MOCK, and not accepted']],
  ]
}

/** A manifest may leave out any register but MRTD, so that each is named. */
function nameRegisters(measurement: object): string {
  return Object.entries(measurement)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

function AnchorValues({ title, values }: { title: string; values: readonly string[] }) {
  return (
    <div>
      <dt>{title}</dt>
      {values.length === 0 ? <dd>none: not judged</dd> : values.map((value) => <dd key={value}>{value}</dd>)}
    </div>
  )
}
