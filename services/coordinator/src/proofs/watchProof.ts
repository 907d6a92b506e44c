import { isSlug, isTerminalProofStatus } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError, toPublicCode } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { Proof } from '../store/proofs.ts'
import type { Schedule } from '../system.ts'
import { type ProofView, proofNotFound, toProofView, toStateKey } from './proofView.ts'

type ProofWatcherDeps = {
  store: Pick<Store, 'findProof' | 'findProofStates'>
  ipfsGatewayUrl: string | undefined
  schedule: Schedule
  log: Pick<Log, 'warn'>
  /** From the end of one poll to the start of the next. */
  pollMs?: number
}

export type ProofWatcher = {
  /**
   * Calls `onView` with the current proof and after each change, until its status is terminal. Resolves after the first call with a function
   * that ends the watch. Throws `proof_not_found`.
   */
  watch(parameters: { slug: string; onView(view: ProofView): void }): Promise<() => void>
  /** Ends all watches. Rejects later ones with `shutting_down`. */
  stop(): void
}

type Watched = {
  slug: string
  /** Each listener with the last version that it received. */
  listeners: Map<(view: ProofView) => void, string | undefined>
  state: string | undefined
  loading: Promise<void> | undefined
  isFailing: boolean
}

const createWatched = (slug: string): Watched => ({
  slug,
  listeners: new Map(),
  state: undefined,
  loading: undefined,
  isFailing: false,
})

/**
 * Watches proofs for all listeners. Polls the states of all watched proofs with one query, and reads a proof only if it has changed. Doesn't
 * poll without listeners. It polls the database because workers may be other processes.
 */
export function createProofWatcher(deps: ProofWatcherDeps): ProofWatcher {
  const { store, ipfsGatewayUrl, schedule, log, pollMs = 1000 } = deps
  const watches = new Map<string, Watched>()
  let cancelRound: (() => void) | undefined
  let isPolling = false
  let isFailing = false
  let isStopped = false

  function arm() {
    if (isStopped || isPolling || cancelRound !== undefined || watches.size === 0) return
    cancelRound = schedule(() => {
      cancelRound = undefined
      void poll()
    }, pollMs)
  }

  function drop(watched: Watched) {
    if (watches.get(watched.slug) === watched) watches.delete(watched.slug)
    if (watches.size > 0) return
    cancelRound?.()
    cancelRound = undefined
  }

  async function poll() {
    isPolling = true
    try {
      const states = await store.findProofStates([...watches.keys()])
      isFailing = false
      for (const state of states) {
        const watched = watches.get(state.slug)
        // A proof that is still loading is checked again in the next round.
        if (watched === undefined || watched.loading !== undefined || watched.state === toStateKey(state)) continue
        // Not awaited, because a receipt that IPFS returns slowly would delay the next round of all proofs.
        void reload(watched)
      }
    } catch (error) {
      // The listeners keep waiting. Each outage is logged once.
      if (!isFailing) log.warn({ msg: 'Could not read changes of proofs', code: toPublicCode(error) })
      isFailing = true
    } finally {
      isPolling = false
      arm()
    }
  }

  /** The next round retries. A proof that can't be read is logged once. */
  async function reload(watched: Watched) {
    try {
      await load(watched)
      watched.isFailing = false
    } catch (error) {
      if (!watched.isFailing) log.warn({ msg: 'Could not read a proof that has changed', code: toPublicCode(error) })
      watched.isFailing = true
    }
  }

  /** Loads a proof once at a time, so that listeners get its versions in order. */
  function load(watched: Watched): Promise<void> {
    watched.loading ??= read(watched)
    return watched.loading
  }

  async function read(watched: Watched) {
    try {
      const proof = await store.findProof(watched.slug)
      if (proof === undefined) throw proofNotFound()
      if (!isStopped) notify(watched, proof)
    } finally {
      // Cleared in the same turn as the notification, so that a listener added later loads the proof again.
      watched.loading = undefined
    }
  }

  function notify(watched: Watched, proof: Proof) {
    watched.state = toStateKey(proof)
    const view = toProofView(proof, ipfsGatewayUrl)
    for (const [listener, given] of watched.listeners) {
      if (given === view.version) continue
      watched.listeners.set(listener, view.version)
      listener(view)
    }
    if (isTerminalProofStatus(view.status)) drop(watched)
  }

  return {
    async watch({ slug, onView }) {
      if (!isSlug(slug)) throw proofNotFound()
      const watched = watches.get(slug) ?? createWatched(slug)
      watches.set(slug, watched)
      watched.listeners.set(onView, undefined)
      const leave = () => {
        watched.listeners.delete(onView)
        if (watched.listeners.size === 0) drop(watched)
      }
      try {
        await load(watched)
        if (isStopped) throw new CoordinatorError('shutting_down', 'the service is stopping')
      } catch (error) {
        leave()
        throw error
      }
      arm()
      return leave
    },
    stop() {
      isStopped = true
      watches.clear()
      cancelRound?.()
      cancelRound = undefined
    },
  }
}
