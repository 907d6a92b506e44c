'use client'

import type { Opening } from '@countersign/protocol'
import { useEffect, useMemo } from 'react'
import { createProofStore, type ProofState } from '../client/proofStore.ts'
import { useServiceContext, useStore } from './useService.ts'

export type UseAttestationOptions = { opening?: Opening | undefined }

export type UseAttestationReturnType = ProofState

/**
 * Follows a proof until it is complete or has failed. Does nothing without a slug. With the opening of a message or typed data, a
 * proof that doesn't match is the error `opening_mismatch`, and not shown.
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
  // Compared by content, because an app may parse it at each render.
  const json = JSON.stringify(opening)
  useEffect(() => (slug ? store.watch(slug, json && JSON.parse(json)) : undefined), [store, slug, json])
  // In the render between a change of the slug and its effect, the state still has the old proof.
  const isOfSlug = !slug || state.proof?.slug === slug
  return isOfSlug ? state : { ...state, proof: null }
}
