/** The code of an error, as the system, the network or a library names it; undefined for an error without one, and for what is none. */
export function readCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The code of what caused an error: `fetch` has that of the network there. */
export function readCauseCode(error: unknown): string | undefined {
  return error instanceof Error ? readCode(error.cause) : undefined
}
