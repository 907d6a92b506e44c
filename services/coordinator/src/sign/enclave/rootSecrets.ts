import type { Log } from '@countersign/service'

export type RootSecrets = ReturnType<typeof createRootSecrets>

/**
 * Tracks the root secret of each enclave by address. All enclaves must have the same one, and keep it for as long as this process lives.
 * Otherwise a host could restart them with another secret and bring the first one back after users have paid to its addresses. If two differ,
 * the coordinator can't know which is right and uses neither until they agree. A silent enclave stays recorded, because its calls go to
 * another enclave then.
 */
export function createRootSecrets(log: Pick<Log, 'error'>) {
  const known = new Map<string, string>()
  let first: { address: string; commitment: string } | undefined

  /**
   * Finds an enclave whose root secret, now or when first used, differs from this one's. Returns the address itself if its secret has
   * changed.
   */
  function findOther(address: string): string | undefined {
    const own = known.get(address)
    if (own === undefined) return undefined
    for (const [other, commitment] of known) if (commitment !== own) return other
    return own === first?.commitment ? undefined : first?.address
  }

  return {
    findOther,
    /** Records that this enclave is about to answer a call. */
    use(address: string) {
      const commitment = known.get(address)
      if (commitment !== undefined) first ??= { address, commitment }
    },
    /** Records the attested commitment. Undefined if the enclave's release doesn't report one. */
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
