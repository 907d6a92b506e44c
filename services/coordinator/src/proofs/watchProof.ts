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
  /** From the end of one look to the next. */
  pollMs?: number
}

export type ProofWatcher = {
  /**
   * Calls `onView` with the proof as it is now, and at each change, until it is terminal. Resolves after the first call with
   * what ends the watch. Throws `proof_not_found`, as reading it does.
   */
  watch(parameters: { slug: string; onView(view: ProofView): void }): Promise<() => void>
  /** Ends all of them; later ones are refused with `shutting_down`. */
  stop(): void
}

type Watched = {
  slug: string
  /** Each listener with the version it was last given. */
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
 * Watches proofs for all listeners: one small query for all of them in each round, and a proof is read whole only when it has
 * changed. Without listeners there are no queries. Workers may be other processes, so the database is where changes are seen.
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
        // One that is being read is looked at again in the next round.
        if (watched === undefined || watched.loading !== undefined || watched.state === toStateKey(state)) continue
        // Not awaited: a receipt that IPFS is slow to give would hold up everybody's next round.
        void reload(watched)
      }
    } catch (error) {
      // The listeners go on waiting. One line for each outage is enough.
      if (!isFailing) log.warn({ msg: 'Could not read changes of proofs', code: toPublicCode(error) })
      isFailing = true
    } finally {
      isPolling = false
      arm()
    }
  }

  /** The next round tries again. One line for each proof that cannot be read is enough. */
  async function reload(watched: Watched) {
    try {
      await load(watched)
      watched.isFailing = false
    } catch (error) {
      if (!watched.isFailing) log.warn({ msg: 'Could not read a proof that has changed', code: toPublicCode(error) })
      watched.isFailing = true
    }
  }

  /** One at a time for each proof, so that an older answer never comes after a newer one. */
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
      // In the same turn as the notification: a listener that comes later has to read again.
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
