import { ConfigError, collectFaults, type Env, fileFix } from './readEnv.ts'
import { settingNames } from './settingNames.ts'

export type ReadSettingsParameters = { env: Env; configFile: string | undefined; readFile(path: string): string }

/**
 * A service's settings: those of its environment, and those of a file. None may be in both, so that neither wins over the other unseen;
 * what processes that share a file do not share (`PORT`) is in their environments. In production there is no file: an image's launcher passes what is measured, and a file beside it
 * would be a way round.
 */
export function readSettings({ env, configFile, readFile }: ReadSettingsParameters): Env {
  if (configFile === undefined) return env
  if (env.NODE_ENV === 'production') {
    const problem = 'refused in production, where settings come from the environment alone'
    throw new ConfigError([{ setting: '--config', problem, fix: 'Set the environment of the process.' }])
  }
  let text: string
  try {
    text = readFile(configFile)
  } catch {
    throw new ConfigError([{ setting: '--config', problem: `${configFile} cannot be read`, fix: fileFix('--config') }])
  }
  const settings = parseSettings(text)
  const both = Object.keys(settings).filter((name) => (env[name] ?? '') !== '')
  const problem = `is in the environment and in ${configFile}`
  const fix = 'Remove one of the two.'
  if (both.length > 0) throw new ConfigError(both.map((setting) => ({ setting, problem, fix })))
  return { ...env, ...settings }
}

/**
 * Settings in a file: `NAME=VALUE` lines, as they stand; empty lines and lines that begin with `#` say nothing. Strict, because a line
 * that is read otherwise than it was meant would be a setting that nobody notices: no quotes, no spaces at the ends, no name twice, and none
 * that no service knows. Throws a `ConfigError`, whose faults name the lines and never a value.
 */
function parseSettings(text: string): Record<string, string> {
  const { faults, fault: collect } = collectFaults()
  const settings = new Map<string, string>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === '' || line.startsWith('#')) continue
    const fault = (problem: string) =>
      collect(`line ${index + 1}`, problem, 'Correct the file; .env.example is a template of it.')
    const [, name = '', value = ''] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(line) ?? []
    if (name === '') fault('expected NAME=VALUE, or # before a remark')
    else if (!isSettingName(name)) fault(`${name} is unknown`)
    else if (settings.has(name)) fault(`${name} stands there twice`)
    else if (value !== value.trim()) fault(`${name} has white space before or after its value`)
    else if (/^["'`]/.test(value)) fault(`${name} is in quotes, which would be part of its value`)
    else settings.set(name, value)
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.fromEntries(settings)
}

/** Those of identity providers are found by the names that operators give them. */
function isSettingName(name: string): boolean {
  return settingNames.includes(name) || /^OIDC_[A-Z0-9]+_[A-Z0-9_]+$/.test(name)
}
