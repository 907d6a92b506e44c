import { describe, expect, test } from 'vitest'
import { stages } from './budget/stages.ts'
import { drawBars } from './plots/drawBars.ts'
import { drawLines } from './plots/drawLines.ts'
import { drawStacks } from './plots/drawStacks.ts'
import { toLinear, toLogarithmic } from './plots/scale.ts'
import { toPlots } from './plots/toPlots.ts'
import type { Report, Row } from './report.ts'

/** Every element is closed, in order, and no attribute has a number that is none. */
function expectWellFormed(svg: string) {
  const open: string[] = []
  for (const [, isEnd, name = '', isEmpty] of svg.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/g)) {
    if (isEnd) expect(open.pop()).toBe(name)
    else if (!isEmpty) open.push(name)
  }
  expect(open).toEqual([])
  expect(svg).not.toMatch(/NaN|undefined|Infinity/)
}

describe('scales', () => {
  test.each([
    [[1], [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [
      [1_476, 3],
      [0, 500, 1_000, 1_500],
    ],
    [
      [0.39, 12.6],
      [0, 5, 10, 15],
    ],
    [[100], [0, 20, 40, 60, 80, 100]],
  ])('of %j has round ticks from 0 to beyond the largest', (values, ticks) => {
    const scale = toLinear(values, [0, 100])
    expect(scale.ticks).toEqual(ticks)
    expect(scale.place(0)).toBe(0)
    expect(scale.place(Math.max(...values))).toBeLessThanOrEqual(100)
  })

  test('of nothing but zero is still a scale', () => {
    expect(toLinear([0], [0, 100]).place(0)).toBe(0)
  })

  test('a logarithmic one gives equal factors equal room', () => {
    const scale = toLogarithmic([1, 16, 256, 16], [0, 100])
    expect(scale.ticks).toEqual([1, 16, 256])
    expect(scale.place(1)).toBe(0)
    expect(scale.place(16)).toBeCloseTo(50)
    expect(scale.place(256)).toBeCloseTo(100)
    expect(toLogarithmic([7], [0, 100]).place(7)).toBe(50)
  })
})

describe('drawings', () => {
  test('lines have title, labels, names and values', () => {
    const svg = drawLines({
      title: 'Rates & <times>',
      xLabel: 'connections',
      yLabel: 'signatures a second',
      isLogarithmic: true,
      series: [
        {
          name: 'batched',
          points: [
            [1, 21],
            [256, 1_476],
          ],
        },
        {
          name: 'single',
          points: [
            [1, 21],
            [256, 25],
          ],
        },
      ],
    })
    expectWellFormed(svg)
    for (const text of [
      'Rates &#38; &#60;times&#62;',
      'connections',
      'signatures a second',
      'batched',
      'single',
      '1,476',
      '256',
    ]) {
      expect(svg).toContain(text)
    }
    expect(svg).toContain('prefers-color-scheme: dark')
  })

  test('bars have names and values, and the longest belongs to the largest', () => {
    const bars = [
      { name: 'warm', value: 0.39 },
      { name: 'cold', value: 3.4 },
    ]
    const svg = drawBars({ title: 'Verifying', label: 'milliseconds', unit: 'ms', bars })
    expectWellFormed(svg)
    for (const text of ['warm', 'cold', '0.39 ms', '3.40 ms']) expect(svg).toContain(text)
    const [, first = '', second = ''] = [...svg.matchAll(/<rect [^>]*width="([0-9.]+)"/g)].map(([, width]) => width)
    expect(Number(second)).toBeGreaterThan(Number(first))
  })

  test('a limit is drawn across, within the picture, with its name', () => {
    const points = [[1, 20] as const, [256, 40] as const]
    const series = [{ name: 'batched', points }]
    const limits = [{ name: 'the most & <best>', value: 90, unit: '/s' }]
    const svg = drawLines({ title: 'x', xLabel: 'x', yLabel: 'y', isLogarithmic: true, series, limits })
    expectWellFormed(svg)
    expect(svg).toContain('the most &#38; &#60;best&#62;: 90 /s')
    const y = Number(/<line class="limit"[^>]* y1="([0-9.]+)"/.exec(svg)?.[1])
    expect(y).toBeGreaterThan(56)
    expect(y).toBeLessThan(400)
  })

  test('stacks have names, sums and the parts that there are, one beside the other', () => {
    const stacks = [
      {
        name: 'coordinator',
        parts: [
          { name: 'HTTP', value: 0.25 },
          { name: 'checks', value: 0.5 },
        ],
      },
      { name: 'PostgreSQL', parts: [{ name: 'checks', value: 0.2 }] },
    ]
    const parts = ['HTTP', 'parse', 'checks']
    const svg = drawStacks({ title: 'Budget', label: 'milliseconds', unit: 'ms', parts, stacks })
    expectWellFormed(svg)
    for (const text of ['coordinator', 'PostgreSQL', '0.75 ms', '0.20 ms', 'HTTP 0.25 ms', 'milliseconds'])
      expect(svg).toContain(text)
    expect(svg).not.toContain('parse')
    const drawn = [...svg.matchAll(/<rect class="part fill(\d)" x="([0-9.]+)"[^>]* width="([0-9.]+)"/g)]
    const [first, second, third] = drawn.map(([, colour, x, width]) => [colour, x, width].map(Number))
    expect([first?.[0], second?.[0], third?.[0]]).toEqual([0, 2, 2])
    expect(second?.[1]).toBeCloseTo((first?.[1] ?? 0) + (first?.[2] ?? 0), 0)
    expect(third?.[1]).toBe(first?.[1])
  })

  test('every stage of a budget has a colour', () => {
    const stacks = [{ name: 'all', parts: stages.map((name) => ({ name, value: 1 })) }]
    const svg = drawStacks({ title: 'x', label: 'x', unit: 'ms', parts: stages, stacks })
    for (const index of stages.keys()) expect(svg.split(`.fill${index} {`)).toHaveLength(3)
  })

  test('a figure that is not a number is no picture', () => {
    const bars = [{ name: 'broken', value: Number.NaN }]
    expect(() => drawBars({ title: 'x', label: 'x', unit: 'x', bars })).toThrow('not a number')
  })
})

describe('toPlots', () => {
  const atLoad = (name: string, of: string, values: readonly number[]): Row[] =>
    values.map((value) => ({ name, at: { value, of }, value: 10 * value, unit: 'ms' }))
  const reports: Record<string, Partial<Report>> = {
    verification: { rows: [{ name: 'warm', value: 1, unit: 'ms' }] },
    startup: { rows: [{ name: 'enclave', value: 1, unit: 's' }] },
    enclave: {
      rows: [...atLoad('signatures', 'callers', [1, 8]), ...atLoad('signatures, one quote each', 'callers', [1, 8])],
    },
    sign: {
      rows: ['signatures', 'p50', 'p50, the other checkout'].flatMap((name) => atLoad(name, 'connections', [1, 64])),
      limits: [
        { name: 'the most with one quote each', value: 26, unit: '/s' },
        { name: 'a quote', value: 39, unit: 'ms' },
      ],
    },
    budget: { stacks: [{ name: 'coordinator', parts: [{ name: 'HTTP', value: 0.2 }] }] },
    memory: {
      series: [
        {
          name: 'enclave',
          points: [
            [0, 80],
            [1, 90],
          ],
        },
      ],
    },
    pipeline: {
      rows: [
        { name: 'by the worker', value: 99, unit: '/s' },
        { name: 'gas', value: 5_859, unit: 'each' },
      ],
    },
    growth: {
      rows: ['signing, 16 connections, p99', 'proof reads, 64 connections, p99'].flatMap((name) =>
        atLoad(name, 'proofs', [10_000, 1_000_000]),
      ),
    },
  }

  test.each(Object.keys(reports))('%s', (suite) => {
    const plots = toPlots({ suite, title: suite, setting: '', rows: [], ...reports[suite] })
    expect(plots.length).toBeGreaterThan(0)
    for (const { file, svg } of plots) {
      expect(file).toMatch(/^[a-z-]+\.svg$/)
      expectWellFormed(svg)
    }
  })

  test('a suite that is said in a few numbers has none', () => {
    expect(toPlots({ suite: 'signin', title: '', setting: '', rows: [] })).toEqual([])
  })
})
