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
import { type Asked, findAsked } from '../verifyPage/useAsked.ts'
import { fetchBytes } from './pageFetch.ts'
import { startVerification } from './startVerification.ts'

const WarmWorker = createWarmWorker()
/** A site always names a service; that of a row without sources has nothing. */
const nowhere = 'https://nowhere.test'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A site whose operator names all that a row has. */
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

/** As the page makes it of what a visitor chose or pasted. Undefined where it asks for nothing. */
async function toAsked(config: WebConfig, { subject, collaterals = [] }: Subject): Promise<Asked | undefined> {
  const { apiBaseUrl } = config
  if (typeof subject !== 'string') return { ...chooseReceipt([subject, ...collaterals]), apiBaseUrl }
  const pasted = parsePasted(subject)
  return pasted.kind === 'unknown' ? undefined : findAsked({ fetchBytes }, config, pasted)
}

function toRequest(config: WebConfig, asked: Asked, { at, opening }: Subject): VerifyRequest {
  const { trust, fault } = readOperatorTrust(config)
  expect(fault).toBeUndefined()
  return {
    ...toVerifyRequest({ ...asked, opening: opening?.bytes }, { trust, config }),
    // A visitor of the page cannot name another time.
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

test.each(samples)('the page’s worker, in Chromium, judges $name as the table says', async (row) => {
  expect(await verify(row)).toEqual(toWanted(row.expectedOnPage ?? row.expected))
})
