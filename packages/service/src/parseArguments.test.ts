import { describe, expect, test } from 'vitest'
import { parseArguments } from './parseArguments.ts'

const OPTIONS = {
  port: { type: 'string', default: '1' },
  verbose: { type: 'boolean' },
  db: { type: 'string' },
} as const
const parse = (...args: string[]) => parseArguments(args, OPTIONS)

describe('the command line of a program', () => {
  test('returns the given options, or the defaults', () => {
    expect(parse('--verbose')).toMatchObject({ kind: 'run', values: { port: '1', verbose: true }, positionals: [] })
  })

  test.each([['--help'], ['-h'], ['--port', 'x', '--help']])('%s: help', (...args) => {
    expect(parse(...args)).toEqual({ kind: 'help' })
  })

  test.each([
    ['one that is nearly known', ['--prot', '1'], "Unknown option '--prot'. Did you mean --port?"],
    ['one with a letter too many', ['--verbosee'], "Unknown option '--verbosee'. Did you mean --verbose?"],
    ['one that is nothing like any', ['--fast'], "Unknown option '--fast'. See --help."],
    ['a short one, near everything', ['--ab'], "Unknown option '--ab'. See --help."],
    ['no value', ['--port'], "Option '--port <value>' argument missing. See --help."],
    ['a value that none is taken for', ['--verbose=yes'], "Option '--verbose' does not take an argument. See --help."],
    ['a word', ['more'], /^Unexpected argument 'more'.* See --help\.$/],
    ['a member of every object', ['--constructor'], "Unknown option '--constructor'. See --help."],
    ['an unknown one, and help', ['--fast', '--help'], "Unknown option '--fast'. See --help."],
  ])('%s is named, with a hint', (_, args, fault) => {
    const parsed = parse(...args)
    expect(parsed.kind).toBe('fault')
    if (parsed.kind !== 'fault') return
    if (typeof fault === 'string') expect(parsed.fault).toBe(fault)
    else expect(parsed.fault).toMatch(fault)
  })

  test('accepts positional arguments if the program allows them', () => {
    const parsed = parseArguments(['one', '--verbose', 'two'], OPTIONS, { takesPositionals: true })
    expect(parsed).toMatchObject({ kind: 'run', positionals: ['one', 'two'] })
  })
})
