import { readArguments } from '../../scripts/readArguments.ts'
import type { Hit } from './runCluster.ts'

const USAGE = `usage: npm run cluster -- [--rounds N] [--failovers N] [--connections N,N] [--witnesses]

Starts the whole topology on loopback: PostgreSQL, 3 coordinators behind a round-robin balancer, 2 workers, 2 enclaves with one root
secret and attested TLS. Kills, freezes and stops its processes one after the other under load, and compares the throughput of three
coordinators with that of one.
  --rounds N          rounds of the comparison, each in turns (default 5; 0 leaves it out)
  --failovers N       times that each process is hit in each way (default 2)
  --connections N,N   at which the comparison is made (default 64,256)
  --witnesses         each enclave insists on a log, which 3 witnesses cosign; they are killed and frozen too
  --help              says this

Example: npm run cluster -- --rounds 0 --failovers 1
Exit codes: 0 no fault, 1 faults, 2 wrong arguments.`

const { values } = readArguments(
  {
    rounds: { type: 'string', default: '5' },
    failovers: { type: 'string', default: '2' },
    connections: { type: 'string', default: '64,256' },
    witnesses: { type: 'boolean', default: false },
  },
  USAGE,
)
/** No request notices that a worker dies; it is killed for the sake of its proofs. */
const FAULTS = {
  enclave: ['killed', 'frozen', 'stopped'],
  coordinator: ['killed', 'stopped'],
  worker: ['killed'],
  witness: ['killed', 'frozen'],
} as const

function listHits(topology: Record<keyof typeof FAULTS, number>, times: number): Hit[] {
  const kinds = Object.entries(FAULTS).filter(([kind]) => values.witnesses || kind !== 'witness')
  const once = kinds.flatMap(([kind, faults]) =>
    faults.flatMap((fault) =>
      Array.from({ length: topology[kind as keyof typeof FAULTS] }, (_, index) => ({
        name: `${kind} ${index + 1}`,
        fault,
      })),
    ),
  )
  return Array.from({ length: times }, () => once).flat()
}

const [rounds = -1, failovers = -1] = [values.rounds, values.failovers].map(Number)
const connections = values.connections.split(',').map(Number)
const isValid =
  [rounds, failovers].every((count) => Number.isSafeInteger(count) && count >= 0) &&
  connections.every((count) => Number.isSafeInteger(count) && count > 0 && count <= 1024)

if (!isValid) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  // After the arguments are read: it takes seconds to load.
  const [{ runCluster }, { topology }] = await Promise.all([import('./runCluster.ts'), import('./startCluster.ts')])
  const report = await runCluster({
    hits: listHits(topology, failovers),
    rounds,
    connections,
    hasLog: values.witnesses,
    say: (line) => console.log(line),
  })
  console.log('\nprocess          did')
  for (const { member, count, of } of report.work) console.log(`${member.padEnd(16)} ${count} ${of}`)
  console.log('\nfault                        times   requests   failed   longest wait ms')
  for (const [name, hits] of Map.groupBy(report.failovers, ({ member, fault }) => `${member.split(' ')[0]} ${fault}`)) {
    const failed = hits.reduce((sum, { failures }) => sum + failures.length, 0)
    const count = hits.reduce((sum, hit) => sum + hit.count, 0)
    const longest = Math.max(...hits.map(({ longestMs }) => longestMs))
    const cells = [String(hits.length).padStart(5), String(count).padStart(10), String(failed).padStart(8)]
    console.log(`${name.padEnd(28)} ${cells.join(' ')} ${longest.toFixed(0).padStart(17)}`)
  }
  if (report.throughputs.length > 0) console.log('\nconnections   one coordinator/s   three/s   ratio   discarded')
  for (const { connections: at, one, all, ratio, discarded } of report.throughputs) {
    const cells = [one.toFixed(0).padStart(19), all.toFixed(0).padStart(9), ratio.toFixed(2).padStart(7)]
    console.log(`${String(at).padStart(11)} ${cells.join(' ')} ${String(discarded).padStart(11)}`)
  }
  for (const fault of report.faults) console.error(`fault: ${fault}`)
  process.exitCode = report.faults.length > 0 ? 1 : 0
}
