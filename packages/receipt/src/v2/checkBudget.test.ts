import { type Opening, toCanonicalJson, type VaultBudget, withholdHalf } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { issueGolden, parseGolden } from '../../spec/createSpecFiles.ts'
import { createBudgetTamperings, createRevocationTamperings } from '../../spec/tamperedBudget.ts'
import { tamperV2 } from '../../spec/tamperedV2.ts'
import { check, failures, statusOf, stepOf } from '../../test/checkReceipt.ts'
import { agentKeys, agentRule, approved, approveWith, goldenVaults, passkeyRule, spending } from '../../test/vaults.ts'
import { vaultSteps } from '../check/steps.ts'
import type { SimulatedAttestationOptions } from '../simulator/index.ts'

const issueNamed = (name: keyof typeof goldenVaults, change: Partial<SimulatedAttestationOptions> = {}) => {
  const { signing, ...options } = goldenVaults[name]
  return issueGolden(change.signing ?? signing, { ...options, ...change })
}
const statuses = (result: Awaited<ReturnType<typeof check>>) =>
  [...vaultSteps, 'vault-budget' as const].map((id) => statusOf(result, id))

const transfer = await issueNamed('transfer')
const authorization = await issueNamed('eip3009')
const revocation = await issueNamed('revocation')
const budgetOf = (name: 'transfer' | 'eip3009') => goldenVaults[name].vault?.budget as VaultBudget

/** Signs with this count, as a broken enclave would. */
const miscount = (name: 'transfer' | 'eip3009', change: Partial<VaultBudget>) => {
  const { vault } = goldenVaults[name]
  if (vault === undefined) throw new Error('no vault')
  return issueNamed(name, { vault: { ...vault, budget: { ...budgetOf(name), ...change } } })
}

describe('a payment from a budget', () => {
  test('by an agent without a session passes every step of a vault', async () => {
    const result = await check(transfer)
    expect([result.verdict, ...statuses(result)]).toEqual(['mock', 'pass', 'pass', 'pass', 'pass'])
    expect(transfer.receipt.signer.statement.session).toBe('none')
  })

  test('as typed data is checked if the opening shows the content', async () => {
    const hidden = await check(authorization)
    expect([hidden.verdict, ...statuses(hidden)]).toEqual(['mock', 'pass', 'skip', 'skip', 'skip'])
    const opening = authorization.opening as Opening
    const shown = await check(authorization, { opening: toCanonicalJson(withholdHalf(opening, 'signature')) })
    expect([shown.verdict, ...statuses(shown)]).toEqual(['mock', 'pass', 'pass', 'pass', 'pass'])
    const text = Buffer.from(authorization.bytes).toString()
    expect(text).not.toContain('budget')
  })

  test.each([
    ['a transaction', transfer],
    ['typed data', authorization],
    ['a revocation', revocation],
  ])('%s without the batch misses evidence: nothing has failed', async (_, files) => {
    const { batch: _batch, ...blocks } = files.blocks
    const result = await check(files, { blocks })
    expect([result.verdict, failures(result), statusOf(result, 'vault-rule')]).toEqual(['incomplete', [], 'skip'])
  })

  test('that is repeated within 10 minutes names the first count', async () => {
    const time = (budgetOf('transfer').time ?? 0) - 600
    expect(failures(await check(await miscount('transfer', { time, isRepeated: true })))).toEqual([])
    expect(failures(await check(await miscount('transfer', { time })))).toEqual(['vault-budget'])
  })

  test.each(createBudgetTamperings(parseGolden(transfer)).map((tampering) => [tampering.name, tampering] as const))(
    '%s fails',
    async (_, tampering) => {
      const golden = parseGolden(transfer)
      const files = tamperV2(golden, tampering)
      const blocks = { ...transfer.blocks, ...files.blocks }
      const result = await check({ ...transfer, ...files, blocks })
      const [failed] = failures(result)
      expect(failed).toBe(tampering.step)
      if (tampering.code !== undefined) expect(stepOf(result, tampering.step)?.code).toBe(tampering.code)
    },
  )

  test.each<[string, Partial<VaultBudget>, string]>([
    [
      'amounts that do not add up',
      { items: budgetOf('eip3009').items.map((item) => ({ ...item, after: '0' })) },
      'budget_amount',
    ],
    ['a budget less', { items: budgetOf('eip3009').items.slice(1) }, 'budget_items'],
    ['a time that is too old', { time: (budgetOf('eip3009').time ?? 0) - 60 }, 'budget_time'],
    ['sequence number 0', { sequence: 0 }, 'budget_sequence'],
  ])('as typed data with %s fails only this step', async (_, change, code) => {
    const files = await miscount('eip3009', change)
    const result = await check(files, { opening: toCanonicalJson(files.opening) })
    expect(failures(result)).toEqual(['vault-budget'])
    expect(stepOf(result, 'vault-budget')?.code).toBe(code)
  })

  test('counted in another log fails', async () => {
    const policy = { ...spending, log: spending.log && { ...spending.log, origin: 'log.example/enclave-b' } }
    const vault = {
      policy,
      approve: approveWith(policy, { by: [1] }),
      rule: agentRule,
      isSessionless: true,
      budget: budgetOf('transfer'),
    }
    const result = await check(await issueNamed('transfer', { vault }))
    expect(failures(result)).toEqual(['vault-budget'])
    expect(stepOf(result, 'vault-budget')?.code).toBe('budget_log')
  })
})

describe('a count', () => {
  const budget = budgetOf('transfer')

  test('under a rule that counts nothing fails', async () => {
    const vault = { policy: approved, approve: approveWith(approved), budget }
    const result = await check(await issueGolden({ kind: 'transaction' }, { vault }))
    expect(failures(result)).toEqual(['vault-budget'])
    expect(stepOf(result, 'vault-budget')?.code).toBe('budget_unexpected')
  })

  test('of a wallet without rules fails', async () => {
    const { bytes, ...files } = await issueGolden({ kind: 'transaction' })
    const { subject, ...receipt } = JSON.parse(Buffer.from(bytes).toString())
    const changed = toCanonicalJson({ ...receipt, subject: { ...subject, budget } })
    expect(failures(await check({ ...files, bytes: changed }))[0]).toBe('statement')
  })
})

describe('a signature without a session', () => {
  const vault = { policy: spending, isSessionless: true }
  const otherRule = spending.rules.findIndex(({ kind }) => kind === 'transaction')

  test.each([
    [
      'under a rule that requires one',
      { approve: approveWith(spending), rule: passkeyRule, budget: budgetOf('transfer') },
    ],
    ['of a transaction that is not counted', { approve: approveWith(spending), rule: otherRule }],
  ])('%s fails', async (_, more) => {
    expect(failures(await check(await issueNamed('transfer', { vault: { ...vault, ...more } })))[0]).toBe('vault-rule')
  })

  test('of typed data fails without an opening too', async () => {
    const more = { approve: approveWith(approved), policy: approved, isSessionless: true }
    const files = await issueGolden({ kind: 'typed-data' }, { vault: more })
    expect(failures(await check(files))).toEqual(['vault-rule'])
  })

  test('of an address fails', async () => {
    const files = await issueGolden({ kind: 'address' }, { vault: { policy: approved, isSessionless: true } })
    expect(failures(await check(files))).toEqual(['statement'])
  })
})

describe('a revocation', () => {
  test('by a passkey passes without a rule', async () => {
    const result = await check(revocation)
    expect([result.verdict, ...statuses(result)]).toEqual(['mock', 'pass', 'pass', 'pass', undefined])
    expect(revocation.receipt.signer.statement.rule).toBeNull()
  })

  test('in a session needs no approval', async () => {
    const vault = { policy: spending }
    const result = await check(await issueNamed('revocation', { vault }))
    expect([result.verdict, ...failures(result)]).toEqual(['mock'])
  })

  test('of a passkey’s key fails', async () => {
    const key = '11'.repeat(32)
    expect(agentKeys).not.toContain(key)
    const files = await issueNamed('revocation', { signing: { kind: 'revocation', key } })
    expect(failures(await check(files))).toEqual(['vault-rule'])
  })

  test.each(
    createRevocationTamperings(parseGolden(revocation)).map((tampering) => [tampering.name, tampering] as const),
  )('with %s fails', async (_, tampering) => {
    const files = tamperV2(parseGolden(revocation), tampering)
    const result = await check({ ...revocation, ...files, blocks: { ...revocation.blocks, ...files.blocks } })
    expect(failures(result)[0]).toBe(tampering.step)
  })
})
