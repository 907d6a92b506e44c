/** The maximum and default of `SESSION_TTL_S`: 12 hours, for the coordinator's sessions and the enclave's grants. */
export const MAX_SESSION_S = 43_200
