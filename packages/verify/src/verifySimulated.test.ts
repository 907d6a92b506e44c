import { createVerifier } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import { describe, expect, test } from 'vitest'
import { createFetchBytes } from './fetchBytes.ts'
import { issueGoldenV2, toManifest } from './issues.fake.ts'
import { createFakeNetwork, gatewayUrl, rpcUrl } from './network.fake.ts'
import { verify } from './verify.ts'

/** Takes the simulated machines for real ones, so that nothing but the sample is simulated. */
const verifier = createVerifier({ roots: simulatedRoots().map((root) => ({ ...root, mode: 'hardware' as const })) })
/** With dstack, the registers alone would leave the code of a machine unknown. */
const config = { rootSecret: `attested:sha256:${'ab'.repeat(32)}` } as const

describe('a sample of a simulated source makes the whole MOCK, even under an anchor that names its key', () => {
  test.each([
    ['a satellite', false],
    ['a beacon', true],
  ])('%s', async (_, isBeacon) => {
    const issue = await issueGoldenV2({ isBeacon, config })
    const fetchBytes = createFetchBytes({ fetch: createFakeNetwork(issue).fetch, timeoutMs: 5_000 })
    const request = {
      subject: { kind: 'cid', cid: issue.cid },
      ...{ manifests: [toManifest(issue)], gateways: [gatewayUrl], rpc: rpcUrl },
    } as const
    const { conclusion, isMock, steps } = await verify({ fetchBytes, now: () => new Date(), verifier }, request)
    expect({ conclusion, isMock }).toEqual({ conclusion: 'mock', isMock: true })
    expect(steps.filter(({ detail }) => detail.includes('MOCK')).map(({ id }) => id)).toEqual(['entropy-key'])
  })
})
