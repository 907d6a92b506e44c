import { type FetchBytes, type VerifyRequest, verify } from '@countersign/verify'
import { type FromWorker, type ToWorker, toFetchError, toPlainError } from './messages.ts'

type Waiting = { resolve: (bytes: Uint8Array<ArrayBuffer>) => void; reject: (error: Error) => void }

const waiting = new Map<number, Waiting>()
let nextId = 1

function send(message: FromWorker) {
  globalThis.postMessage(message)
}

const fetchBytes: FetchBytes = (parameters) =>
  new Promise((resolve, reject) => {
    const id = nextId++
    waiting.set(id, { resolve, reject })
    send({ type: 'fetch', id, parameters })
  })

async function run(request: VerifyRequest) {
  const deps = {
    fetchBytes,
    now: () => new Date(),
    onProgress: (progress: Extract<FromWorker, { type: 'progress' }>['progress']) =>
      send({ type: 'progress', progress }),
  }
  try {
    send({ type: 'done', outcome: await verify(deps, request) })
  } catch (error) {
    send({ type: 'failed', error: toPlainError(error) })
  }
}

globalThis.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case 'verify':
      void run(data.request)
      return
    case 'fetched':
      waiting.get(data.id)?.resolve(data.bytes)
      break
    case 'fetch-failed':
      waiting.get(data.id)?.reject(toFetchError(data.error))
      break
  }
  waiting.delete(data.id)
})
