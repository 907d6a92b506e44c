import { type Hex, ServiceError } from '@countersign/protocol'

/**
 * Asks again, once, where the answer was lost: the same digest gets the same signature and the same slug (one proof for each).
 * A transaction that is built again would be a second one, with other fees. What is signed off the chain is never asked for again:
 * each call makes a proof of its own.
 */
export async function askForSignature<R>(digest: Hex, ask: () => Promise<R>): Promise<R> {
  try {
    return await ask()
  } catch (lost) {
    if (!isLost(lost)) throw lost
    return ask().catch((cause: unknown) => {
      const { code, message, status } = lost
      const details = `it may have been signed, digest ${digest}: look in listTransactions first`
      throw new ServiceError(code, message, { details, cause, status, retryable: false })
    })
  }
}

/** No answer, or something on the way put its own in the place of it. A refusal is an answer. */
function isLost(error: unknown): error is ServiceError {
  if (!(error instanceof ServiceError)) return false
  const { code, status } = error
  return !status || (code === 'response_invalid' && (status < 400 || status >= 500))
}
