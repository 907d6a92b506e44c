import type { Approval, Hex, TxMetadata } from '@countersign/protocol'
import type { Target } from '../startTarget.ts'
import { approve, createPayment, largeRule, smallRule, THRESHOLD_WEI, type Vaults } from './setUpVaults.ts'

/** The outcome of a signed request, used alongside error codes. */
export const SIGNED = 'signed'

type Signing = {
  digest: Hex
  txMetadata: TxMetadata
  wallet: Hex
  rule: number
  approvals?: readonly Approval[] | undefined
}

/** Requests a signature with this cookie. Returns `signed` or the error code. */
export async function callSign(
  { call, app, cookie }: Pick<Target, 'call' | 'app'> & { cookie: string },
  body: Signing | object,
  path = '/sign/digest',
): Promise<string> {
  const headers = [['Origin', app] as const, ['Content-Type', 'application/json'] as const, ['Cookie', cookie] as const]
  const answer = await call({ method: 'POST', path, headers, body: JSON.stringify(body) })
  return answer.status === 200 ? SIGNED : String(JSON.parse(answer.body).code)
}

/** Checks that honest payments are signed, since rejections would prove little otherwise. Returns the used approvals. */
export async function signHonestly(
  as: Parameters<typeof callSign>[0],
  { vault }: Vaults,
  count = 3,
): Promise<Approval[]> {
  const seen: Approval[] = []
  for (let each = 0; each < count; each++) {
    const small = createPayment(THRESHOLD_WEI)
    const large = createPayment(THRESHOLD_WEI + 1n)
    const approval = approve({ vault, digest: large.digest })
    const outcomes = [
      await callSign(as, { ...small, wallet: vault.address, rule: smallRule }),
      await callSign(as, { ...large, wallet: vault.address, rule: largeRule, approvals: [approval] }),
    ]
    if (outcomes.some((outcome) => outcome !== SIGNED)) throw new Error(`honest payments were rejected: ${outcomes}`)
    seen.push(approval)
  }
  return seen
}

/** A payment above the threshold, which needs an approval. */
export function createLarge(random: { below(below: number): number }) {
  return createPayment(THRESHOLD_WEI + 1n + BigInt(random.below(2 ** 30)) ** 3n)
}

export const toCaller = ({ call, alice, app }: Target) => ({ call, app, cookie: alice.cookie })
