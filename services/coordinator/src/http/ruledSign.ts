import type { EntropySetting, Hex, WebhookData } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { WarnOf } from '../publish/webhook/warner.ts'
import type { SignJob, SignResult } from '../sign/job.ts'
import { createSignQuota } from '../sign/quota.ts'
import { createVaultRules } from '../sign/vaultRules.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock } from '../system.ts'
import type { RequestContext } from './context.ts'

export type RuledSign = ReturnType<typeof createRuledSign>

type RuledSignDeps = {
  store: Pick<Store, 'findSignedAt'>
  clock: Clock
  sign(request: SignJob): Promise<SignResult>
  /** The entropy sources that this service signs with. */
  entropySources: readonly EntropySetting[]
  /** New signatures per user in 24 hours. Undefined: no limit. */
  signQuotaPerDay: number | undefined
  /** Sends a webhook when a vault refuses to sign. */
  warnOf: WarnOf
}

/** The last step of every route that signs: the rules of the vault, and the quota of its user. */
export function createRuledSign(deps: RuledSignDeps) {
  const quota = createSignQuota({ ...deps, perDay: deps.signQuotaPerDay })
  const vaultRules = createVaultRules(deps)

  return {
    vaultRules,
    /** `repeatDigest` identifies repeated requests for the same signature. */
    async sign(
      c: RequestContext,
      request: SignJob,
      { userId, repeatDigest }: { userId: string; repeatDigest: Hex | undefined },
    ): Promise<SignResult> {
      const { walletId, address, vault, content } = request
      const onRefused = (seconds: number) => c.header('Retry-After', String(seconds))
      try {
        vaultRules.assertAllowed(request)
        return await quota.run({ userId, walletId, digest: repeatDigest, onRefused }, () => deps.sign(request))
      } catch (error) {
        if (vault !== undefined && isRefusal(error)) {
          const { kind } = content
          const { hash: policyHash } = vault.policy
          await deps.warnOf('vault.refused', { walletAddress: address, policyHash, kind, code: error.code })
        }
        throw error
      }
    },
  }
}

type Refusal = CoordinatorError & { code: WebhookData['vault.refused']['code'] }

/** Whether the vault's rules caused the error. */
function isRefusal(error: unknown): error is Refusal {
  const codes: readonly string[] = [
    'policy_refused',
    'approvals_missing',
    'approval_invalid',
    'budget_exceeded',
  ] satisfies Refusal['code'][]
  return error instanceof CoordinatorError && codes.includes(error.code)
}
