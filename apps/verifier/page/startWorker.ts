import { toCid } from '@countersign/receipt'
import {
  createFetchBytes,
  describeError,
  findApi,
  type GivenFile,
  type Outcome,
  type Progress,
  type ReaderNeed,
  trimWhiteSpace,
  VerifierError,
  type VerifyRequest,
  verify,
} from '@countersign/verify'

/** What the page asks for. */
export type Job = {
  request: VerifyRequest
  /** Blocks of the receipt, in any order. */
  files: readonly GivenFile[]
  /** The site of a proof link, which names its service. */
  origin?: string | undefined
}

export type Report =
  | { kind: 'progress'; progress: Progress }
  | { kind: 'done'; outcome: Outcome; unused: readonly string[] }
  | { kind: 'failed'; code: string; message: string; need: ReaderNeed | undefined }

const TIMEOUT_MS = 30_000

/** Verifies what the page sends, in this thread, so that the page can show each step as it finishes. */
export function startWorker(): void {
  const send = (report: Report) => globalThis.postMessage(report)
  globalThis.addEventListener('message', ({ data }: MessageEvent<Job>) => {
    run(data, (progress) => send({ kind: 'progress', progress })).then(send, (error) => {
      const need = error instanceof VerifierError ? error.need : undefined
      send({ kind: 'failed', ...describeError(error), need })
    })
  })
}

async function run({ request, files, origin }: Job, onProgress: (progress: Progress) => void): Promise<Report> {
  const fetchBytes = createFetchBytes({ fetch: (input, init) => fetch(input, init), timeoutMs: TIMEOUT_MS })
  const { subject } = request
  const api = subject.kind === 'proof' && origin !== undefined ? await findApi({ fetchBytes }, origin) : request.api
  const found = subject.kind === 'proof' && api !== undefined ? { ...subject, api } : subject
  const outcome = await verify(
    { fetchBytes, now: () => new Date(), onProgress, findBeside: async () => files.map(({ bytes }) => bytes) },
    { ...request, subject: found, api },
  )
  const { blocks, collateral } = outcome
  const used = new Set([...Object.values(blocks), collateral?.bytes].map((bytes) => bytes && toCid(bytes)))
  const unused = files.filter(({ bytes }) => !used.has(toCid(bytes)) && !used.has(toCid(trimWhiteSpace(bytes))))
  return { kind: 'done', outcome, unused: unused.map(({ name }) => name) }
}
