import { createAgentKey } from '@countersign/sdk/agent'
import { ServiceClient } from '@countersign/sdk/client'
import { createVault, toPolicyFile } from '@countersign/sdk/vaults/client'
import type { Hex } from 'viem'
import { signIn } from './signIn.ts'
import { useSession } from './useSession.ts'

export type BudgetVaultParameters = {
  apiBaseUrl: string
  rpcUrl: string
  /** The witnesses that must cosign the log, and how many of them. */
  log: { witnesses: readonly string[]; quorum: number }
  token: Hex
  /** Per UTC day, in the token's smallest unit. */
  limit: string
  payee: Hex
}

/** Signs in as Alice, and creates a vault from which an agent pays one payee, within a budget. */
export async function createBudgetVault(parameters: BudgetVaultParameters) {
  const { apiBaseUrl, rpcUrl, log, token, limit, payee } = parameters
  const endSession = useSession(apiBaseUrl, await signIn(apiBaseUrl, 'alice'))
  try {
    const client = new ServiceClient({ apiBaseUrl, chainId: 31337, rpcUrl })
    const { key, publicKey } = await createAgentKey()
    const vault = await createVault(client, {
      version: 1,
      log: { ...log, origin: await findOrigin(apiBaseUrl) },
      // The web app's template also has passkeys, which approve everything else.
      approvers: [{ type: 'key', publicKey }],
      budgets: [{ chainId: 31337, token, limit, periodS: 86_400 }],
      rules: [
        {
          kind: 'spend',
          chainIds: [31337],
          payees: [payee],
          forms: ['eip3009'],
          approvals: 1,
          approvers: [0],
          session: false,
        },
      ],
    })
    const policy = new TextDecoder().decode(toPolicyFile(vault).bytes)
    return { key, vault: { address: vault.address, policy } }
  } finally {
    endSession()
  }
}

/** The log that is open. The others are spares without entries. */
async function findOrigin(apiBaseUrl: string): Promise<string> {
  const answer = await fetch(`${apiBaseUrl}/log`)
  const { logs } = (await answer.json()) as { logs: { origin: string; size: number }[] }
  const [newest] = logs.sort((left, right) => right.size - left.size)
  if (newest === undefined) throw new Error('the service has no log: start it with --log')
  return newest.origin
}
