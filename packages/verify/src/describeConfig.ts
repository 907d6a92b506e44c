import {
  type EnclaveConfig,
  type EnclaveSettings,
  type EntropySetting,
  hashEnclaveConfig,
  ServiceError,
  toHex,
} from '@countersign/protocol'

/** A name and its value. The enclave may have written the text: print it with `toPrintable`. */
export type ConfigLine = [name: string, value: string]

/** Describes the issuers that the enclave accepts and the rest of its configuration, with the hash computed from it. */
export function describeConfig(config: EnclaveConfig): ConfigLine[] {
  return [
    ['configuration hash', hashOrFault(config)],
    ...config.issuers.map(
      ({ issuer, audience, jwksOrigin }): ConfigLine => [
        '  accepts sign-ins from',
        `${issuer} for ${audience}, keys from ${jwksOrigin}`,
      ],
    ),
    ['  authorities', config.caSet],
    ['  root secret', config.rootSecret],
    ['  quote source', config.quoteSource],
    ['  caller policy', config.callerPolicy],
    ['  version', config.version],
  ]
}

/** Describes the settings, whose hash is in the `version` of a configuration. */
export function describeSettings({ entropy, implementations, log, sessions }: EnclaveSettings): ConfigLine[] {
  return [
    ['  sessions', sessions === 'bound' ? 'bound (each has a browser key)' : 'any (a cookie is enough)'],
    ...list('  entropy sources', entropy.map(nameSource)),
    ...list('  allowed delegation code', implementations),
    ...list('  logs', log?.origins ?? []),
    ...(log === null
      ? []
      : [
          ['  required cosignatures', `${log.quorum} of ${log.witnesses.length} witnesses`] satisfies ConfigLine,
          ...list('  witness', log.witnesses),
        ]),
  ]
}

function list(name: string, values: readonly string[]): ConfigLine[] {
  return values.length === 0 ? [[name, 'none']] : values.map((value) => [name, value])
}

function nameSource(source: EntropySetting): string {
  return source.kind === 'unsigned' ? 'an unsigned source' : `${source.kind}, key ${source.key}`
}

function hashOrFault(config: EnclaveConfig): string {
  try {
    return toHex(hashEnclaveConfig(config))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return `none: ${error.details}`
  }
}
