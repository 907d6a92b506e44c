/** What `SESSION_TTL_S` may be at most, and is by default: 12 hours, for the coordinator's sessions and the enclave's grants. */
export const MAX_SESSION_S = 43_200
