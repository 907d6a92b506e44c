import { describe, expect, test } from 'vitest'
import { parseOptions, toUsage } from './options.ts'

const known = ['sign', 'reads', 'growth']

describe('parseOptions', () => {
  test('without a name all suites run, in their order', () => {
    expect(parseOptions([], known)).toMatchObject({
      suites: known,
      rounds: 5,
      isQuick: false,
      isBudget: false,
      jsonFile: undefined,
    })
  })

  test('named suites run once, in their own order', () => {
    expect(parseOptions(['growth', 'sign', 'sign'], known)).toMatchObject({ suites: ['sign', 'growth'] })
  })

  test('takes numbers and files', () => {
    const argv = [
      'sign',
      '--rounds',
      '12',
      '--json',
      'a.json',
      '--plots',
      'b',
      '--page',
      'd',
      '--summary',
      'f',
      '--quick',
      '--fixtures',
      'c',
      '--against',
      'e',
      '--budget',
    ]
    expect(parseOptions(argv, known)).toEqual({
      suites: ['sign'],
      rounds: 12,
      isQuick: true,
      fixtures: 'c',
      jsonFile: 'a.json',
      plotsFolder: 'b',
      pageFile: 'd',
      summaryFile: 'f',
      against: 'e',
      isBudget: true,
    })
  })

  test.each([
    [['attestation']],
    [['sign', 'Reads']],
    [['']],
    [['--rounds', '0']],
    [['--rounds', '-1']],
    [['--rounds', '1.5']],
    [['--rounds', '1e1']],
    [['--rounds', '1000']],
    [['--rounds', '']],
    [['--rounds']],
    [['--json']],
    [['--summary', 'README.md']],
    [['--against']],
    [['sign', '--budget=yes']],
    [['--budget']],
    [['reads', '--budget']],
    [['--fast']],
    [['--quick=yes']],
  ])('%j is refused', (argv) => {
    expect(parseOptions(argv, known)).toEqual({ fault: expect.any(String) })
  })

  test('help comes before everything else, and names every suite', () => {
    expect(parseOptions(['--help', 'nothing'], known)).toBe('help')
    for (const name of known) expect(toUsage(known)).toContain(name)
  })
})
