/** On every answer of a service that runs on simulated silicon. */
export const SILICON_HEADER = 'countersign-silicon'
export const MOCK = 'MOCK'

/** What every page of a staging says first. */
export const MOCK_SENTENCE =
  'MOCK: simulated silicon, for rehearsals. Nothing here proves anything about hardware, and nothing of worth belongs here.'
