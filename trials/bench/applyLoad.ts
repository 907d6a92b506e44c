import { type Caller, connectCaller } from './connectCaller.ts'

/** Where each connection takes its next request from. */
export type Requests = (connection: number) => Buffer

/**
 * How long answers took, and how many there were. The rate is that of callers who always wait for one answer, by their mean wait
 * (Little's law): where answers come by batches, or one in 50 ms, a count within a second depends on where it ends. The first
 * answer of each caller is in the count alone: those who ask first find no queue, and would make the rate of short slices too high.
 */
export type Answered = { rate: number; latencies: number[]; count: number }

/** More may not be let in at once: who is not tries again after a second, and so long the machine has nothing to do. */
const CONNECT_TOGETHER = 128

/** Each connection asks again as soon as it is answered, until the time is over; then all wait for their last answer. */
export async function applyLoad(parameters: {
  url: string
  connections: number
  sliceMs: number
  next: Requests
}): Promise<Answered> {
  const { url, connections, sliceMs, next } = parameters
  const callers: Caller[] = []
  while (callers.length < connections) {
    const count = Math.min(CONNECT_TOGETHER, connections - callers.length)
    callers.push(...(await Promise.all(Array.from({ length: count }, () => connectCaller(url)))))
  }
  const latencies: number[] = []
  let count = 0
  let isOver = false
  const all = callers.map(async (caller, connection) => {
    for (let answers = 0; !isOver || answers < 2; answers++) {
      const sentAt = performance.now()
      const answer = await caller.call(next(connection))
      if (!answer.startsWith('HTTP/1.1 200')) {
        const body = answer.slice(answer.indexOf('\r\n\r\n')).trim()
        throw new Error(`not answered: ${answer.slice(0, 12)} ${body.slice(0, 400)}`)
      }
      count++
      if (answers > 0) latencies.push(performance.now() - sentAt)
    }
  })
  const timer = new Promise((resolve) => setTimeout(resolve, sliceMs))
  try {
    // A caller that fails ends it at once.
    await Promise.race([timer, Promise.all(all)])
    isOver = true
    await Promise.all(all)
    const waited = latencies.reduce((sum, latency) => sum + latency, 0)
    return { rate: (1000 * connections * latencies.length) / waited, latencies, count }
  } finally {
    isOver = true
    for (const caller of callers) caller.close()
  }
}
