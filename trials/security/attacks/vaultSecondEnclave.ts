import { toEnclaveEnv } from '@countersign/testing/launcher'
import { createTestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { startEnclave } from '../../../services/enclave/test/enclaveProcess.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import { createCaller } from '../createCaller.ts'
import { createLarge, signHonestly, toCookie } from '../vaults/callSign.ts'
import { askEnclave, listEnclaveTries, toHonestItem } from '../vaults/enclaveForgeries.ts'
import { approve, readSession, setUpVaults } from '../vaults/setUpVaults.ts'
import { createTally, SIGNED } from '../vaults/tally.ts'

const TRIES = { full: 1000, short: 50 } as const

/**
 * Two enclaves with one root secret know nothing of each other. What one refuses the other must refuse, also where each is shown a part:
 * one approval each, the rules in only one of them, the same at the same time.
 */
export async function vaultSecondEnclave({ target, size, random }: AttackContext): Promise<AttackResult> {
  const vaults = await setUpVaults(target)
  const session = await readSession(target, target.alice)
  const own = await readSession(target, target.mallory)
  const caller = createCaller({ port: target.port })
  const seen = await signHonestly({ caller, ...toCookie(target) }, vaults).finally(() => caller.close())
  const { rootSecretFile, oidc, enclaveUrl, satellite } = target.backend
  const second = await startEnclave(
    toEnclaveEnv({ rootSecretFile, oidc, entropyKey: satellite.publicKey, quoteLatencyMs: 5 }),
  )
  const tally = createTally()
  const faults: string[] = []
  const coordinator = createTestCoordinator()
  const enclaves = [enclaveUrl, second.url].map((url) => ({ url, coordinator }))
  try {
    const tries = listEnclaveTries(vaults, { session, own, random, seen })
    const { twofold } = vaults
    const askBoth = async (name: string, make: (enclave: number) => { item: object; policies?: readonly string[] }) => {
      const asked = enclaves.map((enclave, index) => {
        const { item, policies } = make(index)
        return askEnclave(enclave, [item], policies)
      })
      for (const [outcome = ''] of await Promise.all(asked)) tally.add(name, outcome)
    }
    for (let made = 0; made < TRIES[size]; made++) {
      const { name, make } = tries[made % tries.length] as (typeof tries)[number]
      const { item, policies } = make()
      // The second has seen no rules but those that it is sent.
      await askBoth(name, (enclave) => ({ item, ...(enclave === made % 2 && policies && { policies }) }))
      const payment = createLarge(random)
      await askBoth('one approval of two for each enclave', (by) => ({
        item: {
          ...{ kind: 'transaction', statementVersion: 2, ...session, witness: createWitness(), ...payment },
          keyId: twofold.keyId,
          vault: { policy: twofold.policyHash, approvals: [approve({ digest: payment.digest, vault: twofold, by })] },
        },
        policies: [twofold.text],
      }))
    }
    for (const enclave of enclaves) {
      const [outcome] = await askEnclave(enclave, [toHonestItem(vaults, session)], [vaults.vault.text])
      if (outcome !== SIGNED) faults.push(`what was approved is refused: ${outcome}`)
    }
  } finally {
    await second.kill('SIGKILL')
  }
  return {
    name: 'vault: second enclave',
    tried: tally.tried(),
    figures: tally.figures(),
    faults: [...tally.faults(), ...faults],
  }
}
