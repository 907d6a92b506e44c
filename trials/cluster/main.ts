import { readArguments } from '../../scripts/readArguments.ts'
import type { Hit } from './runCluster.ts'

const USAGE = `usage: npm run cluster -- [--rounds N] [--failovers N] [--connections N,N] [--witnesses]

Starts the whole topology on loopback: PostgreSQL, 3 coordinators behind HAProxy with the file that is deployed (a balancer of ours where
HAProxy is not installed), 2 workers, 2 enclaves with one root secret and attested TLS. Kills, freezes and stops its processes one after
the other under load, and compares the throughput of three coordinators with that of one, behind a balancer of ours.
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

/** As a table in Markdown, for the pages that show it. */
function print(head: readonly string[], rows: readonly (readonly (string | number)[])[]) {
  if (rows.length === 0) return
  console.log()
  for (const cells of [head, head.map(() => '---'), ...rows]) console.log(`| ${cells.join(' | ')} |`)
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
  print(
    ['Process', 'Did'],
    report.work.map(({ member, count, of }) => [member, `${count} ${of}`]),
  )
  const byFault = Map.groupBy(report.failovers, ({ member, fault }) => `${member.split(' ')[0]} ${fault}`)
  print(
    ['What', 'Times', 'Requests at or after it', 'Failed', 'Longest wait'],
    [...byFault].map(([name, hits]) => {
      const count = hits.reduce((sum, hit) => sum + hit.count, 0)
      const failed = hits.reduce((sum, { failures }) => sum + failures.length, 0)
      const longest = Math.max(...hits.map(({ longestMs }) => longestMs))
      return [name, hits.length, count, failed, `${longest.toFixed(0)} ms`]
    }),
  )
  print(
    ['Connections', 'One coordinator', 'Three', 'Ratio', 'Rounds discarded', 'Disturbed all the same'],
    report.throughputs.map(({ connections: at, one, all, ratio, discarded, disturbed }) => [
      at,
      `${one.toFixed(0)} /s`,
      `${all.toFixed(0)} /s`,
      ratio.toFixed(2),
      discarded,
      disturbed,
    ]),
  )
  for (const fault of report.faults) console.error(`fault: ${fault}`)
  process.exitCode = report.faults.length > 0 ? 1 : 0
}
