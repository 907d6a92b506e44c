import { connect } from 'node:net'

type RawAnswer = { status: number; headers: Map<string, string>; body: string }

export type RawExchange = { answers: RawAnswer[]; text: string; isClosed: boolean }

type RawParameters = {
  port: number
  /** Strings are sent as Latin-1, one byte per character. */
  parts: readonly (string | Uint8Array)[]
  /** Number of answers to wait for. */
  expected?: number
  limitMs?: number
  /** Time to wait for surplus answers. */
  lingerMs?: number
}

/** Sends raw bytes that no HTTP client would send. */
export function exchangeRaw(parameters: RawParameters): Promise<RawExchange> {
  const { port, parts, expected = 1, limitMs = 3000, lingerMs = 30 } = parameters
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let lingering: NodeJS.Timeout | undefined
    const limit = setTimeout(() => finish(false), limitMs)
    const socket = connect(port, '127.0.0.1', () => {
      for (const part of parts) socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
    })
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      // Counting is cheaper than parsing.
      if (lingering === undefined && countHeads(chunks) >= expected && parse().length >= expected) {
        lingering = setTimeout(() => finish(false), lingerMs)
      }
    })
    // A reset counts as closed: a server that cuts off resets a connection with unread data.
    socket.on('error', () => {})
    socket.on('close', () => finish(true))

    function parse() {
      return parseAnswers(Buffer.concat(chunks).toString('latin1'))
    }

    function finish(isClosed: boolean) {
      clearTimeout(limit)
      clearTimeout(lingering)
      socket.destroy()
      resolve({ answers: parse(), text: Buffer.concat(chunks).toString('latin1'), isClosed })
    }
  })
}

function countHeads(chunks: readonly Buffer[]): number {
  return chunks.reduce((count, chunk) => count + chunk.toString('latin1').split('HTTP/1.1 ').length - 1, 0)
}

/** Parses all complete answers on a connection. Skips interim ones (1xx). */
function parseAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (!rest.startsWith('HTTP/1.1 ') || headEnd < 0) return answers
    const [first = '', ...lines] = rest.slice(0, headEnd).split('\r\n')
    const status = Number(first.split(' ')[1])
    const headers = new Map(
      lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line.replace(/^[^:]*:\s*/, '')]),
    )
    rest = rest.slice(headEnd + 4)
    if (status >= 100 && status < 200) continue
    const length = headers.get('content-length')
    let body = ''
    if (headers.get('transfer-encoding') === 'chunked') {
      const end = rest.indexOf('0\r\n\r\n')
      if (end < 0) return answers
      body = rest.slice(0, end)
      rest = rest.slice(end + 5)
    } else if (length !== undefined) {
      if (rest.length < Number(length)) return answers
      body = rest.slice(0, Number(length))
      rest = rest.slice(Number(length))
    }
    answers.push({ status, headers, body })
  }
}
