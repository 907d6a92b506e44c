import { readCode } from '@countersign/service'
import { createTx, type TestUser } from '@countersign/testing/stack'

/** One request for a signature, by the clock of `performance`. */
type Request = { sentAt: number; endedAt: number; failure: string | undefined }

export type SteadyLoad = {
  /** Sends no more, and resolves when all are answered. */
  stop(): Promise<void>
  /** Of all that were answered. */
  readonly slugs: readonly string[]
  /**
   * Since a moment: how many were sent or still waiting, how many of them failed (and of those that were sent after it), and how long
   * the slowest waited after it.
   */
  since(moment: number): { count: number; failures: string[]; lateFailures: string[]; longestMs: number }
}

/** Asks for a new signature at a fixed rate, whether or not the earlier ones have been answered. Nobody asks twice. */
export function startSteadyLoad({ user, rate }: { user: TestUser; rate: number }): SteadyLoad {
  const requests: Request[] = []
  const slugs: string[] = []
  const open = new Set<Promise<void>>()
  let nonce = Math.floor(Math.random() * 2 ** 40)

  async function ask() {
    const request: Request = { sentAt: performance.now(), endedAt: Number.POSITIVE_INFINITY, failure: undefined }
    requests.push(request)
    try {
      const response = await user.sign(createTx(nonce++))
      const body = await response.text()
      if (response.status === 200) slugs.push((JSON.parse(body) as { slug: string }).slug)
      else request.failure = `${response.status} ${body.slice(0, 200)}`
    } catch (error) {
      request.failure = toFailure(error)
    }
    request.endedAt = performance.now()
  }

  const timer = setInterval(() => {
    const asked = ask()
    open.add(asked)
    void asked.finally(() => open.delete(asked))
  }, 1000 / rate)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
    },
    slugs,
    since(moment) {
      const touched = requests.filter(({ endedAt }) => endedAt > moment)
      return {
        count: touched.length,
        failures: touched.flatMap(({ failure }) => failure ?? []),
        lateFailures: touched.flatMap(({ failure, sentAt }) => (sentAt > moment ? (failure ?? []) : [])),
        longestMs: Math.max(0, ...touched.map(({ sentAt, endedAt }) => endedAt - Math.max(sentAt, moment))),
      }
    },
  }
}

/** With the code of what is behind it: that a fetch failed says nothing. */
function toFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'failed'
  const { cause } = error
  return cause instanceof Error ? `${error.message}: ${readCode(cause) ?? cause.message}` : error.message
}
