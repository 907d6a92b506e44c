import type { PinnerConfig } from './config.ts'
import type { Fetch } from './exchange.ts'
import { createKuboPinner } from './kubo.ts'
import { createPinataPinner } from './pinata.ts'
import type { RemotePinner } from './pinner.ts'

export function createRemotePinner(config: Exclude<PinnerConfig, { kind: 'helia' }>, fetch: Fetch): RemotePinner {
  if (config.kind === 'kubo') {
    const { apiUrl, token } = config
    return createKuboPinner({ apiUrl, token, fetch })
  }
  const { apiUrl, gatewayUrl, pinsUrl, token } = config
  return createPinataPinner({ apiUrl, gatewayUrl, pinsUrl, token, fetch })
}
