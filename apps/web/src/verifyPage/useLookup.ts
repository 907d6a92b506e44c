import type { ProofPayload } from '@countersign/protocol'
import {
  describeError,
  type FetchBytes,
  findApi,
  type GivenFile,
  getProof,
  MAX_COLLATERAL_BYTES,
  type NamedSubject,
  toPrintable,
  VerifierError,
  type VerifyRequest,
} from '@countersign/verify'
import { useRef, useState } from 'react'
import type { WebConfig } from '../config.ts'
import { toProofFailureWords } from '../report/failureWords.ts'
import { fetchBytes } from '../worker/pageFetch.ts'

type Fault = { title: string; text: string }

/** The visitor's subject, or the reason it wasn't found. Only the latest request counts. */
export function useLookup() {
  const [found, setFound] = useState<FoundSubject | undefined>(undefined)
  const [fault, setFault] = useState<Fault | undefined>(undefined)
  const [isLoading, setLoading] = useState(false)
  const latest = useRef(0)

  /** Removes the old verdict, so that it never appears next to a new subject, and ignores late responses. */
  function reset() {
    latest.current += 1
    setFault(undefined)
    setLoading(false)
    setFound(undefined)
  }

  async function lookUp(find: () => Promise<FoundSubject>) {
    reset()
    const turn = latest.current
    setLoading(true)
    try {
      const subject = await find()
      if (turn === latest.current) setFound(subject)
    } catch (error) {
      if (turn === latest.current) setFault(toFault(error))
    } finally {
      if (turn === latest.current) setLoading(false)
    }
  }

  /** Also asks the service again, because its last response may have caused the failure. */
  function retry({ subject, ...rest }: FoundSubject) {
    if (subject.kind !== 'proof') return setFound({ subject, ...rest })
    void lookUp(async () => ({ ...rest, ...(await fetchProof({ fetchBytes }, subject)) }))
  }

  return { found, fault, isLoading, lookUp, reset, retry, setFound }
}

export type Lookup = ReturnType<typeof useLookup>

function toFault(error: unknown): Fault {
  if (error instanceof SubjectFault) return { title: error.title, text: error.message }
  if (error instanceof VerifierError) {
    const { title, advice } = toProofFailureWords(error)
    return { title, text: `${advice} (${toPrintable(describeError(error).message)})` }
  }
  return { title: 'The file couldn’t be read', text: error instanceof Error ? error.message : String(error) }
}

/** An error for the visitor. */
class SubjectFault extends Error {
  override name = 'SubjectFault'
  readonly title: string
  constructor(title: string, message: string) {
    super(message)
    this.title = title
  }
}

/** The subject to verify. */
export type FoundSubject = Pick<VerifyRequest, 'subject' | 'collaterals' | 'opening'> & {
  /** The service's response, for a proof link or slug. */
  proof?: ProofPayload
  apiBaseUrl: string
}

/** Resolves pasted text. Proofs are fetched here, because the page shows the service's claims. */
export async function findSubject(
  deps: { fetchBytes: FetchBytes },
  config: WebConfig,
  pasted: NamedSubject,
): Promise<FoundSubject> {
  if (pasted.kind !== 'proof') return { subject: pasted, apiBaseUrl: config.apiBaseUrl }
  return fetchProof(deps, { slug: pasted.slug, api: await toApi(deps, config, pasted.origin) })
}

async function fetchProof(
  deps: { fetchBytes: FetchBytes },
  { slug, api }: { slug: string; api: string },
): Promise<FoundSubject> {
  const proof = await getProof(deps, { api, slug })
  return { subject: { kind: 'proof', slug, api, proof }, proof, apiBaseUrl: api }
}

/** This app's links belong to its own service, other links to another one. */
async function toApi(deps: { fetchBytes: FetchBytes }, config: WebConfig, origin: string | undefined): Promise<string> {
  const isOurs = origin === undefined || origin === window.location.origin
  return isOurs ? config.apiBaseUrl : findApi(deps, origin)
}

/** Reads a receipt and, optionally, its collateral. */
export async function readFiles(files: readonly File[]): Promise<GivenFile[]> {
  if (files.length > 2)
    throw new SubjectFault('Too many files', 'Choose one receipt and, if you have it, its collateral.')
  return Promise.all(
    files.map(async (file) => {
      if (file.size === 0) throw new SubjectFault('Empty file', `${file.name} is empty. Choose another file.`)
      if (file.size > MAX_COLLATERAL_BYTES) {
        throw new SubjectFault(
          'File too large',
          `${file.name} has ${file.size} bytes. The limit is ${MAX_COLLATERAL_BYTES} bytes.`,
        )
      }
      return { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }
    }),
  )
}
