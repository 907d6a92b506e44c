import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, describeFault, type Env } from './readEnv.ts'
import { readSettings } from './readSettings.ts'

const read = (text: string, env: Env = {}) => readSettings({ env, configFile: 'settings', readFile: () => text })

function faultsOf(act: () => unknown): readonly string[] {
  try {
    act()
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(describeFault)
    throw error
  }
  return []
}

describe('the settings of a service', () => {
  test('come from the environment without --config, and no file is read', () => {
    const env = { PORT: '1', NODE_ENV: 'production' }
    const readFile = () => expect.fail('read a file')
    expect(readSettings({ env, configFile: undefined, readFile })).toBe(env)
  })

  test('come from the lines of the file with --config; other variables stay in the environment', () => {
    const text = [
      'PORT=8080',
      '',
      '# HOST=0.0.0.0',
      'DATABASE_URL=postgres://a:b=c@d/e?f=#g',
      'HOST=',
      'OIDC_MY2_ISSUER=x',
    ]
    const settings = {
      PORT: '8080',
      DATABASE_URL: 'postgres://a:b=c@d/e?f=#g',
      HOST: '',
      OIDC_MY2_ISSUER: 'x',
    }
    for (const end of ['\n', '\r\n']) {
      expect(read(text.join(end), { PATH: '/bin', NODE_OPTIONS: 'x' })).toEqual({
        ...settings,
        PATH: '/bin',
        NODE_OPTIONS: 'x',
      })
    }
    expect(read('')).toEqual({})
  })

  test.each([
    ['no equals sign', 'PORT', 'expected NAME=VALUE or a # comment'],
    ['a colon', 'PORT: 8080', 'expected NAME=VALUE or a # comment'],
    ['an export', 'export PORT=8080', 'expected NAME=VALUE or a # comment'],
    ['a space before the name', ' PORT=8080', 'expected NAME=VALUE or a # comment'],
    ['a space after the name', 'PORT =8080', 'expected NAME=VALUE or a # comment'],
    ['no name', '=8080', 'expected NAME=VALUE or a # comment'],
    ['only white space', '  ', 'expected NAME=VALUE or a # comment'],
    ['an unknown name', 'PROT=8080', 'unknown setting PROT'],
    ['a name in lower case', 'port=8080', 'unknown setting port'],
    ['what only Node reads', 'NODE_ENV=production', 'unknown setting NODE_ENV'],
    ['what loads code', 'NODE_OPTIONS=--import=x', 'unknown setting NODE_OPTIONS'],
    ['a member of every object', '__proto__=1', 'unknown setting __proto__'],
    ['no provider', 'OIDC_=1', 'unknown setting OIDC_'],
    ['a space before the value', 'PORT= 8080', 'unexpected white space around the value of PORT'],
    ['a space after the value', 'PORT=8080 ', 'unexpected white space around the value of PORT'],
    ['quotes', 'PORT="8080"', 'unexpected quotes around the value of PORT'],
    ['single quotes', "PORT='8080'", 'unexpected quotes around the value of PORT'],
  ])('%s: the line is named', (_, line, fault) => {
    expect(faultsOf(() => read(`HOST=a\n${line}\n`))).toEqual([`line 2: ${fault}`])
  })

  test('rejects duplicate names, also with the same value; reports all faults at once, without values', () => {
    const faults = faultsOf(() => read('HOST=secret\nHOST=secret\nPROT=secret\nsecret\nPORT="secret"'))
    expect(faults.map((fault) => fault.slice(0, 6))).toEqual(['line 2', 'line 3', 'line 4', 'line 5'])
    expect(faults[0]).toBe('line 2: duplicate setting HOST')
    expect(faults.join()).not.toContain('secret')
  })

  test('rejects a setting in both the environment and the file, even if they agree', () => {
    const env = { PORT: '1', OIDC_MINE_ISSUER: 'x', HOST: '' }
    expect(faultsOf(() => read('PORT=1\nHOST=a\nOIDC_MINE_ISSUER=y', env))).toEqual([
      'PORT: set in the environment and in settings',
      'OIDC_MINE_ISSUER: set in the environment and in settings',
    ])
    expect(faultsOf(() => read('PORT=', env))).toEqual(['PORT: set in the environment and in settings'])
    // Empty counts as unset.
    expect(read('HOST=a', env)).toEqual({ ...env, HOST: 'a' })
  })

  test('rejects a file in production, where it would bypass the launcher', () => {
    const readFile = () => expect.fail('read a file')
    const env = { NODE_ENV: 'production' }
    expect(faultsOf(() => readSettings({ env, configFile: 'settings', readFile }))).toEqual([
      '--config: rejected in production: settings come only from the environment',
    ])
  })

  test('names a file that cannot be read', () => {
    const readFile = () => {
      throw new Error('ENOENT')
    }
    expect(faultsOf(() => readSettings({ env: {}, configFile: 'gone', readFile }))).toEqual([
      '--config: gone cannot be read',
    ])
  })

  test('.env.example is a valid settings file', () => {
    const template = readFileSync(join(import.meta.dirname, '../../../.env.example'), 'utf8')
    expect(read(template)).toMatchObject({ MOCK_ATTESTATION: 'true' })
    // With all settings in comments, too.
    const all = new Map([...template.matchAll(/^#? ?([A-Z][A-Z0-9_]*)=/gm)].map(([, name = '']) => [name, `${name}=x`]))
    expect(Object.keys(read([...all.values()].join('\n')))).toHaveLength(all.size)
  })
})
