import { type EnclaveConfig, hashEnclaveConfig, ServiceError, toHex } from '@countersign/protocol'
import type { Line } from './lines.ts'

/** Whose sign-ins the enclave accepts, and what else decides for whom it signs. */
export function describeConfig(config: EnclaveConfig): Line[] {
  return [
    ['configuration hash', hashOrFault(config)],
    ...config.issuers.map(
      ({ issuer, audience, jwksOrigin }): Line => [
        '  accepts sign-ins of',
        `${issuer} for ${audience}, keys from ${jwksOrigin}`,
      ],
    ),
    ['  authorities', config.caSet],
    ['  root secret', config.rootSecret],
    ['  quotes from', config.quoteSource],
    ['  caller policy', config.callerPolicy],
    ['  version', config.version],
  ]
}

function hashOrFault(config: EnclaveConfig): string {
  try {
    return toHex(hashEnclaveConfig(config))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return `none: ${error.details}`
  }
}
