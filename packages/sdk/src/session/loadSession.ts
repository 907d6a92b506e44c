import { createError } from '../client/errors.ts'
import type { Session } from '../client/request.ts'

/** A session whose code loads at its first request. */
export function loadSession<One extends Session>(load: () => Promise<One>): Session & { load(): Promise<One> } {
  let loading: Promise<One> | undefined
  const loadOnce = () => {
    loading ??= load().catch((cause: unknown) => {
      loading = undefined
      throw createError('network_unreachable', 'a part of the page is gone', { details: 'reload the page', cause })
    })
    return loading
  }
  return {
    load: loadOnce,
    prepare: async (...parameters) => (await loadOnce()).prepare(...parameters),
    startLogin: async (...parameters) => (await loadOnce()).startLogin(...parameters),
  }
}
