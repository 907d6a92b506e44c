import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fromHex, type PasskeyApproval, verifyEd25519 } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createNaiveBudgets } from '../fuzz/naiveBudgets.ts'
import { evaluateNaively } from '../fuzz/naivePolicy.ts'
import { createVectors, toVectorFile } from '../vectors/createVectors.ts'
import { type Approver, checkApprovals, type Policy, parsePolicy, verifyEs256 } from './index.ts'

const file = readFileSync(new URL('../vectors/policy-v1.vectors.json', import.meta.url), 'utf8')
const vectors = JSON.parse(file) as ReturnType<typeof createVectors>
const policyAt = (index: number) => vectors.policies[index] as (typeof vectors.policies)[number]

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toVectorFile(createVectors()))
})

test('rejects policies, each with its code', () => {
  for (const { json, code } of vectors.refused) {
    expect(() => parsePolicy(new TextEncoder().encode(json))).toThrow(expect.objectContaining({ code }))
  }
})

test('approvals are valid and complete', () => {
  for (const { policy, digest, hash, ...vector } of vectors.approvals) {
    const parameters = { ...vector, policy: policyAt(policy).policy as Policy, digest: fromHex(digest.slice(2)) }
    expect(checkApprovals({ verifyEs256, verifyEd25519 }, parameters)).toEqual({ valid: true })
    const fewer = { ...parameters, approvals: vector.approvals.slice(1) }
    expect(checkApprovals({ verifyEs256, verifyEd25519 }, fewer)).toMatchObject({
      valid: false,
      reason: 'approvals_missing',
    })
  }
})

test('rejects each approval for exactly one reason', () => {
  for (const { policy, digest, reason, ...vector } of vectors.refusedApprovals) {
    const parameters = { ...vector, policy: policyAt(policy).policy as Policy, digest: fromHex(digest.slice(2)) }
    expect(checkApprovals({ verifyEs256, verifyEd25519 }, parameters)).toEqual({ valid: false, reason, index: 0 })
  }
  expect(vectors.refusedApprovals).toHaveLength(11)
})

// From here on, node:crypto and the naive evaluator check the file, not the code that wrote it.

const unhex = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')
const sha256 = (...parts: (Buffer | string)[]) =>
  createHash('sha256')
    .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    .digest()

/** The part of RFC 8785 for ASCII names and integers. Every list must be in order. */
function sortedJson(value: unknown, isList = true): string {
  if (Array.isArray(value)) {
    const items = value.map((item) => sortedJson(item, isList))
    const sorted = [...new Set(items)].sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)))
    if (isList) expect(items).toEqual(sorted)
    return `[${items.join(',')}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedJson(member, isList)}`).join(',')}}`
}

test('a policy is canonical JSON, its hash SHA-256, and its CID has the same digest', () => {
  for (const { policy, json, hash, cid } of vectors.policies) {
    expect(json).toBe(sortedJson(policy))
    expect(hash).toBe(sha256(json).toString('hex'))
    // base32 by arithmetic: 36 bytes are 288 bits, in 58 digits of five.
    let number = 0n
    for (const digit of cid.slice(1)) number = number * 32n + BigInt('abcdefghijklmnopqrstuvwxyz234567'.indexOf(digit))
    expect(cid).toMatch(/^b[a-z2-7]{58}$/)
    expect((number >> 2n).toString(16)).toBe(`1551220${hash}`)
  }
})

test('verdicts, checked with the naive evaluator', () => {
  for (const { policy, request, verdict } of vectors.verdicts) {
    expect(evaluateNaively(policyAt(policy).json, request)).toEqual(
      verdict.allowed ? { rule: verdict.rule, approvals: verdict.approvals } : undefined,
    )
  }
  expect(vectors.verdicts.filter(({ verdict }) => verdict.allowed)).toHaveLength(6)
})

test('payments and the amounts to count, checked with the naive evaluator', () => {
  for (const { name, policy, rule, request, vaultAddress, nowMs, verdict } of vectors.spending) {
    const found = evaluateNaively(policyAt(policy).json, request, rule, { vaultAddress, nowMs })
    const spends = found?.spends?.map((spend: object) => ({ ...spend, amount: String(Object(spend).amount) }))
    const expected = verdict as { allowed: boolean; spends?: unknown; approvals?: number }
    expect([name, found !== undefined, spends]).toEqual([name, expected.allowed, expected.spends])
    expect(found?.approvals).toBe(expected.approvals)
  }
  expect(vectors.spending.filter(({ verdict }) => verdict.allowed)).toHaveLength(8)
})

test('counted payments, checked with the model that adds them up', () => {
  const toAsset = ({ chainId, token }: { chainId: number; token: string | null }) => `${chainId} ${token}`
  const budgets = policyAt(3).policy.budgets ?? []
  const model = createNaiveBudgets(
    budgets.map(({ limit, periodS, ...asset }) => ({ asset: toAsset(asset), limit: BigInt(limit), periodS })),
  )
  for (const { name, timeS, spends, verdict } of vectors.counting) {
    const paid = spends as { chainId: number; token: string | null; amount: string }[]
    const answer = model.pay(
      paid.map(({ amount, ...asset }) => ({ asset: toAsset(asset), amount: BigInt(amount) })),
      timeS,
    )
    const expected = answer.signed
      ? {
          allowed: true,
          changes: answer.changes.map(({ budget, startS, before, after }) => {
            const periodS = budgets[budget]?.periodS ?? 0
            const window = periodS === 0 ? 0 : startS / periodS
            return { budget, window, before: String(before), after: String(after) }
          }),
        }
      : { allowed: false, budget: answer.budget, left: String(answer.left) }
    expect([name, verdict]).toEqual([name, expected])
  }
})

test('approvals: signed bytes, authenticator data and signature, checked with node:crypto', () => {
  for (const { policy, vaultAddress, rule, kind, digest, approvals, hash } of vectors.approvals) {
    const kinds = ['transaction', 'message', 'typed-data']
    const { hash: policyHash, policy: given } = policyAt(policy)
    expect(hash).toBe(sha256(sortedJson(approvals, false)).toString('hex'))
    for (const approval of approvals) {
      const { approver: index, signature, expiresMs } = approval
      const approver = given.approvers[index] as Approver
      const expires = Buffer.alloc(8)
      expires.writeBigUInt64BE(BigInt(expiresMs))
      const parts = [
        unhex(vaultAddress),
        unhex(policyHash),
        Buffer.from([rule, 1 + kinds.indexOf(kind)]),
        unhex(digest),
        expires,
      ]
      if (approver.type === 'key') {
        // SubjectPublicKeyInfo of Ed25519: RFC 8410.
        const key = createPublicKey({
          key: unhex(`302a300506032b6570032100${approver.publicKey}`),
          format: 'der',
          type: 'spki',
        })
        const signed = Buffer.concat([Buffer.from('countersign/agent-approval/v1\0'), ...parts])
        expect(verify(null, signed, key, unhex(signature))).toBe(true)
        continue
      }
      const { authenticatorData, clientDataJSON } = approval as PasskeyApproval
      const clientData = JSON.parse(unhex(clientDataJSON).toString())
      const { publicKey, rpId, origins } = approver
      expect(clientData.challenge).toBe(sha256('countersign/approval/v1\0', ...parts).toString('base64url'))
      expect(origins).toContain(clientData.origin)
      expect(unhex(authenticatorData).subarray(0, 32)).toEqual(sha256(rpId))
      // SubjectPublicKeyInfo of P-256: RFC 5480.
      const spki = `3059301306072a8648ce3d020106082a8648ce3d030107034200${publicKey}`
      const key = createPublicKey({ key: unhex(spki), format: 'der', type: 'spki' })
      const signed = Buffer.concat([unhex(authenticatorData), sha256(unhex(clientDataJSON))])
      expect(verify('sha256', signed, key, unhex(signature))).toBe(true)
    }
  }
})
