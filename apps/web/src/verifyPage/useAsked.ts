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
  return { title: 'The file couldn’t be read', text: error instanceof Error ? error.message : String(error) }
}

/** Why there is nothing to verify, in words for the visitor. */
class SubjectFault extends Error {
  override name = 'SubjectFault'
  readonly title: string
  constructor(title: string, message: string) {
    super(message)
    this.title = title
  }
}

/** What the visitor asked to have verified, once it is clear what it is. */
export type Asked = Pick<VerifyRequest, 'subject' | 'collaterals' | 'opening'> & {
  /** The service's answer, for a proof link or slug. */
  proof?: ProofPayload
  apiBaseUrl: string
}

/** What a pasted name asks for. A proof is fetched here, since the page shows what the service says of it. */
export async function findAsked(
  deps: { fetchBytes: FetchBytes },
  config: WebConfig,
  pasted: NamedSubject,
): Promise<Asked> {
  if (pasted.kind !== 'proof') return { subject: pasted, apiBaseUrl: config.apiBaseUrl }
  return askProof(deps, { slug: pasted.slug, api: await toApi(deps, config, pasted.origin) })
}

/** A proof as the service tells it now. */
async function askProof(
  deps: { fetchBytes: FetchBytes },
  { slug, api }: { slug: string; api: string },
): Promise<Asked> {
  const proof = await getProof(deps, { api, slug })
  return { subject: { kind: 'proof', slug, api, proof }, proof, apiBaseUrl: api }
}

/** A link to this app is a link to its service; a link elsewhere leads to another one. */
async function toApi(deps: { fetchBytes: FetchBytes }, config: WebConfig, origin: string | undefined): Promise<string> {
  const isOurs = origin === undefined || origin === window.location.origin
  return isOurs ? config.apiBaseUrl : findApi(deps, origin)
}

/** A receipt and perhaps its collateral, to the byte. */
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
