import { toChecksumAddress } from '@countersign/protocol'
import { DSTACK_SECRET, stepTitles } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { issueGolden, issueGoldenV2, toManifest } from '../test/issues.ts'
import { apiBaseUrl, createFakeNetwork, rpcUrl } from '../test/network.ts'
import { codeWords, describeStep, isSimulated, type StepContext } from './describeStep.ts'
import { createFetchBytes } from './fetchBytes.ts'
import { groupSteps, type VerifierStep } from './steps.ts'
import { verify } from './verify.ts'

type StepId = VerifierStep['id']

const ids = [...Object.keys(stepTitles), 'subject'] as StepId[]
const issue = await issueGolden()
const addressIssue = await issueGoldenV2({ signing: { kind: 'address' } })
const mock = await verify(
  { fetchBytes: createFetchBytes({ fetch: createFakeNetwork(issue).fetch, timeoutMs: 5_000 }), now: () => new Date() },
  { subject: { kind: 'cid', cid: issue.cid }, manifests: [toManifest(issue)], api: apiBaseUrl, rpc: rpcUrl },
)
const hardware: StepContext = { isMock: false, isEventMissing: false, view: issue.receipt, isOperatorNode: false }
const withTcb = (tcbStatus: 'UpToDate' | 'OutOfDate') => ({
  ...issue.receipt,
  signer: { ...issue.receipt.signer, tcbStatus },
})
const toStep = (id: StepId, status: VerifierStep['status']): VerifierStep => ({ id, status, title: '', detail: '' })

describe('steps', () => {
  test('have a sentence for each outcome', () => {
    for (const id of ids) {
      for (const status of ['pass', 'fail', 'skip'] as const) {
        expect(describeStep(toStep(id, status), hardware)).toMatch(/\.$/)
      }
    }
  })

  test('of a receipt in a checkpoint name no event', () => {
    const given = { contract: '', id: '', size: 1, path: [], block: undefined }
    const anchor = { given, log: undefined, isFinal: true, problems: [] }
    const say = (status: VerifierStep['status'], context: Partial<StepContext> = {}) =>
      describeStep(toStep('event', status), { ...hardware, anchor, ...context })
    expect(say('pass')).toMatch(/^The public chain has a checkpoint/)
    expect(say('pass', { isOperatorNode: true })).toMatch(/^According to the operator’s node, the public chain has/)
    expect(say('fail')).toMatch(/^No valid checkpoint/)
    expect(say('skip')).toMatch(/could not be checked/)
    expect(say('skip', { isEventMissing: true })).toMatch(/has no final checkpoint/)
  })

  test('claim only what the step checked, not who signed or whose rules apply', () => {
    const say = (id: StepId, status: VerifierStep['status'] = 'pass') => describeStep(toStep(id, status), hardware)
    for (const id of ['opening', 'digest', 'statement', 'inclusion'] as const) {
      expect(say(id)).not.toMatch(/was signed|owner|wrote down|vouched/)
    }
    expect(say('opening', 'skip')).toMatch(/^The receipt says/)
    expect(say('vault-policy')).not.toContain('address')
  })

  test('says of an address whose it is with an opening, and that the owner is sealed without', () => {
    const { address } = addressIssue.receipt.signer.statement
    const owner = { issuer: 'https://issuer.example', subject: 'a-1', email: 'alice@example.com' }
    const view = {
      ...issue.receipt,
      kind: 'address',
      transaction: { ...issue.receipt.transaction, from: address },
    } as const
    const say = (status: VerifierStep['status'], context: Partial<StepContext> = {}) =>
      describeStep(toStep('opening', status), { ...hardware, view, ...context })
    expect(say('skip')).toMatch(/^Owner: sealed\./)
    const belongs = `${toChecksumAddress(address)} belongs to alice@example.com at https://issuer.example.`
    expect(say('pass', { owner })).toBe(`The opening matches the owner in this receipt: ${belongs}`)
    expect(say('fail', { owner })).not.toContain('alice')
    expect(describeStep(toStep('opening', 'pass'), { ...hardware, owner })).not.toContain('alice')
  })

  test('in a real mock verification, no step about enclave, sample or coordinator is shown as plainly passed', () => {
    const context = { ...mock, isOperatorNode: false }
    const simulated = mock.steps.filter((step) => isSimulated(step, context)).map(({ id }) => id)
    const expected = ['The key enclave', 'The random sample', 'The coordinator']
      .flatMap((title) => groupSteps(mock.steps).find((group) => group.title === title)?.steps ?? [])
      .map(({ id }) => id)
      // No anchors list machines, so this step has not passed.
      .filter((id) => id !== 'platform' && id !== 'coordinator-revocation')
    expect(simulated.toSorted()).toEqual(expected.toSorted())
    expect(simulated).toHaveLength(16)
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

  test('says that a processor is up to date only if Intel says so', () => {
    const say = (tcbStatus: 'UpToDate' | 'OutOfDate') =>
      describeStep(toStep('quote-policy', 'pass'), { ...hardware, view: withTcb(tcbStatus) })
    expect(say('UpToDate')).toContain('was up to date')
    expect(say('OutOfDate')).toMatch(/was not up to date.*OutOfDate/)
  })

  test('warns that known code with a dstack secret shares it with other code that the app’s owner admits', () => {
    const say = (rootSecret: string, status: VerifierStep['status'] = 'pass') => {
      const config = { ...issue.receipt.signer.config, rootSecret }
      const view = { ...issue.receipt, signer: { ...issue.receipt.signer, config } }
      return describeStep(toStep('measurement', status), { ...hardware, view })
    }
    expect(say('dstack')).toContain(DSTACK_SECRET)
    expect(say('dstack', 'skip')).not.toContain(DSTACK_SECRET)
    expect(say(`attested:sha256:${'ab'.repeat(32)}`)).not.toContain('dstack')
  })

  test('no step of simulated evidence mentions genuine hardware, for any outcome', () => {
    for (const id of ids) {
      for (const code of [undefined, ...Object.keys(codeWords)]) {
        for (const status of ['pass', 'fail', 'skip'] as const) {
          const step = { ...toStep(id, status), ...(code !== undefined && { code }) }
          expect(describeStep(step, { ...hardware, isMock: true })).not.toMatch(/genuine/i)
        }
      }
    }
    for (const title of Object.values(stepTitles)) expect(title).not.toMatch(/genuine|hardware|Intel|AMD/)
  })

  test('attributes an event through the operator’s node to the operator', () => {
    const word = 'According to the operator’s node, the public chain'
    for (const status of ['pass', 'fail'] as const) {
      expect(describeStep(toStep('event', status), { ...hardware, isOperatorNode: true })).toContain(word)
      expect(describeStep(toStep('event', status), hardware)).not.toContain('operator')
    }
    const missing = { ...hardware, isEventMissing: true, isOperatorNode: true }
    expect(describeStep(toStep('event', 'skip'), missing)).toContain(`${word} does not point`)
    expect(describeStep(toStep('event', 'skip'), { ...hardware, isOperatorNode: true })).toContain('not asked')
  })
})

test('every step is in exactly one of six groups, which are listed before their first step', () => {
  const groups = groupSteps(ids.map((id) => toStep(id, 'pass')))
  expect(groups.flatMap((group) => group.steps.map(({ id }) => id)).toSorted()).toEqual(ids.toSorted())
  expect(groupSteps([]).map((group) => group.steps)).toEqual([[], [], [], [], [], []])
})
