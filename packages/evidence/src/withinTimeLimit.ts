import { EvidenceError } from './errors.ts'

/** Runs `task`, but answers after `timeoutMs` at the latest; the task learns of it by its signal and clears up. */
export async function withinTimeLimit<Result>(
  timeoutMs: number,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new EvidenceError('evidence_timeout', 'no evidence in time', { details: `after ${timeoutMs} ms` })
      controller.abort(error)
      reject(error)
    }, timeoutMs)
  })
  try {
    return await Promise.race([task(controller.signal), expired])
  } finally {
    clearTimeout(timer)
  }
}
