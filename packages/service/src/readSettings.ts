import { ConfigError, collectFaults, type Env, fileFix } from './readEnv.ts'
import { settingNames } from './settingNames.ts'

export type ReadSettingsParameters = { env: Env; configFile: string | undefined; readFile(path: string): string }

/**
 * Reads a service's settings from its environment and a file. A setting in both is a fault, so that neither silently overrides the other.
 * Production rejects the file, because it could bypass the measured settings that the image's launcher passes.
 */
export function readSettings({ env, configFile, readFile }: ReadSettingsParameters): Env {
  if (configFile === undefined) return env
  if (env.NODE_ENV === 'production') {
    const problem = 'rejected in production: settings come only from the environment'
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
  const problem = `set in the environment and in ${configFile}`
  const fix = 'Remove one of the two.'
  if (both.length > 0) throw new ConfigError(both.map((setting) => ({ setting, problem, fix })))
  return { ...env, ...settings }
}

/**
 * Parses `NAME=VALUE` lines, empty lines and `#` comments. Rejects quotes, surrounding spaces, duplicates and unknown names, so that
 * no line has a silent other meaning. Throws a `ConfigError` whose faults name lines, never values.
 */
function parseSettings(text: string): Record<string, string> {
  const { faults, fault: collect } = collectFaults()
  const settings = new Map<string, string>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === '' || line.startsWith('#')) continue
    const fault = (problem: string) =>
      collect(`line ${index + 1}`, problem, 'Correct the line; .env.example shows the format.')
    const [, name = '', value = ''] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(line) ?? []
    if (name === '') fault('expected NAME=VALUE or a # comment')
    else if (!isSettingName(name)) fault(`unknown setting ${name}`)
    else if (settings.has(name)) fault(`duplicate setting ${name}`)
    else if (value !== value.trim()) fault(`unexpected white space around the value of ${name}`)
    else if (/^["'`]/.test(value)) fault(`unexpected quotes around the value of ${name}`)
    else settings.set(name, value)
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.fromEntries(settings)
}

/** Operators choose the IDs in `OIDC_<ID>_…`. */
function isSettingName(name: string): boolean {
  return settingNames.includes(name) || /^OIDC_[A-Z0-9]+_[A-Z0-9_]+$/.test(name)
}
