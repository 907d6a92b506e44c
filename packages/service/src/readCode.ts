/** The code of an error from the system, the network or a library. Undefined without a code, and for other values. */
export function readCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The code of an error's cause: `fetch` has the network's code there. */
export function readCauseCode(error: unknown): string | undefined {
  return error instanceof Error ? readCode(error.cause) : undefined
}
