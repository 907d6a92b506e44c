import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttackContext, AttackResult } from '../attack.ts'
import type { HonestReport } from '../honestWorker.ts'
import { compareHonest, type Honest, startHonest } from '../startHonest.ts'
import type { Target } from '../startTarget.ts'

/** A slow connection: the first bytes, and those sent repeatedly. */
type Kind = {
  name: string
  first(target: Target): string
  drip?: string
  /** Never reads, or reads a little at a time. Others read everything. */
  reads?: 'nothing' | 'little'
}

const DRIP_MS = 2000
/** Limit for the slowdown of honest users. Generous, because the machine may be busy otherwise. */
const MOST_RATIO = 10
/** Exceeds the system's buffers, so that the service has to hold unread answers. */
const PIPELINED = 300

const post = ({ port, app, alice }: Target, framing: string) =>
  `POST /sign/digest HTTP/1.1\r\nHost: localhost:${port}\r\nOrigin: ${app}\r\nCookie: ${alice.cookie}\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`
const get = ({ port }: Target, path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`

const KINDS: readonly Kind[] = [
  { name: 'silent', first: () => '' },
  { name: 'slow headers', first: ({ port }) => `GET /health HTTP/1.1\r\nHost: localhost:${port}\r\nX-A: `, drip: 'a' },
  { name: 'slow bodies', first: (target) => post(target, 'Content-Length: 1000'), drip: ' ' },
  { name: 'slow chunks', first: (target) => post(target, 'Transfer-Encoding: chunked'), drip: '1\r\n \r\n' },
  { name: 'no readers', first: (target) => get(target, '/openapi.json').repeat(PIPELINED), reads: 'nothing' },
  { name: 'slow readers', first: (target) => get(target, '/openapi.json').repeat(PIPELINED), reads: 'little' },
  { name: 'idle', first: (target) => get(target, '/health') },
]

type Slow = { kind: Kind; socket: Socket; port: number; openedAt: number; cutAfterMs: number | undefined }

/** Connections that don't read make the service write megabytes, so fewer are enough. */
const LIMITS = {
  full: { each: 500, readers: 50, quietMs: 15_000, longestMs: 120_000, rounds: 2 },
  // The service's timeouts are longer than a test may take, so the short run only checks honest users.
  short: { each: 10, readers: 2, quietMs: 300, longestMs: 600, rounds: 1 },
} as const

/** Slowloris: connections that are slow in every way, while an honest user signs. */
export async function slowConnections({ target, size, say }: AttackContext): Promise<AttackResult> {
  const { quietMs, rounds } = LIMITS[size]
  const faults: string[] = []
  const honest = await startHonest(target)
  const all: Slow[] = []
  try {
    await sleep(quietMs / 5)
    await honest.take()
    await sleep(quietMs)
    const quiet = await honest.take()
    const memory = [await target.memoryMb()]
    const opening: HonestReport = { signings: [], pings: [], failures: [] }
    const held: HonestReport = { signings: [], pings: [], failures: [] }
    // The second round shows the effects of the first one.
    for (let round = 0; round < rounds; round++) {
      const seen = await holdConnections({ target, size, say, honest })
      all.push(...seen.slows)
      memory.push(seen.memory)
      for (const name of ['signings', 'pings'] as const) {
        opening[name].push(...seen.opening[name])
        held[name].push(...seen.held[name])
      }
      opening.failures.push(...seen.opening.failures)
      held.failures.push(...seen.held.failures)
    }
    for (const failure of new Set([...opening.failures, ...held.failures])) {
      faults.push(`an honest request failed meanwhile: ${failure}`)
    }
    const cuts: Record<string, string> = {}
    for (const { name } of KINDS) {
      const own = all.filter(({ kind }) => kind.name === name)
      const left = own.filter(({ cutAfterMs }) => cutAfterMs === undefined).length
      if (size === 'full' && left > 0) faults.push(`${left} connections of ${name} were never closed`)
      const times = own.map(({ cutAfterMs = 0 }) => cutAfterMs / 1000)
      cuts[`${name}: closed after`] = left > 0 ? `${left} still open` : `at most ${Math.max(...times).toFixed(0)} s`
    }
    const [before, ...during] = memory
    const compared = compareHonest(quiet, held)
    const burst = compareHonest(quiet, opening)
    if (size === 'full' && compared.p99Ratio > MOST_RATIO) {
      faults.push(`honest users waited ${compared.p99Ratio.toFixed(1)} times as long`)
    }
    return {
      tried: all.length,
      figures: {
        'honest success': compared.success,
        ...compared.figures,
        'honest p99 while connections are opened': burst.figures['honest p99'],
        ...cuts,
        memory: `${before} MB before, at most ${during.join(' and ')} MB in each round`,
      },
      faults,
    }
  } finally {
    await honest.stop()
  }
}

type Held = {
  slows: Slow[]
  /** Reports of the honest user while connections were opened, and while they were held. */
  opening: HonestReport
  held: HonestReport
  memory: number
}

/** Opens all connections and waits until the service has closed them. */
async function holdConnections(
  parameters: Pick<AttackContext, 'target' | 'size' | 'say'> & { honest: Honest },
): Promise<Held> {
  const { target, size, say, honest } = parameters
  const { each, readers, longestMs } = LIMITS[size]
  const slows: Slow[] = []
  let memory = 0
  const isLeft = ({ cutAfterMs }: Slow) => cutAfterMs === undefined
  async function refresh() {
    memory = Math.max(memory, await target.memoryMb())
    // Connections opened after the read would look closed.
    const known = slows.filter(isLeft)
    const callers = await listCallers(target.port)
    for (const slow of known) if (!callers.has(slow.port)) slow.cutAfterMs = performance.now() - slow.openedAt
  }
  const refreshing = setInterval(() => void refresh().catch(() => {}), 500)
  const dripping = setInterval(() => drip(slows), DRIP_MS)
  try {
    for (const kind of KINDS) {
      const count = kind.reads === undefined ? each : readers
      for (let index = 0; index < count; index++) slows.push(await open(target, kind))
    }
    const opening = await honest.take()
    say(`${slows.length} slow connections opened`)
    const startedAt = performance.now()
    while (slows.some(isLeft) && performance.now() - startedAt < longestMs) {
      await sleep(Math.min(longestMs, 5000))
      if (size === 'full') say(`${slows.filter(isLeft).length} slow connections still open`)
    }
    return { slows, opening, held: await honest.take(), memory }
  } finally {
    clearInterval(refreshing)
    clearInterval(dripping)
    for (const { socket } of slows) socket.destroy()
  }
}

function open(target: Target, kind: Kind): Promise<Slow> {
  return new Promise((resolve, reject) => {
    const socket = connect(target.port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      // The server is expected to close the connection.
      socket.on('error', () => {})
      if (kind.reads === undefined) socket.resume()
      socket.write(kind.first(target))
      resolve({ kind, socket, port: socket.localPort ?? 0, openedAt: performance.now(), cutAfterMs: undefined })
    })
  })
}

function drip(slows: readonly Slow[]) {
  for (const { kind, socket, cutAfterMs } of slows) {
    if (cutAfterMs !== undefined || socket.destroyed) continue
    if (kind.drip !== undefined && socket.writable) socket.write(kind.drip)
    if (kind.reads === 'little') socket.read(1024)
  }
}

/** Client ports of established connections to a local port, from the server's side. */
async function listCallers(port: number): Promise<Set<number>> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')))
  const callers = new Set<number>()
  for (const line of tables.join('\n').split('\n')) {
    const [, local = '', remote = '', state] = line.trim().split(/\s+/)
    if (state === '01' && local.endsWith(`:${hex}`)) callers.add(Number.parseInt(remote.split(':')[1] ?? '', 16))
  }
  return callers
}
