import { isSatisfied } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import type { Config } from '../../config.ts'
import type { WitnessSite } from '../../log/witnessClient.ts'
import { createWitnessClient } from '../../log/witnessClient.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'
import type { EnclaveView } from './enclave.ts'
import { explain } from './reasons.ts'

/** Sends each witness an invalid request, which it must reject without cosigning. */
export function createLogChecks(context: Context, { terms }: EnclaveView): Check[] {
  const { witnesses } = context.subject.coordinator as Config

  async function checkWitness(site: WitnessSite): Promise<Finding> {
    const client = createWitnessClient(site, { timeoutMs: context.timeoutMs })
    context.onEnd(() => client.stop())
    const empty = { origin: '', size: 0, text: '', note: '', likelySize: 0, prove: async () => [] }
    const answer = await client.addCheckpoint(empty)
    const reason = 'reason' in answer ? answer.reason : ''
    return evaluateWitness(site.key.name, { outcome: answer.outcome, reason })
  }

  return [
    {
      name: 'log',
      settings: /^LOG_WITNESSES$/,
      after: ['enclave'],
      async run() {
        if (witnesses.length === 0) return skipped('LOG_WITNESSES is not set, so there is no log')
        const found = await Promise.all(witnesses.map(checkWitness))
        const answering = witnesses
          .filter((_, index) => found[index]?.state === 'ok')
          .map(({ key }) => toHex(key.publicKey))
        const { log = null } = terms()[0]?.settings ?? {}
        if (log === null) return found
        if (isSatisfied(log, answering)) return found
        const counting = log.witnesses.filter((key) => answering.includes(key)).length
        return [
          ...found,
          fault(
            `${counting} of the enclave’s ${log.witnesses.length} witnesses answer, but signing needs ${log.quorum}`,
            'Bring witnesses back, or list the witnesses of the enclave’s settings with their addresses in LOG_WITNESSES.',
          ),
        ]
      },
    },
  ]
}

/** A C2SP witness answers an invalid request with 400. */
export function evaluateWitness(name: string, { outcome, reason }: { outcome: string; reason: string }): Finding {
  if (/status 4(00|03|04|13|22)$/.test(reason) && !reason.endsWith('404')) return ok(`${name} answers`)
  if (outcome === 'unknown_log' || outcome === 'forbidden' || outcome === 'contradicts') {
    return warning(`${name}: the server is not a witness`, 'Correct its address in LOG_WITNESSES.')
  }
  const known = explain(reason)
  return warning(`${name}: ${known?.text ?? reason}`, `${known?.fix ?? 'Ask its operator'}, in LOG_WITNESSES.`)
}
