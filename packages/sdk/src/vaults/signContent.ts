import type { Approval } from '@countersign/policy'
import type { Hex } from '@countersign/protocol'
import { createCall } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import { type OffChain, parseTypedData } from '../client/parseOffChain.ts'
import { offChainAnswer, type SignOffChainResult, verifyOffChain, withBudget } from '../client/verifyOffChain.ts'

/** Signs a message or typed data with a vault, by one of its rules. */
export async function signContent(
  client: Pick<Connection, 'config'>,
  { address: wallet, rule, digest, kind, content }: OffChain & { address: Hex; rule: number },
  approvals: readonly Approval[] = [],
): Promise<SignOffChainResult> {
  // Checks that the domain's chain is the client's or none.
  if (kind === 'typed-data') parseTypedData(content, client.config.chainId)
  const call = createCall(client.config)
  const given = approvals.length > 0 && { approvals }
  const body = { ...content, wallet, rule, ...given } as never
  const answer = await call(`POST /sign/${kind}`, offChainAnswer, { body, digest })
  const sent = { kind, digest, content, ...given } as OffChain
  return verifyOffChain({ wallet: { address: wallet }, sent: withBudget(sent, answer), answer })
}
