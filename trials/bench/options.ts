import { parseArgs } from 'node:util'

export type Options = {
  suites: readonly string[]
  rounds: number
  isQuick: boolean
  fixtures: string
  jsonFile: string | undefined
  plotsFolder: string | undefined
  pageFile: string | undefined
}

/** What the command line asks for. `known` are the names of suites, in their order; without a name all of them run. */
export function parseOptions(argv: readonly string[], known: readonly string[]): Options | 'help' | 'invalid' {
  let parsed: ReturnType<typeof parse>
  try {
    parsed = parse(argv)
  } catch {
    return 'invalid'
  }
  const { values, positionals } = parsed
  if (values.help === true) return 'help'
  if (positionals.some((name) => !known.includes(name)) || !/^[1-9][0-9]{0,2}$/.test(values.rounds)) return 'invalid'
  return {
    suites: known.filter((name) => positionals.length === 0 || positionals.includes(name)),
    rounds: Number(values.rounds),
    isQuick: values.quick === true,
    fixtures: values.fixtures,
    jsonFile: values.json,
    plotsFolder: values.plots,
    pageFile: values.page,
  }
}

export function toUsage(known: readonly string[]): string {
  return `usage: npm run bench [-- SUITE… --rounds N --json FILE --plots DIR --page FILE --quick --fixtures DIR]

Suites: ${known.join(', ')}; without a name all of them, in this order
  --rounds N       repeats in which all candidates take turns (default 5)
  --json FILE      the whole result, with what the machine is and, of growth, the plans of the database
  --plots DIR      figures as SVG, of the suites that ran
  --page FILE      puts the reports of the suites that ran into a page, such as docs/performance.md
  --quick          small sizes, to try it out: the figures mean little
  --fixtures DIR   evidence to measure on (default ../shared/fixtures; simulated evidence where that is not there)`
}

function parse(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      json: { type: 'string' },
      plots: { type: 'string' },
      page: { type: 'string' },
      quick: { type: 'boolean' },
      fixtures: { type: 'string', default: '../shared/fixtures' },
      help: { type: 'boolean' },
    },
  })
}
