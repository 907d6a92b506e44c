import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { withinTimeLimit } from '@countersign/protocol'
import { readResidentMib } from '@countersign/testing'
import { median } from '@countersign/testing/stack'
import type { Member } from '../member.ts'

/** Memory of one process in MiB. */
type Footprint = {
  /** Resident memory while running. V8 grows the space for young objects when many survive at once, and seldom shrinks it. */
  running: number
  /** Resident memory just after a full garbage collection, which also returns that space. */
  resident: number
}

/** Memory of one process after the warm-up and at the end. */
export type Growth = { name: string; early: Footprint; late: Footprint }

type Watched = Pick<Member, 'name' | 'pid'> & { inspectorUrl: string }

/** Caches and compiled code reach their size in this part of the run. */
const WARM_UP = 0.4
/** Length of each measurement, as a part of the run: the last tenth of the warm-up and the last tenth of the run. */
const WINDOW = 0.1
const EVERY_MS = 2_000
const ANSWER_MS = 30_000

/** Measures memory twice, in `durationMs` altogether. */
export async function measureGrowth(watched: readonly Watched[], durationMs: number): Promise<Growth[]> {
  await sleep((WARM_UP - WINDOW) * durationMs)
  const early = await measure(watched, WINDOW * durationMs)
  await sleep((1 - WARM_UP - WINDOW) * durationMs)
  const late = await measure(watched, WINDOW * durationMs)
  return watched.flatMap(({ name }, index) => {
    const [before, after] = [early[index], late[index]]
    return before && after ? [{ name, early: before, late: after }] : []
  })
}

/** Takes the median of the running memory over this time, then forces a garbage collection. */
async function measure(watched: readonly Watched[], durationMs: number): Promise<Footprint[]> {
  const endsAt = performance.now() + durationMs
  const samples: number[][] = []
  do {
    await sleep(Math.min(EVERY_MS, Math.max(0, endsAt - performance.now())))
    samples.push(await readResidents(watched))
  } while (performance.now() < endsAt)
  await Promise.all(watched.map(({ inspectorUrl }) => collectGarbage(inspectorUrl)))
  return (await readResidents(watched)).map((resident, index) => {
    return { running: median(samples.map((sample) => sample[index] ?? Number.NaN)), resident }
  })
}

const readResidents = (watched: readonly Watched[]) => Promise.all(watched.map(({ pid }) => readResidentMib(pid())))

/** The inspector URL in a line that Node logs at startup; undefined for other lines. */
export function parseInspectorUrl(line: string): string | undefined {
  return /^Debugger listening on (ws:\S+)$/.exec(line)?.[1]
}

type Message = { id?: number; method?: string; params?: Record<string, unknown>; error?: unknown }

/** Collects garbage in all threads of a process, through its inspector. */
async function collectGarbage(inspectorUrl: string): Promise<void> {
  const socket = new WebSocket(inspectorUrl)
  await once(socket, 'open')
  const waiting = new Map<number, PromiseWithResolvers<void>>()
  const workers = new Set<string>()
  let lastId = 0

  /** The messages of a worker thread are wrapped in those of the main thread. */
  function receive({ id = 0, method, params, error }: Message) {
    if (method === 'NodeWorker.attachedToWorker') workers.add(String(params?.sessionId))
    if (method === 'NodeWorker.receivedMessageFromWorker') receive(JSON.parse(String(params?.message)) as Message)
    if (error === undefined) waiting.get(id)?.resolve()
    else waiting.get(id)?.reject(new Error(`inspector call failed: ${JSON.stringify(error)}`))
  }
  socket.addEventListener('message', ({ data }) => receive(JSON.parse(String(data)) as Message))

  function call(sessionId: string | undefined, method: string, params = {}): Promise<void> {
    const id = ++lastId
    const message = { id, method, params }
    const inner = { sessionId, message: JSON.stringify(message) }
    const sent = { id: ++lastId, method: 'NodeWorker.sendMessageToWorker', params: inner }
    const answer = Promise.withResolvers<void>()
    waiting.set(id, answer)
    socket.send(JSON.stringify(sessionId === undefined ? message : sent))
    return withinTimeLimit(ANSWER_MS, () => answer.promise)
  }
  try {
    await call(undefined, 'NodeWorker.enable', { waitForDebuggerOnStart: false })
    for (const session of [undefined, ...workers]) await call(session, 'HeapProfiler.collectGarbage')
  } finally {
    socket.close()
  }
}
