import { formatRows, type Row, runSituation, situations } from './runSituations.ts'

const rows: Row[] = []
for (const situation of situations) rows.push(await runSituation(situation))
console.log(formatRows(rows))
if (!rows.every(({ isExpected }) => isExpected)) process.exitCode = 1
