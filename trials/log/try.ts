import { runSignings } from './runSignings.ts'

const t = performance.now()
console.log(
  JSON.stringify(
    await runSignings({
      count: Number(process.argv[2] ?? 200),
      seed: Number(process.argv[3] ?? 1),
      callers: 16,
      receipts: 20,
      say: (l) => console.log(((performance.now() - t) / 1000).toFixed(1), l),
    }),
    null,
    1,
  ),
)
process.exit(0)
