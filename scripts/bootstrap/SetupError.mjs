/** An error whose message is complete. It is shown without a stack trace. */
export class SetupError extends Error {
  name = 'SetupError'
}
