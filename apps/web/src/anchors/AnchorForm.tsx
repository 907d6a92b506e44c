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

/** Selects the trust anchors: the operator's or the visitor's. */
export function AnchorForm({ anchors }: { anchors: Anchors }) {
  const { operator, source } = anchors
  const [isOwn, setOwn] = useState(source === 'visitor')
  const name = useId()

  function selectOperator() {
    setOwn(false)
    anchors.selectOperator()
  }

  return (
    <Fold
      title="Trust anchors"
      note={source === 'operator' ? 'The operator’s anchors' : 'Your anchors'}
      isOpen={operator.fault !== undefined}
    >
      <p>
        Attested hardware can run any program. Trust anchors say which code, settings, entropy source and contract you
        accept. Get them from a source other than the receipt.
      </p>
      {operator.fault === undefined ? null : (
        <Notice tone="warning" title="The operator’s anchors are invalid">
          <p>None of them are used. {operator.fault}</p>
        </Notice>
      )}
      <fieldset className="anchor-choice">
        <legend>Anchors</legend>
        <label>
          <input type="radio" name={name} checked={!isOwn} onChange={selectOperator} />
          <span>
            The operator’s, from this site’s <code>config.json</code>
            {hasAnchors(operator.trust) ? '' : ' (none set)'}
          </span>
        </label>
        <label>
          <input type="radio" name={name} checked={isOwn} onChange={() => setOwn(true)} />
          <span>My own</span>
        </label>
      </fieldset>
      {isOwn ? (
        <OwnAnchors operator={operator.trust} onUse={anchors.selectOwn} />
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
        Copy them from a published release, or build the code and measure it yourself. Enter one value per line. If a
        field is empty, its check is skipped.
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

function TrustList({ trust }: { trust: Trust }) {
  return (
    <>
      <p>
        <strong>The operator chose these anchors.</strong> They show whether the service runs what its operator claims,
        not whether that code is safe.
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
  /** Lists optional members only if the manifest has them. */
  const optional = (title: string, values: readonly string[] | undefined): Entry[] =>
    values === undefined ? [] : [[title, values]]
  return [
    ['Key enclave code', enclave.measurements.map(nameRegisters)],
    ...optional('Key enclave runtime events', events.length === 0 ? undefined : events),
    ['Key enclave settings', enclave.configHashes],
    ...optional('Minimum TCB evaluation data number', evaluation === undefined ? undefined : [String(evaluation)]),
    ...optional('Key enclave machines', enclave.platforms?.map(toPlatformText)),
    ['Coordinator code', coordinator.measurements],
    ['Coordinator settings', coordinator.configHashes],
    ...optional('Coordinator minimum TCB', minimumTcb.length === 0 ? undefined : minimumTcb),
    ...optional('Coordinator chips', coordinator.chips),
    ['Entropy source keys', entropyKeys],
    ...optional(`Log witnesses (${log?.quorum} must cosign)`, log?.witnesses),
    ['TCB statuses accepted besides UpToDate', trust.tcbStatuses],
    ['Contract', contract === undefined ? [] : [`${contract.address} on chain ${contract.chainId}`]],
    ...optional('Logs whose checkpoints on the chain count', listLogs(trust.manifest)),
    ...optional('Maximum time from signing to publication', delay === undefined ? undefined : [`${delay} seconds`]),
    ['Simulated evidence', [trust.allowMock ? 'accepted, marked MOCK' : 'rejected, marked MOCK']],
  ]
}

function listLogs({ logContracts }: Trust['manifest']): string[] | undefined {
  return logContracts?.flatMap(({ chainId, address, logs }) =>
    logs.map(
      ({ id, upTo }) => `${id}${upTo === undefined ? '' : ` up to ${upTo} entries`} in ${address} on chain ${chainId}`,
    ),
  )
}

/** Only MRTD is required, so every register is shown with its name. */
function nameRegisters(measurement: object): string {
  return Object.entries(measurement)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

function AnchorValues({ title, values }: { title: string; values: readonly string[] }) {
  return (
    <div>
      <dt>{title}</dt>
      {values.length === 0 ? <dd>none (check skipped)</dd> : values.map((value) => <dd key={value}>{value}</dd>)}
    </div>
  )
}
