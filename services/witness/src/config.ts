import { ConfigError, collectFaults, type Env, readInteger } from '@countersign/service'
import { type LogList, parseLogList } from './logList.ts'

export type Config = {
  host: string
  port: number
  metricsPort: number | undefined
  /** From `npm run witness:key`: the key and the cosigned checkpoints. */
  folder: string
  logs: LogList
}

/** The only reader of the environment. `readFile` returns a file's text. */
export function readConfig(env: Env, { readFile }: { readFile(path: string): string }): Config {
  const { faults, fault } = collectFaults()
  const port = readInteger(env, 'PORT', { fallback: 8095, min: 0, max: 65_535 }, fault)
  const metricsPort = readInteger(env, 'METRICS_PORT', { fallback: undefined, min: 0, max: 65_535 }, fault)
  const folder = env.WITNESS_DIR ?? ''
  if (folder === '') fault('WITNESS_DIR', 'expected the folder that npm run witness:key created')
  const logs = readLogs(env.WITNESS_LOGS_FILE ?? '', readFile, (text) => fault('WITNESS_LOGS_FILE', text))
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.freeze({ host: env.HOST || '127.0.0.1', port, metricsPort, folder, logs })
}

function readLogs(path: string, readFile: (path: string) => string, fault: (text: string) => void): LogList {
  let text: string
  try {
    text = readFile(path)
  } catch {
    fault('cannot be read')
    return new Map()
  }
  const logs = parseLogList(text, fault)
  if (logs.size === 0) fault('expected at least one log')
  return logs
}
