/** Where a process that was started with `--inspect` says it can be asked; undefined for any other line. */
export function parseInspectorUrl(line: string): string | undefined {
  return /^Debugger listening on (ws:\S+)$/.exec(line)?.[1]
}

type Answer = { id?: number; result?: Record<string, number>; error?: { message: string } }

const TIMEOUT_MS = 30_000

/** What a process keeps, in MiB, once it has collected all its garbage: the JavaScript heap of its main thread, buffers included. */
export async function readHeapMib(inspectorUrl: string): Promise<number> {
  const socket = new WebSocket(inspectorUrl)
  try {
    await ask(socket, 'HeapProfiler.collectGarbage')
    const { usedSize = 0, embedderHeapUsedSize = 0, backingStorageSize = 0 } = await ask(socket, 'Runtime.getHeapUsage')
    return (usedSize + embedderHeapUsedSize + backingStorageSize) / 2 ** 20
  } finally {
    socket.close()
  }
}

/** One call of the inspector's protocol. Its answer is the only message, as no domain is enabled. */
function ask(socket: WebSocket, method: string): Promise<Record<string, number>> {
  return new Promise((resolve, reject) => {
    const ended = new AbortController()
    const { signal } = ended
    const fail = (why: string) => {
      ended.abort()
      reject(new Error(`${method}: ${why}`))
    }
    const send = () => socket.send(JSON.stringify({ id: 1, method }))
    AbortSignal.timeout(TIMEOUT_MS).addEventListener('abort', () => fail('no answer in time'), { signal })
    socket.addEventListener('close', () => fail('the process is gone'), { signal })
    socket.addEventListener('error', () => fail('cannot be asked'), { signal })
    socket.addEventListener(
      'message',
      ({ data }) => {
        const { result, error } = JSON.parse(String(data)) as Answer
        if (result === undefined) return fail(error?.message ?? 'no result')
        ended.abort()
        resolve(result)
      },
      { signal },
    )
    if (socket.readyState === WebSocket.OPEN) send()
    else socket.addEventListener('open', send, { signal })
  })
}
