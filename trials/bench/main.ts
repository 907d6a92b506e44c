import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeMachine, readMachine } from './machine.ts'
import { type Options, parseOptions, toUsage } from './options.ts'
import { fillPage } from './page.ts'
import { toPlots } from './plots/toPlots.ts'
import type { Report } from './report.ts'
import { type SuiteName, suiteNames } from './suiteNames.ts'
import { fillSummary } from './summary.ts'
import { toText } from './table.ts'

const options = parseOptions(process.argv.slice(2), suiteNames)

if (options === 'help') {
  console.log(toUsage(suiteNames))
} else if ('fault' in options) {
  console.error(`${options.fault}\n\n${toUsage(suiteNames)}`)
  process.exitCode = 2
} else {
  await run(options)
}

async function run({ jsonFile, plotsFolder, pageFile, summaryFile, ...asked }: Options<SuiteName>) {
  // After the arguments are read: it takes seconds to load.
  const { suites } = await import('./suites.ts')
  const machine = await readMachine(new Date())
  console.log(`${describeMachine(machine)}\n`)
  const reports: (Report & { seconds: number })[] = []
  const failed: string[] = []
  for (const name of asked.suites) {
    const startedAt = performance.now()
    const toSeconds = () => Math.round((performance.now() - startedAt) / 1000)
    // Progress is not part of the result: that goes to the other stream.
    const say = (text: string) => console.error(`[${name} ${toSeconds()} s] ${text}`)
    say('started')
    try {
      for (const report of [await suites[name]({ ...asked, say })].flat()) {
        reports.push({ ...report, seconds: toSeconds() })
        console.log(toText(report))
        if (plotsFolder !== undefined) await writePlots(plotsFolder, report)
        if (pageFile !== undefined) await edit(pageFile, (page) => fillPage(page, [report], machine))
      }
    } catch (error) {
      // What the others have measured is not lost with it.
      console.error(error)
      failed.push(name)
      process.exitCode = 1
    }
    if (jsonFile !== undefined) {
      await writeFile(jsonFile, `${JSON.stringify({ machine, options: asked, failed, reports }, null, 2)}\n`)
    }
  }
  if (pageFile === undefined || summaryFile === undefined) return
  const page = await readFile(pageFile, 'utf8')
  await edit(summaryFile, (readme) => fillSummary(readme, page))
}

async function writePlots(folder: string, report: Report) {
  await mkdir(folder, { recursive: true })
  for (const { file, svg } of toPlots(report)) await writeFile(join(folder, file), svg)
}

async function edit(file: string, change: (text: string) => string) {
  await writeFile(file, change(await readFile(file, 'utf8')))
}
