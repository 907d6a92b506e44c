import { readFileSync } from 'node:fs'
import { fromHex, verifyEd25519 } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createLimitVectors, parseOrReject, toLimitVectorFile } from '../vectors/createLimitVectors.ts'
import vectors from '../vectors/policy-v1.vectors.json' with { type: 'json' }
import { checkApprovals, type Policy, verifyEs256 } from './index.ts'

const file = readFileSync(new URL('../vectors/limits-v1.vectors.json', import.meta.url), 'utf8')
const { policies, approvals } = JSON.parse(file) as ReturnType<typeof createLimitVectors>

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toLimitVectorFile(createLimitVectors()))
})

test('policies at the limits are accepted or rejected as the file states', () => {
  for (const { name, code, json } of policies) expect([name, parseOrReject(json)]).toEqual([name, code])
})

test('approvals at the limits are valid or invalid as the file states', () => {
  const policy = vectors.policies[1]?.policy as unknown as Policy
  for (const { name, digest, reason, ...vector } of approvals) {
    const given = { ...vector, policy, digest: fromHex(digest.slice(2)) }
    const verdict = checkApprovals({ verifyEs256, verifyEd25519 }, given)
    expect([name, verdict]).toEqual([name, reason === null ? { valid: true } : { valid: false, reason, index: 0 }])
  }
})

// Independent of the tested code: browsers use the URL parser to recognize a domain.
test('an accepted origin is in the browser’s form, and an accepted rpId is not an IP address', () => {
  for (const { name, code, json } of policies) {
    if (code !== null || !name.startsWith('rpId')) continue
    for (const approver of (JSON.parse(json) as Policy).approvers) {
      if (approver.type !== 'passkey') continue
      const { rpId, origins } = approver
      expect(new URL(`https://${rpId}`).hostname).toBe(rpId)
      for (const origin of origins) expect(new URL(origin).origin).toBe(origin)
    }
  }
})
