import { createFetchBytes, type FetchBytes } from '@countersign/verify'

const TIMEOUT_MS = 30_000

/** Fetches for all verifications of the page. */
export const fetchBytes: FetchBytes = createFetchBytes({
  fetch: (input, init) => globalThis.fetch(input, init),
  timeoutMs: TIMEOUT_MS,
})
