import { isTerminalProofStatus, type Opening, type ProofPayload, type ServiceError } from '@countersign/protocol'
import { createStore, type Store } from './createStore.ts'
import { toServiceError } from './errors.ts'
import type { ServiceClient } from './ServiceClient.ts'

/** Specification §8: counted from the previous response, without backoff. */
export const POLL_INTERVAL_MS = 4000

export type ProofState = { proof: ProofPayload | null; loading: boolean; error: ServiceError | null }

export type ProofStore = Store<ProofState> & {
  /**
   * Polls until the proof is in a terminal state or the caller stops it. Stop before you watch another proof. With an opening, a proof
   * that doesn't match it is an error and is not shown.
   */
  watch(slug: string, opening?: Opening): () => void
}

const INITIAL: ProofState = { proof: null, loading: false, error: null }

/** The state of `useAttestation` of specification §4, without React. */
export function createProofStore(client: ServiceClient): ProofStore {
  const store = createStore(INITIAL)
  let lastSlug: string | undefined

  function watch(slug: string, opening?: Opening) {
    const controller = new AbortController()
    const { signal } = controller
    let timer: ReturnType<typeof setTimeout> | undefined

    async function poll() {
      // React mounts twice in development: don't poll for the first mount.
      if (signal.aborted) return
      store.set({ loading: true })
      try {
        const proof = await client.api.getProof(slug, { signal })
        if (opening) await client.verifyOpening(proof, opening)
        if (signal.aborted) return
        store.set({ proof, loading: false, error: null })
        if (isTerminalProofStatus(proof.status)) return
      } catch (error) {
        if (signal.aborted) return
        store.set({ loading: false, error: toServiceError(error) })
      }
      timer = setTimeout(poll, POLL_INTERVAL_MS)
    }

    // The proof shown so far may not match this opening.
    if (opening || (lastSlug !== undefined && lastSlug !== slug)) store.set(INITIAL)
    lastSlug = slug
    void Promise.resolve().then(poll)

    return () => {
      if (signal.aborted) return
      controller.abort()
      clearTimeout(timer)
      if (store.getSnapshot().loading) store.set({ loading: false })
    }
  }

  return {
    ...store,
    watch,
  }
}
