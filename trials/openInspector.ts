/** Of a thread: undefined for the main one, else what the inspector calls its session. */
type Session = string | undefined

export type Inspector = {
  /** One call of the inspector's protocol. */
  call<Result>(session: Session, method: string, params?: object): Promise<Result>
  /** The main thread, and the workers once their domain `NodeWorker` is enabled. */
  sessions(): Session[]
  close(): void
}

type Message = { id?: number; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown }

const TIMEOUT_MS = 30_000

/** Where a process of Node says its inspector can be asked; undefined for any other line. */
export function parseInspectorUrl(line: string): string | undefined {
  return /^Debugger listening on (ws:\S+)$/.exec(line)?.[1]
}

/** The inspector of a process of Node, and through it those of its workers. */
export async function openInspector(url: string): Promise<Inspector> {
  const socket = new WebSocket(url)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('close', () => reject(new Error('the inspector cannot be asked')))
  })
  const waiting = new Map<number, { resolve(result: never): void; reject(error: Error): void }>()
  const workers = new Set<string>()
  let nextId = 1

  /** A worker's messages travel in those of the main thread; the answer that counts is the inner one. */
  const wrap = (sessionId: string, message: object) => ({
    id: nextId++,
    method: 'NodeWorker.sendMessageToWorker',
    params: { sessionId, message: JSON.stringify(message) },
  })

  function take({ id, method, params, result, error }: Message) {
    if (method === 'NodeWorker.attachedToWorker') workers.add(String(params?.sessionId))
    if (method === 'NodeWorker.detachedFromWorker') workers.delete(String(params?.sessionId))
    if (method === 'NodeWorker.receivedMessageFromWorker') take(JSON.parse(String(params?.message)) as Message)
    const caller = id === undefined ? undefined : waiting.get(id)
    if (id === undefined || caller === undefined) return
    waiting.delete(id)
    if (error === undefined) caller.resolve(result as never)
    else caller.reject(new Error(`the inspector refused: ${JSON.stringify(error)}`))
  }
  socket.addEventListener('message', ({ data }) => take(JSON.parse(String(data)) as Message))
  socket.addEventListener('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('the inspector was closed'))
  })

  return {
    call(session, method, params = {}) {
      const id = nextId++
      const message = { id, method, params }
      const sent = session === undefined ? message : wrap(session, message)
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`${method}: no answer in time`)), TIMEOUT_MS)
        waiting.set(id, {
          resolve(result) {
            clearTimeout(late)
            resolve(result)
          },
          reject(error) {
            clearTimeout(late)
            reject(error)
          },
        })
        // A closed socket drops it in silence.
        if (socket.readyState !== WebSocket.OPEN) return waiting.get(id)?.reject(new Error('the inspector was closed'))
        socket.send(JSON.stringify(sent))
      })
    },
    sessions: () => [undefined, ...workers],
    close: () => socket.close(),
  }
}
