import { connect } from 'node:net'

type RawAnswer = { status: number; headers: Map<string, string>; body: string }

export type RawExchange = { answers: RawAnswer[]; text: string; isClosed: boolean }

type RawParameters = {
  port: number
  /** Text is sent as Latin-1, one byte for each character. */
  parts: readonly (string | Uint8Array)[]
  /** Answers after which nothing more is waited for. */
  expected?: number
  /** The longest wait. */
  limitMs?: number
  /** After the expected answers, for one too many. */
  lingerMs?: number
}

/** Sends bytes as they are, which no HTTP client would. */
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
      // Counting is cheap, parsing is not.
      if (lingering === undefined && countHeads(chunks) >= expected && parse().length >= expected) {
        lingering = setTimeout(() => finish(false), lingerMs)
      }
    })
    // A server that cuts off resets the connection under what it has not read: that is an end like any other.
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

/** Every complete answer in what came over one connection; interim ones (100) are passed over. */
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
