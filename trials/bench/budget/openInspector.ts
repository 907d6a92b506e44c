import { once } from 'node:events'
import type { Profile } from './toShares.ts'

export type ThreadProfile = { isMain: boolean; profile: Profile }

export type Inspector = {
  /** Of every thread, while this runs. */
  profile(run: () => Promise<unknown>): Promise<ThreadProfile[]>
  close(): void
}

/** Of a thread: undefined for the main one, else what the inspector calls its session. */
type Session = string | undefined
type Message = { id?: number; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown }

/** Enough to tell stages apart, for a few percent more work. */
const INTERVAL_US = 500

/** The inspector of a process of Node, and through it those of its workers. */
export async function openInspector(url: string): Promise<Inspector> {
  const socket = new WebSocket(url)
  await once(socket, 'open')
  const waiting = new Map<number, { resolve(result: never): void; reject(error: Error): void }>()
  const workers = new Set<string>()
  let nextId = 1

  function call<Result>(session: Session, method: string, params: object = {}): Promise<Result> {
    const id = nextId++
    const message = { id, method, params }
    const sent = session === undefined ? message : wrap(session, message)
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject })
      socket.send(JSON.stringify(sent))
    })
  }

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

  await call(undefined, 'NodeWorker.enable', { waitForDebuggerOnStart: false })
  return {
    async profile(run) {
      const sessions = [undefined, ...workers]
      for (const session of sessions) {
        await call(session, 'Profiler.enable')
        await call(session, 'Profiler.setSamplingInterval', { interval: INTERVAL_US })
      }
      await Promise.all(sessions.map((session) => call(session, 'Profiler.start')))
      await run()
      return Promise.all(
        sessions.map(async (session) => {
          const { profile } = await call<{ profile: Profile }>(session, 'Profiler.stop')
          await call(session, 'Profiler.disable')
          return { isMain: session === undefined, profile }
        }),
      )
    },
    close: () => socket.close(),
  }
}
