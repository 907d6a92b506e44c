/** What a signature's processor time is spent on, in the order in which it happens. */
export const stages = [
  'HTTP',
  'parse',
  'lookup',
  'entropy',
  'enclave call',
  'signing',
  'quote',
  'checks',
  'commit',
  'database',
  'answer',
  'garbage collection',
  'runtime',
  'bench',
  'other',
] as const

export type Stage = (typeof stages)[number]

/**
 * How the paths of our own code begin, from the root of a checkout, and after `#` their functions; and what Node does only for one stage. Of
 * a stack, the innermost function that is here decides; of several beginnings, the longest.
 */
export const ownCode: readonly (readonly [stage: Stage, beginnings: readonly string[]])[] = [
  [
    'HTTP',
    [
      'services/coordinator/src/http/',
      'services/enclave/src/app.ts',
      'services/enclave/src/server.ts',
      'services/enclave/src/serveCalls.ts',
    ],
  ],
  ['parse', ['services/coordinator/src/http/parse', 'services/coordinator/src/http/readBody.ts']],
  ['parse', ['services/enclave/src/parseRequest.ts']],
  [
    'lookup',
    [
      'services/coordinator/src/auth/',
      'services/coordinator/src/sign/findSigner.ts',
      'services/coordinator/src/sign/quota.ts',
      'services/coordinator/src/store/signers.ts',
      'services/coordinator/src/store/sessions.ts',
    ],
  ],
  ['entropy', ['services/coordinator/src/entropy/', 'services/coordinator/src/store/entropySamples.ts']],
  [
    'enclave call',
    [
      'services/coordinator/src/enclave/',
      'services/coordinator/src/sign/batchSigner.ts',
      'services/coordinator/src/gather.ts',
      'services/coordinator/src/sign/signJobs.ts',
    ],
  ],
  ['signing', ['services/enclave/src/keys/', 'services/enclave/src/sign/']],
  [
    'quote',
    ['services/enclave/src/sign/batch.ts', 'services/enclave/src/attest.ts', 'services/enclave/src/hardware.ts'],
  ],
  [
    'checks',
    [
      'services/coordinator/src/sign/check',
      'services/coordinator/src/sign/verifyBatch.ts',
      'services/coordinator/src/sign/signatureWorker.ts',
      'services/coordinator/src/sign/secp256k1.ts',
      'services/coordinator/src/collateral/',
      'services/enclave/src/callers.ts',
      'services/enclave/src/grant/',
      'services/enclave/src/sign/samples.ts',
      'services/enclave/src/vault/',
    ],
  ],
  [
    'commit',
    [
      'services/coordinator/src/sign/commit.ts',
      'services/coordinator/src/sign/release.ts',
      'services/coordinator/src/sign/logStep.ts',
      'services/coordinator/src/store/signings.ts',
      'services/coordinator/src/store/sharedRecords.ts',
      'services/coordinator/src/mlDsa65.ts',
    ],
  ],
  ['answer', ['services/enclave/src/server.ts#send', 'node:_http_outgoing', 'node:_http_server#writeHead']],
]

/**
 * The same for stacks without such a function: what the system or a library calls when something has come or is due. `node:` is Node's
 * own code; where that is all there is, the stage is `runtime`.
 */
export const sharedCode: typeof ownCode = [
  ['HTTP', ['node_modules/hono/', 'node_modules/@hono/', 'node:_http_', 'packages/service/']],
  ['answer', ['node_modules/@hono/node-server/#responseVia']],
  ['entropy', ['node:internal/deps/undici']],
  ['enclave call', ['node_modules/undici/']],
  ['quote', ['packages/attestation/src/simulator/', 'packages/evidence/']],
  ['checks', ['packages/attestation/']],
  ['commit', ['packages/receipt/']],
  ['database', ['node_modules/pg', 'node_modules/kysely/', 'services/coordinator/src/store/']],
]
