/** In every response of a service on simulated hardware. */
export const SILICON_HEADER = 'countersign-silicon'
export const MOCK = 'MOCK'

/** At the top of every staging page. */
export const MOCK_SENTENCE =
  'MOCK: simulated hardware, for testing only. Nothing here proves anything about real hardware. Don’t use real funds.'
