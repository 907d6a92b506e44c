/** A failure that its message explains in full; it is shown without a stack trace. */
export class SetupError extends Error {
  name = 'SetupError'
}
