/** Why a log is not read to its end: it contradicts itself or another, keeps something back, could not be asked, or its witnesses are not known. */
export type LogFaultKind = 'log-lies' | 'log-withholds' | 'log-unavailable' | 'log-not-checked'

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
