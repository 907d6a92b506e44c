import type { Log } from '@countersign/service'

/** Which root secrets the enclaves of one coordinator have, by their addresses. */
export type RootSecrets = {
  /** The commitment that it has attested; undefined where its release answers none. */
  set(address: string, commitment: string | undefined): void
  /** An enclave that has attested another root secret than this one, if there is any. */
  findOther(address: string): string | undefined
}

/**
 * All enclaves must have one root secret. Where two differ, nobody here knows which is the right one, so neither is of use until they agree. An
 * enclave that falls silent is remembered: it is then that calls go to the other.
 */
export function createRootSecrets(log: Pick<Log, 'error'>): RootSecrets {
  const known = new Map<string, string>()

  function findOther(address: string): string | undefined {
    const own = known.get(address)
    if (own === undefined) return undefined
    for (const [other, commitment] of known) if (commitment !== own) return other
    return undefined
  }

  return {
    findOther,
    set(address, commitment) {
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
