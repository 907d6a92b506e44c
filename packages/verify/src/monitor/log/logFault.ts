/** Why a log is not read to its end: it contradicts itself or another, keeps something back, or could not be asked. */
export type LogFaultKind = 'log-lies' | 'log-withholds' | 'log-unavailable'

export class LogFault extends Error {
  override name = 'LogFault'
  constructor(
    readonly kind: LogFaultKind,
    readonly detail: string,
  ) {
    super(detail)
  }
}

export function lies(detail: string) {
  return new LogFault('log-lies', detail)
}

export function withholds(detail: string) {
  return new LogFault('log-withholds', detail)
}
