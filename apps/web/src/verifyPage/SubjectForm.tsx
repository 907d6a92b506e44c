import { chooseReceipt, type NamedSubject, recogniseSubject, VerifierError } from '@countersign/verify'
import { type DragEvent, type FormEvent, useState } from 'react'
import type { WebConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { Field } from '../ui/Field.tsx'
import { Notice } from '../ui/Notice.tsx'
import { fetchBytes } from '../worker/pageFetch.ts'
import { findSubject, type Lookup, readFiles } from './useLookup.ts'

type SubjectFormProps = Pick<Lookup, 'fault' | 'isLoading' | 'lookUp' | 'reset'> & { config: WebConfig }

/** Takes files or pasted text. */
export function SubjectForm({ config, fault, isLoading, lookUp, reset }: SubjectFormProps) {
  const [text, setText] = useState('')
  const [pasteFault, setPasteFault] = useState<string | undefined>(undefined)
  const [isOver, setOver] = useState(false)
  const [chosen, setChosen] = useState<readonly string[]>([])

  function lookUpFiles(files: readonly File[]) {
    setChosen(files.map(({ name }) => name))
    setText('')
    setPasteFault(undefined)
    void lookUp(async () => ({ ...chooseReceipt(await readFiles(files)), apiBaseUrl: config.apiBaseUrl }))
  }

  function submit(event: FormEvent) {
    event.preventDefault()
    // Chosen files are already verified, so their verdict stays.
    if (text.trim() === '' && chosen.length > 0) return
    const pasted = parsePasted(text)
    if (pasted.kind === 'unknown') {
      reset()
      setChosen([])
      setPasteFault(pasted.reason)
      document.getElementById('subject')?.focus()
      return
    }
    setChosen([])
    setPasteFault(undefined)
    void lookUp(() => findSubject({ fetchBytes }, config, pasted))
  }

  function drop(event: DragEvent) {
    event.preventDefault()
    setOver(false)
    const files = [...event.dataTransfer.files]
    if (files.length > 0) lookUpFiles(files)
  }

  return (
    <section aria-label="Receipt to verify" className="card subject-form">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: dropping is an extra; the file input inside does the same from the keyboard */}
      <div
        className={isOver ? 'drop-zone drop-zone-over stack' : 'drop-zone stack'}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <label htmlFor="receipt-files">Receipt file (and collateral file, if you have it) or CAR file</label>
        <input
          id="receipt-files"
          type="file"
          multiple
          accept=".json,.car,application/json,application/vnd.ipld.car"
          aria-describedby="receipt-files-hint"
          onClick={({ currentTarget }) => {
            // Lets the visitor choose the same file again.
            currentTarget.value = ''
          }}
          onChange={({ target }) => {
            const files = [...(target.files ?? [])]
            if (files.length > 0) lookUpFiles(files)
          }}
        />
        <p id="receipt-files-hint" className="field-hint">
          {chosen.length === 0
            ? 'Drop or choose files. Missing collateral is downloaded by its CID.'
            : `Chosen: ${chosen.join(', ')}`}
        </p>
      </div>
      <form className="stack" onSubmit={submit} noValidate>
        <Field
          id="subject"
          label="Or paste a proof link or slug, a CID or IPFS link, or a transaction hash"
          error={pasteFault}
          hint="https://…/proof/…, 22 characters, bafkrei…, ipfs://…, https://…/ipfs/…, or 0x and 64 hex digits"
          value={text}
          isMono
          onChange={setText}
        />
        <p className="actions">
          <Button type="submit">Verify</Button>
          <span role="status">{isLoading ? 'Loading the receipt…' : ''}</span>
        </p>
      </form>
      {fault === undefined ? null : (
        <Notice tone="bad" title={fault.title} isAlert>
          <p>{fault.text}</p>
        </Notice>
      )}
    </section>
  )
}

type Pasted = NamedSubject | { kind: 'unknown'; reason: string }

/** Ignores white space around the text. */
export function parsePasted(input: string): Pasted {
  const text = input.trim()
  if (text === '') return { kind: 'unknown', reason: 'Paste a link, slug, CID or transaction hash.' }
  try {
    return recogniseSubject(text)
  } catch (error) {
    if (!(error instanceof VerifierError)) throw error
    const reason = error.details ?? error.message
    return { kind: 'unknown', reason: `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.` }
  }
}
