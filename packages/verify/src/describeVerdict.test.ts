import { DSTACK_SECRET, type Verdict } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { issueGolden } from '../test/issues.ts'
import { type AnchorSource, describeVerdict } from './describeVerdict.ts'
import type { VerifierStep } from './steps.ts'

const issue = await issueGolden()
const withTcb = (tcbStatus: 'UpToDate' | 'OutOfDate') => ({
  ...issue.receipt,
  signer: { ...issue.receipt.signer, tcbStatus },
})
const toStep = (id: VerifierStep['id'], status: VerifierStep['status']): VerifierStep => ({
  id,
  status,
  title: '',
  detail: '',
})

describe('the verdict', () => {
  const checkedReceipt = {
    isKnownCode: true,
    isMockRefused: false,
    steps: [toStep('event', 'pass')],
    isEventMissing: false,
    timeBound: 'bounded' as const,
    receipt: issue.receipt,
    view: withTcb('UpToDate'),
  }
  const say = (verdict: Parameters<typeof describeVerdict>[0]['verdict'], anchorSource: AnchorSource, lies = 0) =>
    describeVerdict({ ...checkedReceipt, verdict }, { anchorSource, lies, status: 'complete' })

  test('names the operator’s anchors as the operator’s', () => {
    expect(say('verified', 'operator').title).toContain('against the operator’s anchors')
    expect(say('verified', 'visitor').title).toContain('against your anchors')
  })

  test('names the anchors only by their source', () => {
    for (const verdict of ['verified', 'mock', 'unknown-code', 'late', 'unbounded', 'incomplete', 'failed'] as const) {
      const { title, sentence } = say(verdict, 'operator')
      expect(`${title} ${sentence}`).not.toMatch(/\byours?\b|you (?:named|trust)/)
    }
    expect(say('mock', 'operator').sentence).toContain('the operator’s anchors')
    expect(say('mock', 'visitor').sentence).toContain('your anchors')
  })

  test('is good only for a verified receipt without false claims', () => {
    expect(say('verified', 'visitor').tone).toBe('good')
    expect(say('verified', 'visitor', 1)).toMatchObject({ tone: 'bad', title: expect.stringContaining('false') })
    expect(say('mock', 'visitor').tone).toBe('warning')
    expect(say('unknown-code', 'operator')).toMatchObject({ tone: 'warning', title: 'Genuine hardware, unknown code' })
    expect(say('incomplete', 'operator').tone).toBe('warning')
    expect(say('failed', 'visitor').tone).toBe('bad')
  })

  test.each([
    ['mock', ', but '],
    ['unknown-code', ', but '],
    ['unbounded', ': '],
  ] as const)('%s without an event is not good, and gives the reason', (verdict, link) => {
    const skipped = { ...checkedReceipt, verdict, timeBound: 'unbounded' as const, steps: [toStep('event', 'skip')] }
    const context = { anchorSource: 'visitor', lies: 0, status: 'onchain_failed' } as const
    expect(describeVerdict({ ...skipped, isEventMissing: true }, context)).toMatchObject({
      tone: 'warning',
      title: expect.stringMatching(`${link}the chain does not point to it \\(the service says: onchain_failed\\)$`),
    })
    expect(describeVerdict(skipped, context)).toMatchObject({
      tone: 'warning',
      title: expect.stringMatching(`${link}the chain was not asked$`),
    })
  })

  test.each([
    ['mock', 'Nothing failed, on MOCK evidence, but the event came too late'],
    ['unknown-code', 'Genuine hardware, unknown code, but the event came too late'],
    ['late', 'Genuine hardware, known code, unknown time: the event came too late'],
  ] as const)('%s with a late event is not good, and says why', (verdict, title) => {
    const context = { anchorSource: 'visitor', lies: 0, status: 'complete' } as const
    expect(describeVerdict({ ...checkedReceipt, verdict, timeBound: 'late' }, context)).toMatchObject({
      tone: 'warning',
      title,
    })
  })

  test('a processor that was not up to date is a reservation', () => {
    const late = { ...checkedReceipt, verdict: 'verified', view: withTcb('OutOfDate') } as const
    expect(describeVerdict(late, { anchorSource: 'visitor', lies: 0, status: 'complete' })).toMatchObject({
      tone: 'warning',
      title: expect.stringContaining('the processor was not up to date (OutOfDate)'),
    })
  })

  test('on known code warns who can give other code a dstack secret', () => {
    const say = (verdict: Verdict, rootSecret: string, isKnownCode = true) => {
      const view = withTcb('UpToDate')
      const signer = { ...view.signer, config: { ...view.signer.config, rootSecret } }
      const context = { anchorSource: 'visitor', lies: 0, status: 'complete' } as const
      return describeVerdict({ ...checkedReceipt, verdict, isKnownCode, view: { ...view, signer } }, context).notes
    }
    for (const verdict of ['verified', 'mock'] as const) expect(say(verdict, 'dstack')).toContain(DSTACK_SECRET)
    expect(say('unknown-code', 'dstack', false)).not.toContain(DSTACK_SECRET)
    expect(say('failed', 'dstack')).not.toContain(DSTACK_SECRET)
    expect(say('verified', `attested:sha256:${'ab'.repeat(32)}`)).toEqual([])
  })

  test('rejected mock evidence is bad, and is called MOCK', () => {
    const context = { anchorSource: 'visitor', lies: 0, status: undefined } as const
    for (const verdict of ['mock', 'incomplete'] as const) {
      for (const lies of [0, 1]) {
        const refused = describeVerdict({ ...checkedReceipt, verdict, isMockRefused: true }, { ...context, lies })
        expect(refused).toMatchObject({ tone: 'bad', title: 'Not verified: MOCK evidence' })
        expect(refused.sentence).not.toContain('Nothing failed')
      }
    }
    const failed = {
      ...checkedReceipt,
      verdict: 'failed',
      isMockRefused: true,
      steps: [toStep('subject', 'fail')],
    } as const
    expect(describeVerdict(failed, { ...context, lies: 1 })).toMatchObject({ tone: 'bad', title: 'Not verified' })
  })

  test('a false claim comes before a failure only if the receipt itself is valid', () => {
    const context = { anchorSource: 'visitor', lies: 1, status: 'complete' } as const
    const failed = { ...checkedReceipt, verdict: 'failed' } as const
    const titleOf = (...ids: VerifierStep['id'][]) =>
      describeVerdict({ ...failed, steps: ids.map((id) => toStep(id, 'fail')) }, context).title
    expect(titleOf('subject')).toContain('something false')
    expect(titleOf('quote', 'subject')).toBe('Not verified')
  })
})
