import { describeError, toPrintable, VerifierError } from '@countersign/verify'
import { useRef, useState } from 'react'
import { toProofFailureWords } from '../report/failureWords.ts'
import { fetchBytes } from '../worker/pageFetch.ts'
import type { Asked } from './asked.ts'
import { askProof } from './findAsked.ts'
import { SubjectFault } from './SubjectFault.ts'

type Fault = { title: string; text: string }

/** What the visitor asks to have verified, and why it was not found. Only the latest question is answered. */
export function useAsked() {
  const [asked, setAsked] = useState<Asked | undefined>(undefined)
  const [fault, setFault] = useState<Fault | undefined>(undefined)
  const [isAsking, setAsking] = useState(false)
  const latest = useRef(0)

  /** The verdict on something else must not stand beside a new question, nor may a late answer bring one. */
  function forget() {
    latest.current += 1
    setFault(undefined)
    setAsking(false)
    setAsked(undefined)
  }

  async function ask(find: () => Promise<Asked>) {
    forget()
    const turn = latest.current
    setAsking(true)
    try {
      const found = await find()
      if (turn === latest.current) setAsked(found)
    } catch (error) {
      if (turn === latest.current) setFault(toFault(error))
    } finally {
      if (turn === latest.current) setAsking(false)
    }
  }

  /** The service is asked again too: its last answer may be why there is no verdict. */
  function retry({ subject, ...rest }: Asked) {
    if (subject.kind !== 'proof') return setAsked({ subject, ...rest })
    void ask(async () => ({ ...rest, ...(await askProof({ fetchBytes }, subject)) }))
  }

  return { asked, fault, isAsking, ask, forget, retry, setAsked }
}

export type AskedState = ReturnType<typeof useAsked>

function toFault(error: unknown): Fault {
  if (error instanceof SubjectFault) return { title: error.title, text: error.message }
  if (error instanceof VerifierError) {
    const { title, advice } = toProofFailureWords(error)
    return { title, text: `${advice} (${toPrintable(describeError(error).message)})` }
  }
  return { title: 'This could not be read', text: error instanceof Error ? error.message : String(error) }
}
