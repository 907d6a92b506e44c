import { ServiceError } from '@countersign/protocol'
import { chooseReceipt, findLies, type VerifyRequest } from '@countersign/verify'
import { afterEach, expect, test, vi } from 'vitest'
import { contract } from '../../../../packages/verify/test/issues.ts'
import { apiBaseUrl, gatewayUrl, rpcUrl } from '../../../../packages/verify/test/network.ts'
import {
  createSubjectNetwork,
  type Subject,
  samples,
  toFound,
  toSubjectManifest,
  toWanted,
} from '../../../../packages/verify/test/subjects.ts'
import { createWarmWorker } from '../../test/worker/warmWorker.ts'
import { readOperatorTrust, toVerifyRequest } from '../anchors/trust.ts'
import type { WebConfig } from '../config.ts'
import { parsePasted } from '../verifyPage/SubjectForm.tsx'
import { type FoundSubject, findSubject } from '../verifyPage/useLookup.ts'
import { fetchBytes } from './pageFetch.ts'
import { startVerification } from './startVerification.ts'

const WarmWorker = createWarmWorker()
/** A site always has a service. For a row without sources, it returns nothing. */
const nowhere = 'https://nowhere.test'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A site whose operator configures everything in the row. */
function toSite(row: Subject): WebConfig {
  const { hasSources = true, hasNode = true, tcbStatuses = [], allowMock = true, nodeChainId = 31337 } = row
  return {
    ...(hasSources ? { apiBaseUrl, ipfsGatewayUrl: gatewayUrl } : { apiBaseUrl: nowhere }),
    chainId: 31337,
    ...(hasNode ? { attestations: { chainId: nodeChainId, rpcUrl, address: contract } } : {}),
    trust: toSubjectManifest(row),
    allowMock,
    tcbStatuses,
  }
}

/** The request that the page would build from a visitor's input. Undefined if it builds none. */
async function toAsked(config: WebConfig, { subject, collaterals = [] }: Subject): Promise<FoundSubject | undefined> {
  const { apiBaseUrl } = config
  if (typeof subject !== 'string') return { ...chooseReceipt([subject, ...collaterals]), apiBaseUrl }
  const pasted = parsePasted(subject)
  return pasted.kind === 'unknown' ? undefined : findSubject({ fetchBytes }, config, pasted)
}

function toRequest(config: WebConfig, asked: FoundSubject, { at, opening }: Subject): VerifyRequest {
  const { trust, fault } = readOperatorTrust(config)
  expect(fault).toBeUndefined()
  return {
    ...toVerifyRequest({ ...asked, opening: opening?.bytes }, { trust, config }),
    // The page has no option for another time.
    ...(at === undefined ? {} : { at }),
  }
}

async function verify(row: Subject) {
  const network = createSubjectNetwork(row)
  network.routes.push([nowhere, () => Promise.reject(new TypeError('Failed to fetch'))])
  vi.stubGlobal('fetch', network.fetch)
  vi.stubGlobal('Worker', WarmWorker)
  const config = toSite(row)
  try {
    const asked = await toAsked(config, row)
    if (asked === undefined) return { error: 'invalid_arguments' }
    const outcome = await startVerification(toRequest(config, asked, row), { onProgress: () => {} }).result
    return toFound({ ...outcome, lies: findLies(outcome.claims) })
  } catch (error) {
    if (error instanceof ServiceError) return { error: error.code }
    throw error
  }
}

test.each(samples)('the page’s worker in Chromium returns the table’s verdict for $name', async (row) => {
  expect(await verify(row)).toEqual(toWanted(row.expectedOnPage ?? row.expected))
})
