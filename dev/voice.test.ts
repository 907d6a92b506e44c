import { PassThrough } from 'node:stream'
import { WriteStream } from 'node:tty'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createVoice } from './voice.ts'

const ERROR = JSON.stringify({ level: 'error', msg: 'Could not pin', slug: 'abc' })
const INFO = JSON.stringify({ level: 'info', msg: 'Answered', status: 200 })
const ESCAPE = '\u001b['

function open({ isVerbose = false, isTerminal = false } = {}) {
  const output = new PassThrough()
  if (isTerminal) Object.assign(output, { isTTY: true, getColorDepth: WriteStream.prototype.getColorDepth })
  const voice = createVoice({ isVerbose, output })
  return { voice, read: () => String(output.read() ?? '') }
}

// Settings of the test machine must not matter.
beforeEach(() => {
  for (const name of ['NO_COLOR', 'NODE_DISABLE_COLORS', 'FORCE_COLOR', 'CI']) vi.stubEnv(name, undefined)
  vi.stubEnv('TERM', 'xterm-256color')
})
afterEach(() => void vi.unstubAllEnvs())

describe('the output of the local stack', () => {
  test('without --verbose: lines of the supervisor, and warnings and errors of running services', () => {
    const { voice, read } = open()
    voice.detail('chain', 'starting')
    voice.log('coordinator', INFO, { isStarting: false })
    voice.log('coordinator', ERROR, { isStarting: true })
    voice.log('web', 'VITE ready', { isStarting: false })
    expect(read()).toBe('')
    voice.log('coordinator', ERROR, { isStarting: false })
    voice.say('dev', 'one\ntwo')
    expect(read()).toBe('coordinator Could not pin  slug=abc\ndev         one\ndev         two\n')
  })

  test('at a terminal: colours, and only the address to open is bold and inverse', () => {
    const { voice, read } = open({ isTerminal: true })
    voice.say('dev', 'Hello')
    voice.log('coordinator', ERROR, { isStarting: false })
    const before = read()
    expect(before).toContain(ESCAPE)
    expect(before).not.toContain(`${ESCAPE}7m`)
    voice.shout('Open http://localhost:5173')
    const shouted = read()
    expect(shouted).toContain(`${ESCAPE}1m${ESCAPE}7m`)
    expect(stripVTControlCharacters(shouted)).toBe('\n     Open http://localhost:5173 \n\n')
  })

  test.each([
    ['NO_COLOR is set', { isTerminal: true }, { NO_COLOR: '1' }],
    ['it is no terminal', { isTerminal: false }, {}],
  ])('no colours if %s', (_, options, env) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    const { voice, read } = open(options)
    voice.say('dev', 'Hello')
    voice.log('coordinator', ERROR, { isStarting: false })
    voice.shout('Open it')
    expect(read()).not.toContain('\u001b')
  })
})
