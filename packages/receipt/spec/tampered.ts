import type { AttestationReceiptV1, StepId } from '@countersign/receipt'

/** A change to the golden receipt: members to set (or to remove, without a value), and the step that must fail first. */
export type Tampering = {
  name: string
  changes: { path: (string | number)[]; value?: unknown }[]
  step: StepId
  /** The code of the failure, if it has one. */
  code?: string
}

/** Copies of the golden receipt with one fault each. */
export function createTamperings(golden: AttestationReceiptV1): Tampering[] {
  const { transaction, signer, coordinator, entropy } = golden
  const { selfAttestation } = coordinator
  const one = (name: string, step: StepId, path: (string | number)[], value?: unknown): Tampering => ({
    name,
    changes: [value === undefined ? { path } : { path, value }],
    step,
  })
  const quote = signer.quoteHex
  return [
    one('another version', 'format', ['version'], 'countersign-attestation/2'),
    one('another specification', 'format', ['spec'], 'urn:example:receipt'),
    one('a member too many', 'format', ['note'], 'hello'),
    one('a member too few', 'format', ['entropy']),
    one('hex in upper case', 'format', ['transaction', 'txHash'], `0x${transaction.txHash.slice(2).toUpperCase()}`),
    one('an amount with a leading zero', 'format', ['transaction', 'value'], `0${transaction.value}`),
    one('another type of statement', 'format', ['signer', 'statement', 'type'], 'countersign/login/v1'),
    one('a line feed in the name of the source', 'format', ['entropy', 'source'], `${entropy.source}\n`),
    one('a letter outside ASCII in the name of the source', 'format', ['entropy', 'source'], `${entropy.source}é`),
    one('other instructions', 'format', ['verification', 'instructions'], 'Trust me.'),
    one('other trust anchors', 'format', ['verification', 'trustAnchors', 'intelRootSha256'], '00'.repeat(32)),

    one('another chain', 'digest', ['transaction', 'chainId'], transaction.chainId + 1),
    one('another nonce', 'digest', ['transaction', 'nonce'], transaction.nonce + 1),
    one('another recipient', 'digest', ['transaction', 'to'], `0x${'ee'.repeat(20)}`),
    one('another amount', 'digest', ['transaction', 'value'], '1000000000000000001'),
    one('other calldata', 'digest', ['transaction', 'data'], '0x00'),
    one('other gas', 'digest', ['transaction', 'gas'], '21001'),
    one('another fee', 'digest', ['transaction', 'maxFeePerGas'], '2000000001'),
    one('another priority fee', 'digest', ['transaction', 'maxPriorityFeePerGas'], '1000000001'),
    one('a priority fee above the fee', 'digest', ['transaction', 'maxPriorityFeePerGas'], '2000000001'),
    one('another digest', 'digest', ['transaction', 'digestSigned'], `0x${'11'.repeat(32)}`),

    one('another wallet', 'signature', ['transaction', 'from'], `0x${'22'.repeat(20)}`),
    one('another public key', 'signature', ['signer', 'publicKey'], `${flip(signer.publicKey, 100)}`),
    one('another r', 'signature', ['transaction', 'signature'], flip(transaction.signature, 10)),
    one('the other parity', 'signature', ['transaction', 'signature'], flipParity(transaction.signature)),
    one('the high s', 'signature', ['transaction', 'signature'], toHighS(transaction.signature)),
    one('another transaction hash', 'tx-hash', ['transaction', 'txHash'], flip(transaction.txHash, 5)),

    one('another time of signing', 'statement', ['transaction', 'signedAt'], '2026-06-15T12:00:01.000Z'),
    one('another time of issue', 'statement', ['issuedAt'], '2026-06-15T12:00:01.000Z'),
    one('another key id', 'statement', ['signer', 'keyId'], flip(signer.keyId, 0)),
    one('a statement about another hash', 'statement', ['signer', 'statement', 'txHash'], flip(transaction.txHash, 5)),
    one('a day that does not exist', 'statement', ['signer', 'statement', 'signedAt'], '2026-02-30T12:00:00.000Z'),
    {
      name: 'a day that does not exist, in every place',
      changes: [['transaction', 'signedAt'], ['signer', 'statement', 'signedAt'], ['issuedAt']].map((path) => ({
        path,
        value: '2026-02-30T12:00:00.000Z',
      })),
      step: 'statement',
    },

    one('a path cut short', 'inclusion', ['signer', 'inclusion', 'path'], signer.inclusion.path.slice(1)),
    one('an index outside the tree', 'inclusion', ['signer', 'inclusion', 'leafIndex'], signer.inclusion.treeSize),
    one('another collateral', 'collateral', ['signer', 'collateral'], toOtherCid(signer.collateral)),

    one('a quote with other report data', 'quote', ['signer', 'quoteHex'], flip(quote, 2 * 570)),
    one('a quote cut short', 'quote', ['signer', 'quoteHex'], quote.slice(0, -2)),
    one('another measurement stated', 'quote', ['signer', 'measurement', 'mrTd'], '00'.repeat(48)),
    one('another register stated', 'quote', ['signer', 'measurement', 'rtmr3'], '11'.repeat(48)),
    one('another TCB status stated', 'quote', ['signer', 'tcbStatus'], 'OutOfDate'),
    one(
      'an event log that explains nothing',
      'quote',
      ['signer', 'eventLog'],
      '[{"imr":3,"event_type":134217729,"digest":"","event":"a","event_payload":""}]',
    ),

    {
      name: 'a statement of another key id throughout',
      changes: [
        { path: ['signer', 'keyId'], value: flip(signer.keyId, 0) },
        { path: ['signer', 'statement', 'keyId'], value: flip(signer.keyId, 0) },
      ],
      step: 'report-data',
    },
    one('a statement with other entropy', 'report-data', ['signer', 'statement', 'entropyHash'], '33'.repeat(32)),
    one(
      'a statement for another coordinator',
      'report-data',
      ['signer', 'statement', 'coordinatorKey'],
      '44'.repeat(32),
    ),
    one('another leaf', 'report-data', ['signer', 'inclusion', 'leafIndex'], signer.inclusion.leafIndex - 1),
    one('another path', 'report-data', ['signer', 'inclusion', 'path', 0], '55'.repeat(32)),
    one('another boot', 'report-data', ['signer', 'batch', 'bootId'], '66'.repeat(16)),
    one('another batch', 'report-data', ['signer', 'batch', 'sequence'], signer.batch.sequence + 1),
    one('another batch before', 'report-data', ['signer', 'batch', 'previous'], '77'.repeat(32)),
    one('another root secret', 'report-data', ['signer', 'config', 'rootSecret'], 'file'),
    one(
      'another identity provider',
      'report-data',
      ['signer', 'config', 'issuers', 0, 'issuer'],
      'https://evil.example',
    ),
    one('bytes after the quote', 'quote-policy', ['signer', 'quoteHex'], `${quote}01`),

    one('another sample', 'entropy', ['entropy', 'valueHex'], flip(entropy.valueHex, 3)),
    one('another signature of the sample', 'entropy', ['entropy', 'signatureHex'], flip(entropy.signatureHex, 3)),
    one('another source key', 'entropy', ['entropy', 'publicKey'], flip(entropy.publicKey, 3)),
    one('another time of the sample', 'entropy', ['entropy', 'timestamp'], '2026-06-15T11:59:59.000Z'),
    one('a day of the sample that does not exist', 'entropy', ['entropy', 'timestamp'], '2026-02-30T12:00:00.000Z'),
    one('another sequence number', 'entropy', ['entropy', 'sequence'], entropy.sequence + 1),

    one(
      'another report',
      'coordinator-report',
      ['coordinator', 'selfAttestation', 'reportHex'],
      flip(selfAttestation.reportHex, 2 * 0x60),
    ),
    one(
      'another certificate',
      'coordinator-report',
      ['coordinator', 'selfAttestation', 'certificates', 'ek'],
      flip(selfAttestation.certificates.ek, 900),
    ),
    one(
      'certificates in another order',
      'coordinator-report',
      ['coordinator', 'selfAttestation', 'certificates', 'ask'],
      selfAttestation.certificates.ark,
    ),
    one(
      'another coordinator measurement stated',
      'coordinator-report',
      ['coordinator', 'selfAttestation', 'measurement'],
      '88'.repeat(48),
    ),
    one(
      'another coordinator configuration',
      'coordinator-key',
      ['coordinator', 'selfAttestation', 'configHash'],
      '99'.repeat(32),
    ),
    one('another coordinator key', 'coordinator-key', ['coordinator', 'publicKey'], flip(coordinator.publicKey, 3)),
    one('another release', 'release', ['coordinator', 'release'], flip(coordinator.release, 3)),
    one('another name of the source', 'release', ['entropy', 'source'], 'another-satellite'),
    one(
      'another time of the coordinator’s report',
      'release',
      ['coordinator', 'selfAttestation', 'fetchedAt'],
      '2026-06-15T11:58:00.000Z',
    ),
    one(
      'a day of the coordinator’s report that does not exist',
      'release',
      ['coordinator', 'selfAttestation', 'fetchedAt'],
      '2026-02-30T12:00:00.000Z',
    ),
  ]
}

/** Makes the changes on a copy. */
export function tamper(golden: object, { changes }: Pick<Tampering, 'changes'>): unknown {
  const copy = structuredClone(golden) as unknown
  for (const change of changes) {
    const parents = change.path.slice(0, -1)
    const last = change.path.at(-1) as string
    const parent = parents.reduce((value, name) => (value as Record<string, unknown>)[name], copy) as Record<
      string,
      unknown
    >
    if ('value' in change) parent[last] = change.value
    else delete parent[last]
  }
  return copy
}

/** Changes one hex digit. */
export function flip(hex: string, position: number): string {
  const index = hex.startsWith('0x') ? position + 2 : position
  const digit = (Number.parseInt(hex.charAt(index), 16) ^ 1).toString(16)
  return hex.slice(0, index) + digit + hex.slice(index + 1)
}

export function flipParity(signature: string): string {
  return signature.slice(0, -2) + (signature.endsWith('1b') ? '1c' : '1b')
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** The second signature that ECDSA allows for the same digest. */
export function toHighS(signature: string): string {
  const s = ORDER - BigInt(`0x${signature.slice(66, 130)}`)
  return flipParity(signature.slice(0, 66) + s.toString(16).padStart(64, '0') + signature.slice(130))
}

export function toOtherCid(cid: string): string {
  return cid.slice(0, -2) + (cid.at(-2) === 'a' ? 'b' : 'a') + cid.slice(-1)
}
