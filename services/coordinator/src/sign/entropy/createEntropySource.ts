import type { Clock } from '../../system.ts'
import type { EntropySource } from './entropySource.ts'
import type { Fetch } from './fetchJson.ts'
import { createOrbitportSource } from './orbitport.ts'
import { createSatelliteSource } from './satellite.ts'

export type EntropySourceConfig =
  | { kind: 'satellite'; url: string; publicKeys: readonly string[] }
  | { kind: 'orbitport'; url: string; clientId: string; clientSecret: string; authUrl: string }

export function createEntropySource(
  { clock, ...deps }: { fetch: Fetch; clock: Clock; timeoutMs?: number },
  config: EntropySourceConfig,
): EntropySource {
  if (config.kind === 'satellite') return createSatelliteSource({ url: config.url, ...deps })
  const { url, authUrl: tokenUrl, clientId, clientSecret } = config
  return createOrbitportSource({ url, tokenUrl, clientId, clientSecret, clock, ...deps })
}
