import type { Report, Row, Series } from '../report.ts'
import { drawBars } from './drawBars.ts'
import { drawLines } from './drawLines.ts'

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
  sign: (report) => [
    {
      file: 'sign-rate.svg',
      svg: drawLines({
        title: 'Signatures through the coordinator',
        xLabel: 'connections',
        yLabel: 'signatures a second',
        isLogarithmic: true,
        series: [
          toSeries(report, 'signatures', 'group commit'),
          toSeries(report, 'signatures, one quote each', 'one quote each'),
        ],
      }),
    },
    {
      file: 'sign-latency.svg',
      svg: drawLines({
        title: 'Time to a signature through the coordinator',
        xLabel: 'connections',
        yLabel: 'milliseconds',
        isLogarithmic: true,
        series: [toSeries(report, 'p50', 'p50'), toSeries(report, 'p99', 'p99')],
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

function toNames(rows: readonly Row[]): string[] {
  return [...new Set(rows.map(({ name }) => name))]
}
