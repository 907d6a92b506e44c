import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run retention -- [--proofs N] [--receipts VERSION]

Fills a PostgreSQL with complete proofs and an IPFS node with their receipts, drops the receipts that are older than 30 days from the
database (the first worker is killed on its way), and reads every proof over HTTP: each must be what it was.
  --proofs N           how many (default 1000000; takes some 20 minutes of two free cores and 15 GB of disk with receipts of version 2)
  --receipts VERSION   1 or 2 (default 2): of 26 kB, or of 2 kB
  --help               says this

Example: npm run retention -- --proofs 20000 --receipts 1
Exit codes: 0 all answers are what they were, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments(
  { proofs: { type: 'string', default: '1000000' }, receipts: { type: 'string', default: '2' } },
  USAGE,
)
const proofs = Number(values.proofs)
const version = Number(values.receipts)
if (!Number.isSafeInteger(proofs) || proofs < 1_000 || (version !== 1 && version !== 2)) {
  refuseArguments('--proofs is a number from 1000, and --receipts 1 or 2.', USAGE)
}

// After the arguments are read: it takes a second to load.
const { runRetention } = await import('./runRetention.ts')
const startedAt = performance.now()
const elapsed = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`
const report = await runRetention({ proofs, version, say: (text) => console.log(`${elapsed().padStart(6)}  ${text}`) })
const { filled, afterVacuum, afterFull, seconds } = report
const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const share = (bytes: number) => `${(100 * (1 - bytes / filled.database)).toFixed(0)} %`
console.log(`${report.proofs} proofs, receipts of ${report.receiptBytes} bytes: ${report.dropped} on IPFS alone, ${report.held} in the database
database:             ${mib(filled.database)} before, ${mib(afterVacuum.database)} after VACUUM, ${mib(afterFull.database)} after VACUUM FULL (${share(afterFull.database)} less)
of that attestations: ${mib(filled.attestations)} before, ${mib(afterVacuum.attestations)} after VACUUM, ${mib(afterFull.attestations)} after VACUUM FULL
dropped:              ${mib(report.droppedBytes)} as they were stored; the first worker was killed after ${report.killedAt}
GET /proof/:slug:     ${report.read} answers, ${report.wrong.length} wrong
time:                 fill ${seconds.fill.toFixed(0)} s, drop ${seconds.drop.toFixed(0)} s, read ${seconds.read.toFixed(0)} s; ${elapsed()} in all`)
for (const fault of report.wrong) console.log(`wrong: ${fault}`)
if (report.wrong.length > 0 || report.read !== proofs) process.exitCode = 1
