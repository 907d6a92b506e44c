import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { withinTimeLimit } from '@countersign/protocol'
import { readResidentMib } from '@countersign/testing'
import { median } from '@countersign/testing/stack'
import type { Member } from '../member.ts'

/** Of one process, in MiB. */
type Footprint = {
  /** Resident, as it runs. V8 gives a process more room for young objects when many survive at one moment, and seldom takes it back. */
  running: number
  /** Resident, just after all garbage is collected, and such room given back. */
  resident: number
}

/** One process, after its warm-up and at the end. */
export type Growth = { name: string; early: Footprint; late: Footprint }

type Watched = Pick<Member, 'name' | 'pid'> & { inspectorUrl: string }

/** Caches and compiled code come to their size in the first part. */
const WARM_UP = 0.4
/** The part at whose end it is measured: the last of the warm-up, and the last of all. */
const WINDOW = 0.1
const EVERY_MS = 2_000
const ANSWER_MS = 30_000

/** Takes this long. */
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

/** What they have as they run, the median over this time; then each collects its garbage. */
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

/** Where a process of Node says its inspector can be asked; undefined for any other line. */
export function parseInspectorUrl(line: string): string | undefined {
  return /^Debugger listening on (ws:\S+)$/.exec(line)?.[1]
}

type Message = { id?: number; method?: string; params?: Record<string, unknown>; error?: unknown }

/** In all threads of a process, by its inspector. */
async function collectGarbage(inspectorUrl: string): Promise<void> {
  const socket = new WebSocket(inspectorUrl)
  await once(socket, 'open')
  const waiting = new Map<number, PromiseWithResolvers<void>>()
  const workers = new Set<string>()
  let lastId = 0

  /** A worker's messages travel in those of the main thread. The inner answer is the one that counts. */
  function take({ id = 0, method, params, error }: Message) {
    if (method === 'NodeWorker.attachedToWorker') workers.add(String(params?.sessionId))
    if (method === 'NodeWorker.receivedMessageFromWorker') take(JSON.parse(String(params?.message)) as Message)
    if (error === undefined) waiting.get(id)?.resolve()
    else waiting.get(id)?.reject(new Error(`the inspector refused: ${JSON.stringify(error)}`))
  }
  socket.addEventListener('message', ({ data }) => take(JSON.parse(String(data)) as Message))

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
