import { parseArguments } from '@countersign/service'

export type Options<Suite extends string = string> = {
  suites: readonly Suite[]
  rounds: number
  isQuick: boolean
  fixtures: string
  jsonFile: string | undefined
  plotsFolder: string | undefined
  pageFile: string | undefined
  summaryFile: string | undefined
  against: string | undefined
  isBudget: boolean
}

const OPTIONS = {
  rounds: { type: 'string', default: '5' },
  json: { type: 'string' },
  plots: { type: 'string' },
  page: { type: 'string' },
  summary: { type: 'string' },
  quick: { type: 'boolean' },
  fixtures: { type: 'string', default: '../shared/fixtures' },
  against: { type: 'string' },
  budget: { type: 'boolean' },
} as const

/** What the command line asks for. `known` are the names of suites, in their order; without a name all of them run. */
export function parseOptions<Suite extends string>(
  argv: readonly string[],
  known: readonly Suite[],
): Options<Suite> | 'help' | { fault: string } {
  const parsed = parseArguments(argv, OPTIONS, { takesPositionals: true })
  if (parsed.kind === 'help') return 'help'
  if (parsed.kind === 'fault') return { fault: parsed.fault }
  const { values, positionals } = parsed
  const unknown = positionals.find((name) => !known.some((each) => each === name))
  if (unknown !== undefined) return { fault: `There is no suite ${unknown}.` }
  if (!/^[1-9][0-9]{0,2}$/.test(values.rounds)) return { fault: '--rounds: expected a number from 1 to 999' }
  if (values.summary !== undefined && values.page === undefined) return { fault: '--summary: needs --page' }
  if (values.budget === true && !positionals.includes('sign')) return { fault: '--budget: is of the suite sign' }
  return {
    suites: known.filter((name) => positionals.length === 0 || positionals.includes(name)),
    rounds: Number(values.rounds),
    isQuick: values.quick === true,
    fixtures: values.fixtures,
    jsonFile: values.json,
    plotsFolder: values.plots,
    pageFile: values.page,
    summaryFile: values.summary,
    against: values.against,
    isBudget: values.budget === true,
  }
}

export function toUsage(known: readonly string[]): string {
  return `usage: npm run bench [-- SUITE… --rounds N --json FILE --plots DIR --page FILE --summary FILE --quick --fixtures DIR --against DIR --budget]

Suites: ${known.join(', ')}; without a name all of them, in this order
  --rounds N       repeats in which all candidates take turns (default 5)
  --json FILE      the whole result, with what the machine is and, of growth, the plans of the database
  --plots DIR      figures as SVG, of the suites that ran
  --page FILE      puts the reports of the suites that ran into a page, such as docs/performance.md
  --summary FILE   puts the main figures of that page into another, such as README.md
  --quick          small sizes, to try it out: the figures mean little
  --fixtures DIR   evidence to measure on (default ../shared/fixtures; simulated evidence where that is not there)
  --against DIR    another checkout, ready to run, whose services \`sign\` and \`vaults\` measure beside these, in turns
  --budget         of \`sign\`, only where the processor time of a signature goes, by process, thread and stage
  --help           says this

Example: npm run bench -- sign --rounds 3 --json sign.json
         npm run bench -- sign --budget --against ../before
Exit codes: 0 measured, 1 a suite failed, 2 wrong arguments.`
}
