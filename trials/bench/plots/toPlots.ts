import { stages } from '../budget/stages.ts'
import type { Report, Row, Series } from '../report.ts'
import { drawBars } from './drawBars.ts'
import { drawLines } from './drawLines.ts'
import { drawStacks } from './drawStacks.ts'

export type Plot = { file: string; svg: string }

/** The figures of a report; none for those that are said in two numbers. */
export function toPlots(report: Report): Plot[] {
  return plots[report.suite]?.(report) ?? []
}

const plots: Readonly<Record<string, (report: Report) => Plot[]>> = {
  verification: (report) => [
    {
      file: 'verification.svg',
      svg: drawBars({
        title: 'Verifying a quote',
        label: 'milliseconds, fewer are better',
        unit: 'ms',
        bars: report.rows,
      }),
    },
  ],
  startup: (report) => [
    {
      file: 'startup.svg',
      svg: drawBars({ title: 'Start-up', label: 'seconds, fewer are better', unit: 's', bars: report.rows }),
    },
  ],
  enclave: (report) => [
    {
      file: 'enclave.svg',
      svg: drawLines({
        title: 'Signatures of one enclave',
        xLabel: 'callers',
        yLabel: 'signatures a second',
        isLogarithmic: true,
        series: [
          toSeries(report, 'signatures', 'group commit'),
          toSeries(report, 'signatures, one quote each', 'one quote each'),
        ],
      }),
    },
  ],
  sign: (report) => {
    const toLimits = (unit: string) => report.limits?.filter((limit) => limit.unit === unit) ?? []
    const lines = { xLabel: 'connections', isLogarithmic: true }
    return [
      {
        file: 'sign-rate.svg',
        svg: drawLines({
          ...lines,
          title: 'Signatures through the coordinator',
          yLabel: 'signatures a second',
          series: toFound(report, {
            signatures: 'one quote for many',
            'signatures, the other checkout': 'the other checkout',
          }),
          limits: toLimits('/s'),
        }),
      },
      {
        file: 'sign-latency.svg',
        svg: drawLines({
          ...lines,
          title: 'Time to a signature through the coordinator',
          yLabel: 'milliseconds',
          series: toFound(report, { p50: 'p50', 'p50, the other checkout': 'p50, the other checkout' }),
          limits: toLimits('ms'),
        }),
      },
    ]
  },
  budget: ({ stacks = [] }) => [
    {
      file: 'budget.svg',
      svg: drawStacks({
        title: 'Processor time of a signature',
        label: 'milliseconds for each signature, fewer are better',
        unit: 'ms',
        parts: stages,
        stacks,
      }),
    },
  ],
  memory: ({ series = [] }) => [
    {
      file: 'memory.svg',
      svg: drawLines({ title: 'Memory while signing, then idle', xLabel: 'seconds', yLabel: 'MiB resident', series }),
    },
  ],
  pipeline: ({ rows }) => [
    {
      file: 'pipeline.svg',
      svg: drawBars({
        title: 'Proofs published',
        label: 'proofs a second, more are better',
        unit: '/s',
        bars: rows.filter(({ unit }) => unit === '/s'),
      }),
    },
  ],
  growth: (report) =>
    ['signing', 'proof reads'].map((name) => ({
      file: `growth-${name.replace(' ', '-')}.svg`,
      svg: drawLines({
        title: `p99 of ${name} as proofs pile up`,
        xLabel: 'stored proofs',
        yLabel: 'milliseconds',
        isLogarithmic: true,
        series: toNames(report.rows.filter((row) => row.name.startsWith(name) && row.name.endsWith('p99'))).map(
          (full) => toSeries(report, full, full.replace(`${name}, `, '').replace(', p99', '')),
        ),
      }),
    })),
}

/** The rows of one name, over what they are at; those that could not be measured are left out. */
function toSeries({ rows }: Report, name: string, label: string): Series {
  return {
    name: label,
    points: rows.flatMap((row) =>
      row.name === name && row.at !== undefined && Number.isFinite(row.value)
        ? [[row.at.value, row.value] as const]
        : [],
    ),
  }
}

/** By what they are called here; those that were not measured are left out. */
function toFound(report: Report, labels: Readonly<Record<string, string>>): Series[] {
  return Object.entries(labels)
    .map(([name, label]) => toSeries(report, name, label))
    .filter(({ points }) => points.length > 0)
}

function toNames(rows: readonly Row[]): string[] {
  return [...new Set(rows.map(({ name }) => name))]
}
