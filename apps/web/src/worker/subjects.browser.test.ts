import { ServiceError } from '@countersign/protocol'
import { chooseReceipt, recogniseSubject, type VerifyRequest } from '@countersign/verify'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { apiBaseUrl, gatewayUrl, rpcUrl } from '../../../../packages/verify/src/network.fake.ts'
import { categories, type SubjectRow } from '../../../../packages/verify/src/subjects/subjectRow.fake.ts'
import {
  createRowNetwork,
  subjects,
  toFound,
  toRowManifest,
  toWanted,
} from '../../../../packages/verify/src/subjects/table.fake.ts'
import { startVerification } from './startVerification.ts'
import { createWarmWorker } from './warmWorker.fake.ts'

const WarmWorker = createWarmWorker()

afterEach(() => {
  vi.unstubAllGlobals()
})

/** As the page makes it of what a visitor chose or pasted. */
function toSubject({ subject, collaterals = [] }: SubjectRow): Pick<VerifyRequest, 'subject' | 'collaterals'> {
  if (typeof subject !== 'string') return chooseReceipt([subject, ...collaterals])
  const named = recogniseSubject(subject)
  return { subject: named.kind === 'proof' ? { ...named, api: named.origin ?? apiBaseUrl } : named }
}

function toRequest(row: SubjectRow): VerifyRequest {
  const { hasSources = true, hasNode = true, tcbStatuses = [], allowMock = true, isEventDue = true, at } = row
  return {
    ...toSubject(row),
    manifests: [toRowManifest(row)],
    ...(hasSources ? { gateways: [gatewayUrl], api: apiBaseUrl } : {}),
    ...(hasNode ? { rpc: rpcUrl } : {}),
    tcbStatuses,
    allowMock,
    isEventDue,
    ...(at === undefined ? {} : { at }),
  }
}

async function verify(row: SubjectRow) {
  vi.stubGlobal('fetch', createRowNetwork(row).fetch)
  vi.stubGlobal('Worker', WarmWorker)
  try {
    return toFound(await startVerification(toRequest(row), { onProgress: () => {} }).result)
  } catch (error) {
    if (error instanceof ServiceError) return { error: error.code }
    throw error
  }
}

describe('the page’s worker, in Chromium, judges each subject as the table says', () => {
  test('which has at least 60, of every category', () => {
    expect(navigator.userAgent).toContain('Chrome')
    expect(subjects.length).toBeGreaterThanOrEqual(60)
    expect(new Set(subjects.map(({ category }) => category))).toEqual(new Set(categories))
  })

  test.each(subjects.map((row) => [row.category, row.name, row] as const))('%s: %s', async (_category, _name, row) => {
    expect(await verify(row)).toEqual(toWanted(row))
  })
})
