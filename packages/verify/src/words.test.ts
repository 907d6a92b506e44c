import { type Step, type StepId, stepTitles } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { describeStep, isSimulated, type StepContext, stepGroups } from './describeStep.ts'
import { type AnchorSource, describeVerdict } from './describeVerdict.ts'
import { parseAnchorForm } from './parseAnchorForm.ts'
import { apiBaseUrl, createFakeNetwork, issueReceipt, toFetchBytes, toTrustJson } from './service.fake.ts'
import { toCommand } from './toCommand.ts'
import { toGateways } from './toGateways.ts'
import { toPrintable } from './toPrintable.ts'
import { noTrust, parseTrust } from './trust.ts'
import { verifySubject } from './verifySubject.ts'

const ids = Object.keys(stepTitles) as StepId[]
const contract = { address: `0x${'ab'.repeat(20)}`, chainId: 31337, rpcUrl: 'http://localhost:8545/', fromBlock: 0 }

const issue = await issueReceipt()
const mock = await verifySubject(
  { fetchBytes: toFetchBytes(createFakeNetwork(issue)), onProgress: () => {} },
  {
    subject: { kind: 'cid', cid: issue.cid },
    trust: parseTrust(toTrustJson(issue)),
    gateways: [apiBaseUrl],
    isEventDue: true,
  },
)
const hardware: StepContext = {
  isMock: false,
  isEventMissing: false,
  receipt: issue.receipt,
  isOperatorNode: false,
}
const withTcb = (tcbStatus: 'UpToDate' | 'OutOfDate') => ({
  ...issue.receipt,
  signer: { ...issue.receipt.signer, tcbStatus },
})
const toStep = (id: StepId, status: Step['status']): Step => ({ id, status, title: '', detail: '' })

describe('steps', () => {
  test('each is in exactly one group, and has a sentence for each outcome', () => {
    expect(stepGroups.flatMap((group) => group.ids).toSorted()).toEqual(ids.toSorted())
    for (const id of ids) {
      for (const status of ['pass', 'fail', 'skip'] as const) {
        expect(describeStep(toStep(id, status), hardware)).toMatch(/\.$/)
      }
    }
  })

  test('a mock part is never described as hardware', () => {
    const step = { id: 'quote', title: '', status: 'pass', detail: 'MOCK evidence, correct in itself' } as const
    expect(describeStep(step, hardware)).toContain('simulated')
    expect(describeStep(step, hardware)).not.toContain('Intel')
  })

  test('of a real mock verification, no step about enclave, sample or coordinator stands as plainly passed', () => {
    const context = { ...mock, isOperatorNode: false }
    const simulated = mock.steps.filter((step) => isSimulated(step, context)).map(({ id }) => id)
    const expected = ['The key enclave', 'The random sample', 'The coordinator'].flatMap(
      (title) => stepGroups.find((group) => group.title === title)?.ids ?? [],
    )
    expect(simulated.toSorted()).toEqual(expected.toSorted())
    expect(simulated).toHaveLength(15)
    for (const step of mock.steps) {
      const sentence = describeStep(step, context)
      if (simulated.includes(step.id)) expect(sentence).toContain('simulated')
      else expect(sentence).not.toMatch(/hardware|processor|Intel|AMD/)
    }
  })

  test('the same steps on hardware are not called simulated, and a failure never is', () => {
    expect(isSimulated(toStep('report-data', 'pass'), hardware)).toBe(false)
    expect(isSimulated(toStep('report-data', 'fail'), { isMock: true })).toBe(false)
  })

  test('a processor is up to date only where Intel says so', () => {
    const say = (tcbStatus: 'UpToDate' | 'OutOfDate') =>
      describeStep(toStep('quote-policy', 'pass'), { ...hardware, receipt: withTcb(tcbStatus) })
    expect(say('UpToDate')).toContain('was up to date')
    expect(say('OutOfDate')).toMatch(/was not up to date.*OutOfDate/)
  })

  test('an event through the operator’s node is the operator’s word', () => {
    const word = 'By the word of the operator’s node, the public chain'
    for (const status of ['pass', 'fail'] as const) {
      expect(describeStep(toStep('event', status), { ...hardware, isOperatorNode: true })).toContain(word)
      expect(describeStep(toStep('event', status), hardware)).not.toContain('operator')
    }
    const missing = { ...hardware, isEventMissing: true, isOperatorNode: true }
    expect(describeStep(toStep('event', 'skip'), missing)).toContain(`${word} does not point`)
    expect(describeStep(toStep('event', 'skip'), { ...hardware, isOperatorNode: true })).toContain('not asked')
  })
})

describe('the verdict', () => {
  const judged = {
    isKnownCode: true,
    steps: [toStep('event', 'pass')],
    isEventMissing: false,
    receipt: withTcb('UpToDate'),
  }
  const say = (verdict: Parameters<typeof describeVerdict>[0]['verdict'], anchorSource: AnchorSource, lies = 0) =>
    describeVerdict({ ...judged, verdict }, { anchorSource, lies, status: 'complete' })

  test('against the operator’s anchors says whose they are', () => {
    expect(say('verified', 'operator').title).toContain('operator’s own anchors')
    expect(say('verified', 'visitor').title).toContain('you named')
  })

  test('only a verified receipt without lies is good', () => {
    expect(say('verified', 'visitor').tone).toBe('good')
    expect(say('verified', 'visitor', 1)).toMatchObject({ tone: 'bad', title: expect.stringContaining('false') })
    expect(say('mock', 'visitor').tone).toBe('warning')
    expect(say('unknown-code', 'operator')).toMatchObject({ tone: 'warning', title: 'Genuine hardware, unknown code' })
    expect(say('incomplete', 'operator').tone).toBe('warning')
    expect(say('failed', 'visitor').tone).toBe('bad')
  })

  test.each(['verified', 'mock', 'unknown-code'] as const)(
    '%s without an event is not good, and says why',
    (verdict) => {
      const skipped = { ...judged, verdict, steps: [toStep('event', 'skip')] }
      const context = { anchorSource: 'visitor', lies: 0, status: 'onchain_failed' } as const
      expect(describeVerdict({ ...skipped, isEventMissing: true }, context)).toMatchObject({
        tone: 'warning',
        title: expect.stringMatching(/, but the chain does not point to it \(the service says: onchain_failed\)$/),
      })
      expect(describeVerdict(skipped, context)).toMatchObject({
        tone: 'warning',
        title: expect.stringMatching(/, but the chain was not asked$/),
      })
    },
  )

  test('a processor that was not up to date is a reservation', () => {
    const late = { ...judged, verdict: 'verified', receipt: withTcb('OutOfDate') } as const
    expect(describeVerdict(late, { anchorSource: 'visitor', lies: 0, status: 'complete' })).toMatchObject({
      tone: 'warning',
      title: expect.stringContaining('the processor was not up to date (OutOfDate)'),
    })
  })
})

describe('the command', () => {
  const context = { trust: { ...noTrust, contract }, anchorSource: 'operator', isEventDue: true } as const

  test('asks the same service and the same contract', () => {
    const subject = { kind: 'proof', slug: 'q8Zk2vXo1fTn0uYbWcR3dA', apiBaseUrl: 'http://localhost:8080' } as const
    expect(toCommand(subject, context)).toBe(
      `npm run verify -- q8Zk2vXo1fTn0uYbWcR3dA --api http://localhost:8080 --rpc http://localhost:8545/ --contract ${contract.address}`,
    )
    expect(toCommand(subject, { ...context, isEventDue: false })).not.toContain('--contract')
    expect(toCommand(subject, { ...context, isEventDue: false, anchorSource: 'visitor' })).toContain(
      `--rpc http://localhost:8545/ --contract ${contract.address}`,
    )
  })

  test('holds the visitor’s anchors, never the operator’s', () => {
    const trust = { ...noTrust, entropyKeys: ['cd'.repeat(32)] }
    const subject = { kind: 'files', receipt: '-r.json', collateral: 'c.json', gateway: 'https://g.test' } as const
    expect(toCommand(subject, { ...context, trust })).toBe('npm run verify -- ./-r.json --collateral c.json')
    expect(toCommand({ ...subject, collateral: undefined }, { ...context, trust })).toMatch(
      / --ipfs https:\/\/g\.test$/,
    )
    expect(toCommand(subject, { ...context, trust, anchorSource: 'visitor' })).toMatch(/ --entropy-key (cd){32}$/)
  })

  test('is safe to paste, whatever a link or a service put into it', () => {
    const subject = { kind: 'proof', slug: "x'; rm -rf ~ #$(id)", apiBaseUrl: 'http://a.test/?a&b' } as const
    expect(toCommand(subject, { ...context, isEventDue: false })).toBe(
      `npm run verify -- 'x'\\''; rm -rf ~ #$(id)' --api 'http://a.test/?a&b'`,
    )
  })
})

describe('the visitor’s anchors', () => {
  const empty = {
    measurements: '',
    configHashes: '',
    coordinatorMeasurements: '',
    coordinatorConfigHashes: '',
    entropyKeys: '',
    address: '',
    rpcUrl: '',
    chainId: '',
  }
  const operator = parseTrust({ allowMock: true, entropyKeys: ['ee'.repeat(32)], contract })

  test('replace the operator’s: what is left empty trusts nothing', () => {
    expect(parseAnchorForm(empty, operator).trust).toEqual({ ...noTrust, allowMock: true })
  })

  test('one a line; the node falls back to the operator’s', () => {
    const { trust } = parseAnchorForm(
      { ...empty, entropyKeys: `${'AA'.repeat(32)}\n\n 0x${'bb'.repeat(32)} `, address: `0x${'12'.repeat(20)}` },
      operator,
    )
    expect(trust).toMatchObject({
      entropyKeys: ['aa'.repeat(32), 'bb'.repeat(32)],
      contract: { ...contract, address: `0x${'12'.repeat(20)}` },
    })
  })

  test('each fault is told at its field', () => {
    const { faults } = parseAnchorForm(
      { ...empty, configHashes: `${'aa'.repeat(32)}\nxyz`, address: '0x12', chainId: 'one' },
      operator,
    )
    expect(faults).toEqual({
      configHashes: 'Line 2 is not 32 bytes of hex.',
      address: 'This is not 20 bytes of hex.',
      chainId: 'This is not the number of a chain.',
    })
  })

  test('a contract without any node to ask is a fault', () => {
    expect(parseAnchorForm({ ...empty, address: contract.address }, noTrust).faults).toHaveProperty('rpcUrl')
  })
})

test('gateways: the one that is set, the one that the proof names, then the service; never another protocol', () => {
  const api = 'http://localhost:8080/'
  expect(toGateways({ apiBaseUrl: api, ipfsUrl: 'https://g.test/path/ipfs/bafkrei' })).toEqual([
    'https://g.test/path',
    'http://localhost:8080',
  ])
  expect(toGateways({ apiBaseUrl: api, ipfsGatewayUrl: 'https://set.test/ipfs/' })).toEqual([
    'https://set.test',
    'http://localhost:8080',
  ])
  for (const ipfsUrl of ['ipfs://bafkrei', 'javascript:alert(1)', 'https://a:b@g.test/ipfs/x', null]) {
    expect(toGateways({ apiBaseUrl: api, ipfsUrl })).toEqual(['http://localhost:8080'])
  }
})

test('characters that mislead a reader are shown as such', () => {
  expect(toPrintable('a\u202eb\u200bc\nd')).toBe('a\ufffdb\ufffdc\ufffdd')
})
