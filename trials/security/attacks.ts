import type { Attack } from './attack.ts'
import type { AttackName } from './attackNames.ts'
import { abuseMatrix } from './attacks/abuseMatrix.ts'
import { cookieTossing } from './attacks/cookieTossing.ts'
import { eventStreams } from './attacks/eventStreams.ts'
import { headerFloods } from './attacks/headerFloods.ts'
import { logInjection } from './attacks/logInjection.ts'
import { openRedirect } from './attacks/openRedirect.ts'
import { oversizedBodies } from './attacks/oversizedBodies.ts'
import { rateLimits } from './attacks/rateLimits.ts'
import { slowConnections } from './attacks/slowConnections.ts'
import { slugTiming } from './attacks/slugTiming.ts'
import { vaultOldDatabase } from './attacks/vaultOldDatabase.ts'
import { vaultOwnCoordinator } from './attacks/vaultOwnCoordinator.ts'
import { vaultSecondEnclave } from './attacks/vaultSecondEnclave.ts'
import { vaultStolenSession } from './attacks/vaultStolenSession.ts'

export const attacks: Readonly<Record<AttackName, Attack>> = {
  'abuse-matrix': abuseMatrix,
  'header-floods': headerFloods,
  'open-redirect': openRedirect,
  'log-injection': logInjection,
  'slug-timing': slugTiming,
  'oversized-bodies': oversizedBodies,
  'slow-connections': slowConnections,
  'event-streams': eventStreams,
  'cookie-tossing': cookieTossing,
  'vault-stolen-session': vaultStolenSession,
  'vault-own-coordinator': vaultOwnCoordinator,
  'vault-second-enclave': vaultSecondEnclave,
  'vault-old-database': vaultOldDatabase,
  'rate-limits': rateLimits,
}
