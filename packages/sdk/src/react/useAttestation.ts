'use client'

import type { Opening } from '@countersign/protocol'
import { useEffect, useMemo } from 'react'
import { createProofStore, type ProofState } from '../client/proofStore.ts'
import { useServiceContext, useStore } from './useService.ts'

export type UseAttestationOptions = { opening?: Opening | undefined }

export type UseAttestationReturnType = ProofState

/**
 * Follows a proof until it is complete or has failed. Inert without a slug. With the opening of a message or of typed data, a proof
 * that it does not open is the error `opening_mismatch`, and not shown.
 *
 * @example
 * const { proof, loading, error } = useAttestation(lastResult?.attestationSlug)
 */
export function useAttestation(
  slug: string | null | undefined,
  { opening }: UseAttestationOptions = {},
): UseAttestationReturnType {
  const { client } = useServiceContext()
  const store = useMemo(() => createProofStore(client), [client])
  const state = useStore(store)
  // By what it says: an app that parses it while it renders has a new object each time.
  const json = JSON.stringify(opening)
  useEffect(() => (slug ? store.watch(slug, json && JSON.parse(json)) : undefined), [store, slug, json])
  // In the render between a change of slug and its effect, the proof at hand is still of the old one.
  const isOfSlug = !slug || state.proof?.slug === slug
  return isOfSlug ? state : { ...state, proof: null }
}
