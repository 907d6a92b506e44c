import { isAddress, isPlainObject } from '@countersign/protocol'
import { MAX_COLLATERAL_BYTES } from '@countersign/receipt'
import {
  chooseReceipt,
  type GivenFile,
  parseHttpUrl,
  parseManifest,
  recogniseSubject,
  type Subject,
  VerifierError,
  withSource,
} from '@countersign/verify'
import type { Job } from './startWorker.ts'

/** The form's values. */
export type Fields = Readonly<Record<'subject' | 'gateway' | 'node' | 'contract', string>>

/** The chosen files. Only `manifests` come from someone whom the reader trusts. */
export type Chosen = Readonly<Record<'receipt' | 'manifests', readonly GivenFile[]>>

/** Turns the form into a job. Throws a `VerifierError` for anything that can't be used. */
export function readJob({ receipt, manifests }: Chosen, { subject: text, gateway, node, contract }: Fields): Job {
  const kinds = Map.groupBy(receipt, nameKind)
  const [misplaced] = kinds.get('manifest') ?? []
  if (misplaced !== undefined)
    throw invalid(
      `the file ${misplaced.name} is a manifest, not part of a receipt`,
      'if you trust it, choose it under “What you trust”',
    )
  const [opening, ...others] = kinds.get('opening') ?? []
  if (others.length > 0) throw invalid('choose one opening', others.map(({ name }) => name).join(', '))
  const server = toUrl('gateway or service', gateway)
  const { subject, files, origin } = findSubject(kinds.get('block') ?? [], { text, server })
  return {
    files,
    origin,
    request: {
      subject,
      manifests: manifests.map(({ name, bytes }) => withSource(name, () => parseManifest(bytes))),
      gateways: server === undefined ? [] : [server],
      api: subject.kind === 'proof' ? server : undefined,
      rpc: toUrl('node', node),
      contract: toContract(contract),
      opening: opening?.bytes,
    },
  }
}

type Found = Pick<Job, 'files' | 'origin'> & { subject: Subject }

function findSubject(
  files: readonly GivenFile[],
  { text, server }: { text: string; server: string | undefined },
): Found {
  if (text === '') {
    const { subject, collaterals } = chooseReceipt(files)
    return { subject, files: collaterals }
  }
  const named = recogniseSubject(text)
  if (named.kind !== 'proof') return { subject: named, files }
  const { slug, origin } = named
  const api = server ?? origin
  if (api === undefined)
    throw new VerifierError('invalid_arguments', 'this proof id needs the address of its service', { need: 'service' })
  return { subject: { kind: 'proof', slug, api }, files, origin: server === undefined ? origin : undefined }
}

/** Blocks are recognised by their CID, so any other file counts as one. */
function nameKind({ bytes }: GivenFile): 'manifest' | 'opening' | 'block' {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return 'block'
  }
  if (!isPlainObject(value)) return 'block'
  if (String(value.version).startsWith('countersign-manifest/')) return 'manifest'
  const isOpening = ('content' in value && 'signature' in value) || ('salt' in value && 'identity' in value)
  return isOpening ? 'opening' : 'block'
}

function toUrl(name: string, text: string): string | undefined {
  if (text === '') return undefined
  const url = parseHttpUrl(text)
  if (url === undefined)
    throw invalid(`invalid ${name} address`, 'expected http:// or https:// without a user name or password')
  return url
}

function toContract(text: string): string | undefined {
  if (text !== '' && !isAddress(text))
    throw invalid('invalid contract address', `expected 0x and 40 hex digits, got ${text}`)
  return text === '' ? undefined : text.toLowerCase()
}

export async function readFiles(files: readonly File[]): Promise<GivenFile[]> {
  const large = files.find(({ size }) => size > MAX_COLLATERAL_BYTES)
  if (large !== undefined)
    throw invalid(
      `the file ${large.name} is too large`,
      `expected at most ${MAX_COLLATERAL_BYTES} bytes, got ${large.size}`,
    )
  return Promise.all(files.map(async (file) => ({ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) })))
}

function invalid(message: string, details: string) {
  return new VerifierError('invalid_arguments', message, { details })
}
