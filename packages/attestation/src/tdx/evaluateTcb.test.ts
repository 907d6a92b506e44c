import { describe, expect, test } from 'vitest'
import { evaluateTcb } from './evaluateTcb.ts'
import { readTdxModule, type TdReport } from './parseQuote.ts'
import { parseTcbInfo, type TcbInfo } from './tcbInfo.ts'

const zeros = (length: number) => new Uint8Array(length)
const svns = (...values: number[]) => Uint8Array.from({ length: 16 }, (_, index) => values[index] ?? 0)
const components = (...values: number[]) => [...svns(...values)]

function level(status: string, sgx: number, tdx: number[], pceSvn = 11) {
  return {
    sgxComponents: components(sgx),
    tdxComponents: components(...tdx),
    pceSvn,
    status,
    advisoryIds: [],
    tcbDate: 0,
  }
}

const module = { mrSigner: zeros(48), attributes: zeros(8) }

function info(changes: Partial<TcbInfo>): TcbInfo {
  return {
    issueDate: 0,
    nextUpdate: 0,
    fmspc: '',
    pceId: '',
    tcbEvaluationDataNumber: 1,
    tdxModule: module,
    tdxModuleIdentities: [],
    tcbLevels: [],
    ...changes,
  }
}

function evaluate(
  tcbInfo: TcbInfo,
  teeTcbSvn: Uint8Array<ArrayBuffer>,
  sgx = 9,
  pceSvn = 11,
  teeTcbSvn2?: Uint8Array<ArrayBuffer>,
) {
  const body = { teeTcbSvn, teeTcbSvn2, mrSignerSeam: zeros(48), seamAttributes: zeros(8) } as unknown as TdReport
  const platform = {
    ppid: '',
    fmspc: '',
    pceId: '',
    components: components(sgx),
    pceSvn,
    platformInstanceId: undefined,
  }
  return evaluateTcb({ body, platform, qeIsvSvn: 4 }, tcbInfo, [{ isvSvn: 4, status: 'UpToDate', advisoryIds: [] }])
    .status
}

describe('QVL matchTcbLevels', () => {
  const tcbLevels = [level('UpToDate', 7, [5, 0, 7]), level('OutOfDate', 6, [3, 0, 6]), level('Revoked', 1, [1, 0, 1])]

  test('uses the first level that SGX components, PCE SVN and TDX components reach', () => {
    expect(evaluate(info({ tcbLevels }), svns(5, 0, 7), 7)).toBe('UpToDate')
    expect(evaluate(info({ tcbLevels }), svns(5, 0, 6), 7)).toBe('OutOfDate')
    expect(evaluate(info({ tcbLevels }), svns(5, 0, 7), 6)).toBe('OutOfDate')
  })

  test('rejects a PCE SVN below every level', () => {
    expect(() => evaluate(info({ tcbLevels }), svns(5, 0, 7), 7, 10)).toThrow(
      expect.objectContaining({ code: 'tcb_not_supported' }),
    )
  })

  test('rejects a platform with an SGX level and no TDX level', () => {
    expect(() => evaluate(info({ tcbLevels }), svns(0, 0, 0), 7)).toThrow(
      expect.objectContaining({ code: 'tcb_not_supported' }),
    )
  })

  test('compares components 0 and 1 only for a module of version 0', () => {
    const identity = { ...module, id: 'TDX_01', tcbLevels: [{ isvSvn: 4, status: 'UpToDate', advisoryIds: [] }] }
    expect(evaluate(info({ tcbLevels }), svns(4, 0, 7))).toBe('OutOfDate')
    expect(evaluate(info({ tcbLevels, tdxModuleIdentities: [identity] }), svns(4, 1, 7))).toBe('UpToDate')
  })
})

describe('QVL checkForRelaunch', () => {
  const identity = (id: string, latest: number) => ({
    ...module,
    id,
    tcbLevels: [
      { isvSvn: latest, status: 'UpToDate', advisoryIds: [] },
      { isvSvn: 1, status: 'OutOfDate', advisoryIds: [] },
    ],
  })
  const tcbInfo = info({
    tcbLevels: [level('UpToDate', 7, [5, 0, 7]), level('OutOfDate', 7, [3, 0, 6])],
    tdxModuleIdentities: [identity('TDX_01', 5), identity('TDX_03', 8)],
  })

  test.each([
    ['the running module is the latest of its version', svns(5, 1, 7), 'TDRelaunchAdvised'],
    ['the running module is the latest of a later version', svns(8, 3, 7), 'TDRelaunchAdvised'],
    ['the running module is itself old', svns(4, 1, 7), 'OutOfDate'],
    ['a later component is still old', svns(5, 1, 6), 'OutOfDate'],
    ['the running module has no version, and reaches the latest level', svns(5, 0, 7), 'TDRelaunchAdvised'],
    ['the running module has no version, and does not', svns(4, 0, 7), 'OutOfDate'],
  ])('%s', (_, teeTcbSvn2, status) => {
    expect(evaluate(tcbInfo, svns(2, 1, 7), 9, 11, teeTcbSvn2)).toBe(status)
  })

  test('rejects an unknown running module', () => {
    expect(() => evaluate(tcbInfo, svns(2, 1, 7), 9, 11, svns(5, 9, 7))).toThrow(
      expect.objectContaining({ code: 'tdx_module_mismatch' }),
    )
  })

  test('advises no relaunch for an up-to-date module on an outdated platform', () => {
    expect(evaluate(tcbInfo, svns(5, 1, 6), 9, 11, svns(5, 1, 7))).toBe('OutOfDate')
  })
})

test('sorts TCB levels in Intel’s order', () => {
  const entry = (svn: number, pcesvn: number, tdx: number, tcbStatus: string) => ({
    tcb: {
      sgxtcbcomponents: components(svn).map((value) => ({ svn: value })),
      tdxtcbcomponents: components(0, 0, tdx).map((value) => ({ svn: value })),
      pcesvn,
    },
    tcbDate: '2024-03-13T00:00:00Z',
    tcbStatus,
  })
  const text = JSON.stringify({
    id: 'TDX',
    version: 3,
    issueDate: '2026-06-01T00:00:00Z',
    nextUpdate: '2026-07-01T00:00:00Z',
    fmspc: '00906ED50000',
    pceId: '0000',
    tcbType: 0,
    tcbEvaluationDataNumber: 20,
    tdxModule: { mrsigner: '00'.repeat(48), attributes: '00'.repeat(8), attributesMask: 'FF'.repeat(8) },
    tcbLevels: [entry(1, 5, 1, 'd'), entry(2, 5, 1, 'c'), entry(2, 11, 1, 'b'), entry(2, 11, 2, 'a')],
  })
  expect(parseTcbInfo(text).tcbLevels.map(({ status }) => status)).toEqual(['a', 'b', 'c', 'd'])
})

test.each([
  [[5, 0, 6], { id: undefined, svn: 5 }],
  [[11, 1, 4], { id: 'TDX_01', svn: 11 }],
  [[0, 0xab, 0], { id: 'TDX_AB', svn: 0 }],
])('TEE_TCB_SVN %j', (svns, module) => {
  expect(readTdxModule(Uint8Array.from(svns))).toEqual(module)
})
