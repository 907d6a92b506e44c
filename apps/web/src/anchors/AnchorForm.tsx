import { type FormEvent, useId, useState } from 'react'
import { Field } from '../ui/Field.tsx'
import { Fold } from '../ui/Fold.tsx'
import { Notice } from '../ui/Notice.tsx'
import { type AnchorFaults, type AnchorField, type AnchorFields, parseAnchorForm } from './parseAnchorForm.ts'
import { TrustList } from './TrustList.tsx'
import { type Anchors, hasAnchors, type Trust } from './trust.ts'

const EMPTY: AnchorFields = {
  measurements: '',
  configHashes: '',
  platforms: '',
  coordinatorMeasurements: '',
  coordinatorConfigHashes: '',
  coordinatorTcb: '',
  coordinatorChips: '',
  entropyKeys: '',
  witnesses: '',
  quorum: '',
  address: '',
  rpcUrl: '',
  chainId: '',
}

const lists: { name: AnchorField; label: string; hint: string }[] = [
  {
    name: 'measurements',
    label: 'Code of the key enclave',
    hint: 'MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG, 48 bytes of hex each, 0 for one of zeros. A register left empty leaves the code unknown.',
  },
  { name: 'configHashes', label: 'Settings of the key enclave', hint: 'Its configuration hash, 32 bytes of hex.' },
  {
    name: 'platforms',
    label: 'Machines of the key enclave',
    hint: 'Each as fmspc:, ppid: or platformInstanceId: and its hex. Left empty, every genuine machine will do.',
  },
  {
    name: 'coordinatorMeasurements',
    label: 'Code of the coordinator',
    hint: 'MEASUREMENT:HOST_DATA, 48 and 32 bytes of hex. The measurement alone leaves the code unknown.',
  },
  {
    name: 'coordinatorConfigHashes',
    label: 'Settings of the coordinator',
    hint: 'Its configuration hash, 32 bytes of hex.',
  },
  {
    name: 'coordinatorTcb',
    label: 'Patch levels of the coordinator',
    hint: 'The least ones of its firmware, by product of AMD, such as Genoa:bl=10,snp=23,ucode=84.',
  },
  {
    name: 'coordinatorChips',
    label: 'Chips of the coordinator',
    hint: 'Their ids, 64 bytes of hex. Left empty: any, but a Milan passes only if it is listed.',
  },
  { name: 'entropyKeys', label: 'Key of the entropy source', hint: 'Ed25519, 32 bytes of hex.' },
  {
    name: 'witnesses',
    label: 'Witnesses of the log',
    hint: 'Their keys as they state them, name+id+key, or 32 bytes of hex. Left empty, those of the key enclave’s settings count alone.',
  },
]

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
  const [faults, setFaults] = useState<AnchorFaults>({})
  const [isUsed, setUsed] = useState(false)
  const prefix = useId()

  function change(name: AnchorField, value: string) {
    setFields((previous) => ({ ...previous, [name]: value }))
    setUsed(false)
  }

  function submit(event: FormEvent) {
    event.preventDefault()
    const result = parseAnchorForm(fields, operator)
    setFaults(result.faults ?? {})
    setUsed(result.trust !== undefined)
    if (result.trust !== undefined) onUse(result.trust)
    const [first] = Object.keys(result.faults ?? {})
    if (first !== undefined) document.getElementById(`${prefix}-${first}`)?.focus()
  }

  const input = (field: AnchorField, label: string, hint: string, inputMode: 'text' | 'numeric' | 'url' = 'text') => (
    <Field id={`${prefix}-${field}`} label={label} hint={hint} error={faults[field]}>
      {(control) => (
        <input
          {...control}
          type="text"
          inputMode={inputMode}
          autoComplete="off"
          spellCheck={false}
          value={fields[field]}
          onChange={({ target }) => change(field, target.value)}
        />
      )}
    </Field>
  )

  return (
    <form className="anchor-form" onSubmit={submit} noValidate>
      <p>
        Take them from a published release, or build the code and measure it. Several of a kind go on lines of their
        own. What you leave empty is not judged.
      </p>
      {lists.map(({ name, label, hint }) => (
        <Field key={name} id={`${prefix}-${name}`} label={label} hint={hint} error={faults[name]}>
          {(control) => (
            <textarea
              {...control}
              rows={2}
              spellCheck={false}
              autoComplete="off"
              value={fields[name]}
              onChange={({ target }) => change(name, target.value)}
            />
          )}
        </Field>
      ))}
      {input('quorum', 'How many of them must have cosigned', 'More than half of those that you name.', 'numeric')}
      {input('address', 'Contract with the events', 'Its address. Left empty, the chain is not asked.')}
      {input(
        'rpcUrl',
        'Node of that chain',
        operator.node === undefined
          ? 'Left empty: none is set here.'
          : `Left empty: ${operator.node.rpcUrl}, and the operator’s node decides whether there is an event.`,
        'url',
      )}
      {input(
        'chainId',
        'Number of that chain',
        `Left empty: ${operator.node?.chainId ?? 'none is set here'}.`,
        'numeric',
      )}
      <p className="actions">
        <button type="submit" className="button">
          Use these anchors
        </button>
        <span role="status">{isUsed ? 'These anchors are in use.' : ''}</span>
      </p>
    </form>
  )
}
