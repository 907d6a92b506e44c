import { setTimeout } from 'node:timers/promises'
import { readResidentMib } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { type Report, type Run, toRow } from '../report.ts'
import { signMany } from '../signer.ts'
import { openBench } from '../stack.ts'

const CONNECTIONS = 64
/** In all, at each look. The first is the warm-up. */
const SIGNATURES = [5_000, 20_000]
const PART = 1_280
const IDLE_MS = 30_000

/** Resident size of enclave and coordinator: after the start, after so many signatures, and after a while without work. */
export function benchMemory({ isQuick, say }: Run): Promise<Report> {
  return withScope(async (scope) => {
    const counts = isQuick ? SIGNATURES.map((count) => count / 20) : SIGNATURES
    const idleMs = isQuick ? 2_000 : IDLE_MS
    const measured = await (await openBench(scope)).start()
    const processes = Object.entries(measured.stack.pids())
    const look = () => Promise.all(processes.map(([, pid]) => readResidentMib(pid)))
    const moments = [{ name: 'after the start', sizes: await look() }]
    let done = 0
    for (const count of counts) {
      say(`${count} signatures`)
      // In parts: requests that wait to be sent would make this process large, and slow.
      while (done < count) {
        const part = Math.min(PART, count - done)
        await signMany(measured, { ...measured, count: part, connections: CONNECTIONS })
        done += part
      }
      moments.push({ name: `after ${count.toLocaleString('en-GB')} signatures`, sizes: await look() })
    }
    say('idle')
    await setTimeout(idleMs)
    moments.push({ name: `after ${idleMs / 1000} s without work`, sizes: await look() })
    const warm = moments[1]
    return {
      suite: 'memory',
      title: 'Memory',
      setting: `Resident size of the processes, PostgreSQL, ${CONNECTIONS} connections that sign without a pause.`,
      rows: processes.flatMap(([process], index) =>
        moments.map(({ name, sizes }, position) => {
          const size = sizes[index] ?? Number.NaN
          const ratio = size / (warm?.sizes[index] ?? Number.NaN)
          return toRow(`${process}, ${name}`, size, 'MiB', position > 1 && warm ? { [warm.name]: ratio } : {})
        }),
      ),
    }
  })
}
