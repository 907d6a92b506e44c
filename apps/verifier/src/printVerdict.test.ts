import { toChecksumAddress } from '@countersign/protocol'
import { type StepStatus, stepTitles } from '@countersign/receipt'
import { describeVerdict, toPrintable, type VerifierStep } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { toProof } from '../../../packages/verify/test/issues.ts'
import { honest } from '../test/folder.ts'
import { createStepPrinter, printVerdict, printVerdictJson, wrapText } from './printVerdict.ts'
import type { CliOutcome } from './verify.ts'

function toOutcome(changes: Partial<CliOutcome> = {}): CliOutcome {
  return {
    verdict: 'verified',
    exitCode: 0,
    isMock: false,
    isKnownCode: true,
    isNotListed: false,
    timeBound: 'bounded',
    cid: honest.cid,
    steps: [toStep('digest', 'pass')],
    receipt: honest.receipt,
    view: honest.receipt,
    policy: undefined,
    logged: undefined,
    content: undefined,
    owner: undefined,
    blocks: {},
    problems: [],
    conclusion: 'accepted',
    isMockRefused: false,
    isEventMissing: false,
    bytes: honest.bytes,
    collateral: undefined,
    publications: undefined,
    anchor: undefined,
    proof: undefined,
    claims: [],
    ...changes,
  }
}

function toStep(id: VerifierStep['id'], status: StepStatus, detail = 'Detail.', code?: string): VerifierStep {
  const title = id === 'subject' ? 'Subject' : stepTitles[id]
  return { id, title, status, detail, ...(code === undefined ? {} : { code }) }
}

function print(changes?: Partial<CliOutcome>, isColored = false): string {
  const outcome = toOutcome(changes)
  return outcome.steps.map(createStepPrinter({ isColored })).join('') + printVerdict(outcome, { isColored })
}
const everyVerdict = ['verified', 'mock', 'unknown-code', 'late', 'unbounded', 'incomplete', 'failed'] as const

const anchor: CliOutcome['anchor'] = {
  given: {
    contract: `0x${'1c'.repeat(20)}`,
    id: `0x${'1d'.repeat(32)}`,
    size: 9,
    path: ['ee'.repeat(32)],
    block: honest.bytes,
  },
  log: undefined,
  isFinal: true,
  problems: [],
}
const log = {
  address: '',
  topics: [],
  data: '',
  blockNumber: 16,
  blockHash: '',
  transactionHash: `0x${'77'.repeat(32)}`,
}

describe('a checkpoint in place of an event', () => {
  test('is named as such', () => {
    expect(print({ verdict: 'late', timeBound: 'late', anchor })).toContain('the checkpoint came too late')
    const steps = [toStep('event', 'fail', 'Too few.', 'quorum_missing')]
    const text = print({ verdict: 'failed', steps, anchor })
    expect(text).toContain('No valid checkpoint on the public chain covers this signature.')
    expect(text).not.toContain('in the enclave’s settings')
  })

  test('asks for a gateway if its block is withheld', () => {
    const steps = [toStep('event', 'skip', 'Not checked: the anchor block is withheld.')]
    const found = { verdict: 'incomplete', steps, problems: ['the anchor block of 9 entries: withheld'] } as const
    const text = print({ ...found, anchor: { ...anchor, log } })
    expect(text).toContain('Add a gateway that has the anchor block with --ipfs URL.')
    expect(text).toContain('Tried: the anchor block of 9 entries: withheld.')
    expect(print({ ...found, anchor })).not.toContain('Add a gateway')
  })

  test('is in the JSON without its block', () => {
    const { contract, id, size } = anchor.given
    const { transactionHash: txHash, blockNumber } = log
    const printed = JSON.parse(printVerdictJson(toOutcome({ anchor: { ...anchor, log } })))
    expect(printed.anchor).toEqual({ contract, id, size, isFinal: true, txHash, blockNumber })
    expect(JSON.parse(printVerdictJson(toOutcome()))).not.toHaveProperty('anchor')
  })
})

describe('text output', () => {
  const lie = { member: 'chainId', text: 'The chain is 5.', verdict: 'false', detail: 'The receipt says 1.' } as const

  test.each(everyVerdict)('has the page’s title and sentence (%s)', (verdict) => {
    for (const claims of [[], [lie]]) {
      for (const isMockRefused of [false, true]) {
        const outcome = toOutcome({ verdict, claims, isMockRefused })
        const context = { anchorSource: 'visitor', lies: claims.length, status: undefined } as const
        const { title, sentence } = describeVerdict(outcome, context)
        const lines = print({ verdict, claims, isMockRefused }).split('\n')
        const [heading, ...rest] = lines.slice(lines.indexOf('─'.repeat(100)) + 1)
        expect(heading).toBe(title)
        expect(rest.join(' ')).toContain(sentence)
        expect(title.startsWith('Verified')).toBe(verdict === 'verified' && claims.length === 0 && !isMockRefused)
      }
    }
  })

  test('lists every false claim about a valid receipt, and prints nothing green', () => {
    const text = print({ verdict: 'verified', conclusion: 'contradicted', exitCode: 1, claims: [lie], steps: [] }, true)
    expect(text).not.toContain('\u001b[32;1m')
    expect(text).toContain('Not verified: the service says something false about this receipt')
    expect(text).toMatch(/It says +The chain is 5\. \(chainId\)\nFound +The receipt says 1\./)
  })

  test('prints MOCK in red, allowed or not', () => {
    for (const exitCode of [0, 2, 3] as const) {
      const text = print({ verdict: 'mock', isMock: true, exitCode, isMockRefused: exitCode === 3 }, true)
      expect(text).toContain('\u001b[31;1mMOCK\u001b[0m')
      expect(text).toContain('It proves nothing about hardware.')
    }
    expect(print({ verdict: 'mock', exitCode: 3 })).toContain('--allow-mock')
  })

  test('prints what was signed, or only what the receipt states', () => {
    const { from, to, signedAt, txHash } = honest.receipt.transaction
    const signed = [
      `Amount      1 ETH`,
      `From        ${toChecksumAddress(from)}`,
      `To          ${toChecksumAddress(to)}`,
      `Chain       Local chain (chain 31337)`,
      `Signed      ${signedAt}`,
      `Transaction ${txHash}`,
    ].join('\n')
    expect(print()).toContain(signed)
    expect(print()).toContain('\nWhat was signed: A payment of 1 ETH\n')
    for (const verdict of ['failed', 'incomplete'] as const) {
      const text = print({ verdict })
      expect(text).toContain(
        '\nStated in the receipt: A payment of 1 ETH\nThis is not proven, only stated in the receipt: ',
      )
    }
    expect(print({ verdict: 'failed', receipt: undefined })).not.toContain('signed:')
  })

  test('marks a step that passed on mock evidence', () => {
    const text = print({ steps: [toStep('quote', 'pass', 'MOCK evidence, correct in itself.')] })
    expect(text).toContain('✓ The quote verifies up to a known root key (MOCK)\n')
  })

  test('numbers steps under the page’s headings, with their details', () => {
    const steps = [toStep('digest', 'pass'), toStep('signature', 'fail'), toStep('event', 'skip')]
    expect(print({ verdict: 'failed', steps }).split('\n').slice(0, 8)).toEqual([
      'The signature',
      ' 1 ✓ The signed content hashes to its digest',
      '       Detail.',
      ' 2 ✗ The wallet made the signature',
      '       Detail.',
      'The public record',
      ' 3 – The chain points to this receipt',
      '       Detail.',
    ])
  })

  test('explains the first of several failures, with its code', () => {
    const steps = [toStep('quote', 'fail', 'Why.', 'root_not_trusted'), toStep('release', 'fail')]
    const text = print({ verdict: 'failed', steps })
    expect(text).toContain('Step 1 failed (and 1 more')
    expect(text).toContain('Why. [root_not_trusted]')
    expect(text.replace(/\s+/g, ' ')).toContain('The evidence is forged')
  })

  test('prints each missing anchor with its option and the value in the evidence', () => {
    const steps = [
      ...[toStep('measurement', 'skip'), toStep('config', 'pass')],
      ...[toStep('coordinator-measurement', 'skip'), toStep('coordinator-policy', 'skip')],
    ]
    const text = print({ verdict: 'unknown-code', exitCode: 2, isKnownCode: false, steps })
    const { signer, coordinator } = honest.receipt
    const { mrTd, rtmr0, rtmr1, rtmr2 } = signer.measurement
    // On one line, as the option accepts it.
    expect(text).toContain(`--measurement ${mrTd}:${rtmr0}:${rtmr1}:${rtmr2}:0:0:0:0\n`)
    const { measurement } = coordinator.selfAttestation
    expect(text).toContain(`--coordinator-measurement ${measurement}:${'00'.repeat(32)}\n`)
    expect(text).toContain('--coordinator-tcb Milan:fmc=0,bl=4,tee=0,snp=24,ucode=219\n')
    expect(text).not.toContain('--config-hash')
  })

  test.each([
    ['late', 'the event came too late', '--maximum-event-delay'],
    ['unbounded', 'the chain was not asked', '--rpc'],
  ] as const)('explains the signing time for %s', (timeBound, heading, option) => {
    const steps = [
      toStep('event', timeBound === 'late' ? 'pass' : 'skip'),
      toStep('time-bound', 'skip', 'What was found.'),
    ]
    const known = print({ verdict: timeBound, timeBound, exitCode: 6, steps })
    expect(known).toContain(`Genuine hardware, known code, unknown time: ${heading}\n`)
    const unknown = print({ verdict: 'unknown-code', isKnownCode: false, timeBound, exitCode: 2, steps })
    const mock = print({ verdict: 'mock', isMock: true, timeBound, exitCode: 7, steps })
    for (const text of [known, unknown, mock]) {
      expect(text).toContain('Signing time: What was found.')
      expect(text).toContain(option)
      expect(text).not.toMatch(/verified/i)
    }
  })

  test.each([
    ['pending_onchain', 'Try again in a few minutes'],
    ['onchain_failed', 'it will not be on the chain'],
  ] as const)('says for a proof with status %s: %s', (status, advice) => {
    const proof = toProof(honest, { status })
    const steps = [toStep('time-bound', 'skip')]
    const text = print({ verdict: 'unbounded', timeBound: 'unbounded', isEventMissing: true, proof, steps })
    expect(text).toContain(advice)
  })

  test('names missing evidence, what was tried, and what helps', () => {
    const steps = [toStep('cid', 'skip'), toStep('collateral', 'skip', 'Not given.'), toStep('quote', 'skip')]
    const text = print({ verdict: 'incomplete', steps, problems: ['gateway.example returned 404'] })
    expect(text).toContain('Step 2 was skipped')
    expect(text).toContain('Tried: gateway.example returned 404.')
    expect(text).toContain(honest.receipt.signer.collateral)
  })

  test('does not ask for what only the owner of an off-chain signature has', () => {
    const unopened = (['opening', 'digest', 'signature', 'vault-rule', 'vault-approvals'] as const).map((id) =>
      toStep(id, 'skip'),
    )
    const text = print({ verdict: 'incomplete', steps: [...unopened, toStep('collateral', 'skip', 'Not given.')] })
    expect(text).toContain('Step 6 was skipped: The collateral is the one that the receipt names. Not given.')
  })

  test('removes terminal control characters from the evidence', () => {
    const text = print({ steps: [toStep('entropy', 'pass', 'Sample of \u001b[1A\r\n✓ VERIFIED\u009b\u202e.')] }, true)
    expect(text).toContain('Sample of \u{fffd}[1A\u{fffd}\u{fffd}✓ VERIFIED\u{fffd}\u{fffd}.')
  })
})

describe('JSON output', () => {
  test('is one object', () => {
    const outcome = toOutcome({ verdict: 'mock', conclusion: 'mock', isMock: true, exitCode: 3 })
    const { chainId, txHash, from, to, nonce, value, signedAt } = honest.receipt.transaction
    expect(JSON.parse(printVerdictJson(outcome))).toEqual({
      verdict: 'mock',
      conclusion: 'mock',
      exitCode: 3,
      isMock: true,
      isKnownCode: true,
      timeBound: 'bounded',
      cid: honest.cid,
      steps: outcome.steps,
      transaction: { chainId, txHash, from, to, nonce, value, signedAt },
      falseClaims: [],
      problems: [],
    })
  })

  test('includes the service’s false claims', () => {
    const lie = { member: 'chainId', text: 'The chain is 5.', verdict: 'false', detail: 'The receipt says 1.' } as const
    const claims = [lie, { ...lie, member: 'txHash', verdict: 'holds' }] as const
    const { verdict: _, ...printed } = lie
    expect(JSON.parse(printVerdictJson(toOutcome({ claims }))).falseClaims).toEqual([printed])
  })

  test('escapes terminal control characters and keeps the text', () => {
    const detail = 'a\u001b\u007f\u009b\u202e\u{e0041}\u2028b'
    const json = printVerdictJson(toOutcome({ steps: [toStep('entropy', 'pass', detail)] }))
    expect(toPrintable(json.replaceAll('\n', ''))).toBe(json.replaceAll('\n', ''))
    expect(JSON.parse(json).steps[0].detail).toBe(detail)
  })
})

describe('wrapText', () => {
  test('breaks at spaces, at most 100 columns', () => {
    const lines = wrapText('word '.repeat(60), { indent: 7 }).split('\n')
    expect(lines).toHaveLength(4)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(100)
    for (const line of lines) expect(line).toMatch(/^ {7}word/)
  })

  test('keeps a long hash on one line', () => {
    const hash = 'ab'.repeat(48)
    expect(wrapText(`MRTD ${hash} is known.`, { indent: 7 })).toBe(`       MRTD\n       ${hash}\n       is known.`)
  })
})
