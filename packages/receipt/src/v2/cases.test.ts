import { readFileSync } from 'node:fs'
import { createVerifier } from '@countersign/attestation'
import { fromHex } from '@countersign/protocol'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import openingSchema from '../../../protocol/spec/opening-v1.schema.json' with { type: 'json' }
import {
  type CarBlock,
  type CarCase,
  type Case,
  createCaseFiles,
  issueFaultReceipts,
} from '../../spec/createCaseFiles.ts'
import { issueGolden, parseGolden } from '../../spec/createSpecFiles.ts'
import type { FaultTampering } from '../../spec/tamperedFaults.ts'
import { tamperV2 } from '../../spec/tamperedV2.ts'
import { asHardware, failures, service, statusOf } from '../../test/checkReceipt.ts'
import type { Anchors } from '../check/anchors.ts'
import { type CheckReceiptOptions, checkReceipt } from '../checkReceipt.ts'
import { toCid } from '../cid.ts'
import { encodeCarHeader, encodeCarSection, parseCar, parseReceiptCar } from './car.ts'

const spec = new URL('../../spec/', import.meta.url)
const read = (path: string) => new Uint8Array(readFileSync(new URL(path, spec)))
const has = (path: string) => files.has(path)
const files = await createCaseFiles()
const { receipts, cases } = JSON.parse(new TextDecoder().decode(read('golden-v2/cases/cases.json'))) as {
  receipts: Record<string, { cid: string; anchors: Anchors }>
  cases: Case[]
}
const cars = JSON.parse(new TextDecoder().decode(read('golden-v2/cases/cars.json'))) as CarCase[]

const simulated = { roots: service.roots, mockEntropyKeys: service.mockEntropyKeys }
const readers = {
  simulated: { ...simulated, verifier: createVerifier({ roots: service.roots }) },
  hardware: { ...simulated, ...asHardware() },
}

/** Null leaves a member out. */
function mergeAnchors(anchors: Anchors, changes: object = {}): Anchors {
  return Object.fromEntries(Object.entries({ ...anchors, ...changes }).filter(([, value]) => value !== null))
}

function toOptions({ receipt, opening, reader = {} }: Case): CheckReceiptOptions {
  const { chain, revocations, reevaluation } = reader
  return {
    ...(reader.isHardware ? readers.hardware : readers.simulated),
    ...(reader.roots && { roots: reader.roots, verifier: createVerifier({ roots: reader.roots }) }),
    anchors: mergeAnchors(receipts[receipt]?.anchors ?? {}, reader.anchors),
    policy: reader.policy,
    isEventDue: reader.isEventDue,
    opening: opening === undefined ? undefined : new TextEncoder().encode(opening),
    revocations: revocations && { list: fromHex(revocations.list), at: new Date(revocations.at) },
    reevaluation: reevaluation && {
      at: new Date(reevaluation.at),
      collateral: read(`golden-v2/cases/${reevaluation.collateral}`),
    },
    chain: chain && {
      getLogs: async () => chain.events.map((event) => ({ ...event, blockTime: new Date(event.blockTime) })),
      getTransactionState: async () => chain.transaction,
    },
  }
}

test('match the code byte for byte', () => {
  for (const [path, content] of files) {
    expect([path, Buffer.from(read(path)).equals(Buffer.from(content))]).toEqual([path, true])
  }
})

describe('the cases', () => {
  test.each(cases.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    const folder = `golden-v2/${one.receipt}`
    const isGiven = (name: 'release' | 'batch' | 'coordinator' | 'collateral') => !one.without?.includes(name)
    const coordinator = has(`${folder}/coordinator.json`) ? `${folder}/coordinator.json` : 'golden-v2/coordinator.json'
    const hasPolicy = one.receipt.startsWith('vaults/') || has(`${folder}/policy.json`)
    const blocks = {
      ...(isGiven('release') && { release: read(`${folder}/release.json`) }),
      ...(isGiven('batch') && { batch: read(`${folder}/batch.json`) }),
      ...(isGiven('coordinator') && { coordinator: read(coordinator) }),
      ...(hasPolicy && { policy: read(`${folder}/policy.json`) }),
    }
    const collateral = isGiven('collateral') ? read('golden/collateral.json') : undefined
    const bytes = read(`${folder}/attestation.json`)
    const result = await checkReceipt(bytes, collateral, { ...toOptions(one), blocks })
    const steps = Object.keys(one.steps).map((id) => [id, statusOf(result, id as keyof typeof one.steps)])
    expect({ cid: result.cid, verdict: result.verdict, steps: Object.fromEntries(steps) }).toEqual({
      cid: receipts[one.receipt]?.cid,
      verdict: one.verdict,
      steps: one.steps,
    })
  })

  test('have openings as in the schema', () => {
    const isInSchema = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(openingSchema)
    const accepted = cases.filter(({ opening, steps }) => steps.opening === 'pass' && !opening?.includes('"identity"'))
    expect(accepted.length).toBeGreaterThanOrEqual(10)
    for (const { name, opening = '' } of accepted) expect([name, isInSchema(JSON.parse(opening))]).toEqual([name, true])
  })

  test('have every verdict', () => {
    const verdicts = ['failed', 'incomplete', 'late', 'mock', 'unbounded', 'unknown-code', 'verified']
    expect([...new Set(cases.map(({ verdict }) => verdict))].toSorted()).toEqual(verdicts)
  })
})

describe('faults', async () => {
  const others = await issueFaultReceipts()
  const golden = { transaction: await issueGolden({ kind: 'transaction' }), ...others }
  const tamperings = JSON.parse(new TextDecoder().decode(read('golden-v2/cases/tampered.json'))) as FaultTampering[]

  test.each(tamperings.map((one) => [one.receipt, one.name, one] as const))('%s: %s', async (receipt, _, tampering) => {
    const honest = golden[receipt as keyof typeof golden]
    const { bytes, blocks } = tamperV2(parseGolden(honest), tampering)
    const result = await checkReceipt(bytes, honest.collateral, {
      ...readers.simulated,
      anchors: honest.anchors,
      blocks,
    })
    expect(failures(result)[0]).toBe(tampering.step)
  })
})

describe('the CAR file', () => {
  const car = read('golden-v2/cases/transaction.car')
  const { root, blocks } = parseCar(car)
  const order: CarBlock[] = ['attestation', 'release', 'coordinator', 'batch', 'collateral']
  const byName = Object.fromEntries([...blocks].map(([, block], place) => [order[place], block]))

  test.each(cars.map((one) => [one.name, one] as const))(
    '%s',
    async (_, { sections = order, replace, error, verdict }) => {
      const parts = sections.map((name) => byName[name] as Uint8Array)
      const file = Buffer.concat([
        encodeCarHeader(root),
        ...parts.map((block) => encodeCarSection(toCid(block), block)),
      ])
      const { start, end, hex } = replace ?? { start: 0, end: 0, hex: '' }
      const changed = new Uint8Array(
        Buffer.concat([file.subarray(0, start), Buffer.from(hex, 'hex'), file.subarray(end)]),
      )
      if (error !== null)
        return expect(() => parseReceiptCar(changed)).toThrow(expect.objectContaining({ code: error }))
      const { bytes, collateral, blocks: found } = parseReceiptCar(changed)
      const { anchors } = receipts.transaction ?? {}
      expect(await checkReceipt(bytes, collateral, { ...readers.simulated, anchors, blocks: found })).toMatchObject({
        verdict,
      })
    },
  )
})
