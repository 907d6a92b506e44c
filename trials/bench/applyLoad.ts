import { connectCaller } from './connectCaller.ts'

/** Where each connection takes its next request from. */
export type Requests = (connection: number) => Buffer

/** What was answered within the time, and how long each answer took. */
export type Answered = { seconds: number; latencies: number[] }

/** Each connection asks again as soon as it is answered, until the time is over; then all wait for their last answer. */
export async function applyLoad(parameters: {
  url: string
  connections: number
  sliceMs: number
  next: Requests
}): Promise<Answered> {
  const { url, connections, sliceMs, next } = parameters
  const callers = await Promise.all(Array.from({ length: connections }, () => connectCaller(url)))
  const latencies: number[] = []
  let isOver = false
  const start = performance.now()
  const all = callers.map(async (caller, connection) => {
    while (!isOver) {
      const sentAt = performance.now()
      const answer = await caller.call(next(connection))
      if (!answer.startsWith('HTTP/1.1 200')) throw new Error(`not answered: ${answer.slice(0, 400)}`)
      if (!isOver) latencies.push(performance.now() - sentAt)
    }
  })
  const timer = new Promise((resolve) => setTimeout(resolve, sliceMs))
  try {
    // A caller that fails ends it at once.
    await Promise.race([timer, Promise.all(all)])
    isOver = true
    const seconds = (performance.now() - start) / 1000
    await Promise.all(all)
    return { seconds, latencies }
  } finally {
    isOver = true
    for (const caller of callers) caller.close()
  }
}
