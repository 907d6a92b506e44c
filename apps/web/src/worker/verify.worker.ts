import { VerificationError } from './errors.ts'
import { type FetchBytes, FetchError } from './fetchBytes.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { type VerificationRequest, verifySubject } from './verifySubject.ts'

type Waiting = { resolve: (bytes: Uint8Array<ArrayBuffer>) => void; reject: (error: Error) => void }

const waiting = new Map<number, Waiting>()
let nextId = 1

function tell(message: FromWorker) {
  globalThis.postMessage(message)
}

const fetchBytes: FetchBytes = (parameters) =>
  new Promise((resolve, reject) => {
    const id = nextId++
    waiting.set(id, { resolve, reject })
    tell({ type: 'fetch', id, parameters })
  })

async function verify(request: VerificationRequest) {
  try {
    const onProgress = (text: string) => tell({ type: 'progress', text })
    tell({ type: 'done', verification: await verifySubject({ fetchBytes, onProgress }, request) })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    tell({ type: 'failed', code: error instanceof VerificationError ? error.code : 'internal', message })
  }
}

globalThis.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case 'verify':
      void verify(data.request)
      return
    case 'fetched':
      waiting.get(data.id)?.resolve(data.bytes)
      break
    case 'fetch-failed':
      waiting.get(data.id)?.reject(new FetchError(data.message))
      break
  }
  waiting.delete(data.id)
})
