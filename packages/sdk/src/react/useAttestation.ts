'use client'

import { useEffect, useMemo } from 'react'
import { createProofStore, type ProofState } from '../client/proofStore.ts'
import { useServiceContext, useStore } from './ServiceContext.ts'

export type UseAttestationReturnType = ProofState

/**
 * Follows a proof until it is complete or has failed. Inert without a slug.
 *
 * @example
 * const { proof, loading, error } = useAttestation(lastResult?.attestationSlug)
 */
export function useAttestation(slug: string | null | undefined): UseAttestationReturnType {
  const { client } = useServiceContext()
  const store = useMemo(() => createProofStore(client), [client])
  const { proof, loading, error } = useStore(store)
  useEffect(() => (slug ? store.watch(slug) : undefined), [store, slug])
  // In the render between a change of slug and its effect, the proof at hand is still of the old one.
  const isOfSlug = !slug || proof === null || proof.slug === slug
  return { proof: isOfSlug ? proof : null, loading, error }
}
