/** Why a log is not read to its end: it contradicts itself or another, keeps something back, or could not be asked. */
export type LogFaultKind = 'log-lies' | 'log-withholds' | 'log-unavailable'

export class LogFault extends Error {
  override name = 'LogFault'
  readonly kind: LogFaultKind
  constructor(kind: LogFaultKind, message: string) {
    super(message)
    this.kind = kind
  }
}

export function lies(message: string) {
  return new LogFault('log-lies', message)
}

export function withholds(message: string) {
  return new LogFault('log-withholds', message)
}
