import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttackContext, AttackResult } from '../attack.ts'
import type { Target } from '../startTarget.ts'

const PER_ADDRESS = 5

type Stream = { socket: Socket; status: Promise<number> }

/** Event streams that are opened but never read: their number per address is limited, and they use little memory. */
export async function eventStreams({ target, size, say }: AttackContext): Promise<AttackResult> {
  const faults: string[] = []
  // A trusted proxy allows any number of addresses. Without it, all connections come from this machine.
  const addresses = size === 'full' ? 40 : 1
  if (size === 'full') await target.restart({ TRUSTED_PROXIES: '127.0.0.1' })
  const { slug } = await (await target.alice.sign(target.nextTx())).json()
  const streams: Stream[] = []
  let [tried, refused] = [0, 0]

  const openFrom = (address: string) => {
    tried += 1
    return open(target, slug, address)
  }
  try {
    const before = await target.memoryMb()
    for (let index = 0; index < addresses; index++) {
      // Two more than the limit, all at once.
      const own = Array.from({ length: PER_ADDRESS + 2 }, () => openFrom(`198.51.100.${index + 1}`))
      const statuses = await Promise.all(own.map(({ status }) => status))
      refused += statuses.filter((status) => status === 429).length
      if (statuses.toSorted().join() !== [200, 200, 200, 200, 200, 429, 429].join())
        faults.push(`statuses for one address: ${statuses}`)
      streams.push(...own)
    }
    say(`${addresses * PER_ADDRESS} streams are open`)
    const during = await target.memoryMb()
    const signed = await target.alice.sign(target.nextTx())
    if (signed.status !== 200) faults.push(`an honest signature request failed with ${signed.status}`)
    await signed.body?.cancel()
    for (const { socket } of streams) socket.destroy()
    // A closed stream must free its slot.
    let last = 0
    for (let wait = 0; wait < 100 && last !== 200; wait++) {
      await sleep(50)
      const again = openFrom('198.51.100.1')
      last = await again.status
      again.socket.destroy()
    }
    if (last !== 200) faults.push('closed streams still count towards the limit')
    if (size === 'full') await sleep(3000)
    const after = await target.memoryMb()
    return {
      tried,
      figures: {
        open: addresses * PER_ADDRESS,
        'rejected beyond five': refused,
        memory: `${before} MB before, ${during} MB during, ${after} MB after`,
      },
      faults,
    }
  } finally {
    for (const { socket } of streams) socket.destroy()
  }
}

/** Reads only the status. */
function open({ port }: Target, slug: string, address: string): Stream {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /proof/${slug}/events HTTP/1.1\r\nHost: localhost:${port}\r\nX-Forwarded-For: ${address}\r\n\r\n`)
  const status = new Promise<number>((resolve) => {
    socket.once('data', (chunk) => {
      socket.pause()
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1]))
    })
    socket.once('error', () => resolve(0))
    socket.once('close', () => resolve(0))
  })
  return { socket, status }
}
