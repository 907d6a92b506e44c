import type { Log } from '@countersign/service'

export type RootSecrets = ReturnType<typeof createRootSecrets>

/**
 * Which root secrets the enclaves of one coordinator have, by their addresses. All enclaves must have one root secret, and that which was used first for as long as this process lives: a host could start them anew with
 * another, and bring the first back when users have paid to addresses of that. Where two differ, nobody here knows which is the right one, so
 * neither is of use until they agree. An enclave that falls silent is remembered: it is then that calls go to the other.
 */
export function createRootSecrets(log: Pick<Log, 'error'>) {
  const known = new Map<string, string>()
  let first: { address: string; commitment: string } | undefined

  /** An enclave that has, or had when it was used first, another root secret than this one, if there is any: itself, where it has changed its own. */
  function findOther(address: string): string | undefined {
    const own = known.get(address)
    if (own === undefined) return undefined
    for (const [other, commitment] of known) if (commitment !== own) return other
    return own === first?.commitment ? undefined : first?.address
  }

  return {
    findOther,
    /** This one is about to answer a call. */
    use(address: string) {
      const commitment = known.get(address)
      if (commitment !== undefined) first ??= { address, commitment }
    },
    /** The commitment that it has attested; undefined where its release answers none. */
    set(address: string, commitment: string | undefined) {
      if (known.get(address) === commitment) return
      if (commitment === undefined) {
        known.delete(address)
        return
      }
      known.set(address, commitment)
      const other = findOther(address)
      if (other === undefined) return
      log.error({ msg: 'Refused two enclaves with different root secrets', enclave: address, commitment, other })
    },
  }
}
