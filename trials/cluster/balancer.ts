import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'

// What stands before the coordinators: `PORT`, and `UPSTREAMS` as ports on loopback, each asked in its turn.
// As proxies do, it leaves out who is not ready, and asks another when one cannot be reached, or when a connection that was used before
// is found closed. That may repeat a request, and every request of ours may be repeated: the same digest has the same answer.

type Upstream = { port: number; agent: Agent; isUp: boolean }

const PROBE_MS = 250
/** A coordinator that is frozen accepts connections, and answers nothing. */
const PROBE_TIMEOUT_MS = 1_000
const ANSWER_TIMEOUT_MS = 30_000

const upstreams = (process.env.UPSTREAMS ?? '').split(',').map(
  (port): Upstream => ({
    port: Number(port),
    agent: new Agent({ keepAlive: true }),
    isUp: true,
  }),
)
let turn = 0

function probe(upstream: Upstream) {
  const { port, agent } = upstream
  const asked = send({ host: '127.0.0.1', port, agent, path: '/health/ready', timeout: PROBE_TIMEOUT_MS }, (answer) => {
    answer.resume()
    upstream.isUp = answer.statusCode === 200
    setTimeout(probe, PROBE_MS, upstream)
  })
  asked.on('timeout', () => asked.destroy(new Error('silent')))
  asked.on('error', () => {
    upstream.isUp = false
    setTimeout(probe, PROBE_MS, upstream)
  })
  asked.end()
}

/** Those that are up, beginning with the one whose turn it is; all, when none seems to be. */
function order(): Upstream[] {
  turn = (turn + 1) % upstreams.length
  const inTurn = [...upstreams.slice(turn), ...upstreams.slice(0, turn)]
  const up = inTurn.filter(({ isUp }) => isUp)
  return up.length > 0 ? up : inTurn
}

function pass(request: IncomingMessage, response: ServerResponse, body: Buffer, rest: Upstream[]) {
  const [upstream, ...others] = rest
  if (upstream === undefined) return void refuse(response)
  const { url: path, method } = request
  const from = request.socket.remoteAddress ?? ''
  const headers = {
    ...request.headers,
    'x-forwarded-for': [request.headers['x-forwarded-for'], from].flat().join(', '),
  }
  const { port, agent } = upstream
  let hasAnswered = false
  const asked = send(
    { host: '127.0.0.1', port, agent, path, method, headers, timeout: ANSWER_TIMEOUT_MS },
    (answer) => {
      hasAnswered = true
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    },
  )
  asked.on('timeout', () => asked.destroy(new Error('silent')))
  asked.on('error', (error: NodeJS.ErrnoException) => {
    if (hasAnswered) return void response.destroy()
    const isUnsent = error.code === 'ECONNREFUSED' || (asked.reusedSocket && error.code === 'ECONNRESET')
    if (error.code === 'ECONNREFUSED') upstream.isUp = false
    if (isUnsent || method === 'GET' || method === 'HEAD') pass(request, response, body, others)
    else refuse(response)
  })
  response.on('close', () => void (response.writableEnded || asked.destroy()))
  asked.end(body)
}

function refuse(response: ServerResponse) {
  if (response.destroyed || response.headersSent) return
  response.writeHead(502, { 'content-type': 'text/plain' }).end('no coordinator has answered')
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('error', () => {})
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => pass(request, response, Buffer.concat(chunks), order()))
})
// An idle connection that the other side is just closing is a lost request.
server.keepAliveTimeout = 120_000
for (const upstream of upstreams) probe(upstream)
server.listen(Number(process.env.PORT), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ msg: 'Started the balancer' })}\n`)
})
